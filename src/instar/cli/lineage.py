"""`instar lineage`: maintain the lineage database."""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import Annotated

import typer

from instar.amounts import format_count
from instar.cli.output import JsonOption, console, print_json, working
from instar.durations import parse_duration
from instar.errors import MissingExtraError

__all__ = ["DatabaseOption", "app", "require_lineage"]

app = typer.Typer(name="lineage", help="Maintain the lineage database.", no_args_is_help=True)

DatabaseOption = Annotated[
    str,
    typer.Option(
        "--db", envvar="INSTAR_LINEAGE_DB", help="The database: sqlite:///lineage.db, or postgresql://…"
    ),
]


def require_lineage() -> None:
    """Raise an error that names the extra if a package for lineage is not installed."""
    if any(find_spec(name) is None for name in ("alembic", "sqlalchemy", "starlette", "uvicorn")):
        raise MissingExtraError("lineage")


@app.command()
def retire(
    older_than: Annotated[str, typer.Argument(help="How long ago: 90d, 24h.")],
    *,
    db: DatabaseOption = "sqlite:///lineage.db",
    as_json: JsonOption = False,
) -> None:
    """Delete dataset versions that were superseded long ago, and then what only they referred to.

    The current version of a dataset always stays. The service may run meanwhile.

    Examples:

        instar lineage retire 90d --db sqlite:///lineage.db

    """
    require_lineage()
    from instar.lineage import open_database  # noqa: PLC0415 -- an extra
    from instar.lineage.retention import retire as run  # noqa: PLC0415 -- an extra

    before = time.time_ns() // 1000 - parse_duration(older_than) * 1000
    with open_database(db) as database, working("retiring"):
        retired = run(database, before)
    if as_json:
        print_json(retired.to_json())
        return
    for name, count in retired.to_json().items():
        console().print(format_count(count, name.replace("_", " ").removesuffix("s"), name.replace("_", " ")))
