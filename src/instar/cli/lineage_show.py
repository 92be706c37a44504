"""`instar lineage show`: what feeds a table, and what it feeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.tree import Tree

from instar.cli.lineage import DatabaseOption, require_lineage
from instar.cli.old_layout import app
from instar.cli.output import JsonOption, console, print_json

if TYPE_CHECKING:
    from instar.lineage.queries.rows import Json

__all__ = ["app", "show"]


@app.command()
def show(
    table: Annotated[str, typer.Argument(help="A table or dataset: its name, or NAMESPACE:NAME.")],
    *,
    db: DatabaseOption = "sqlite:///lineage.db",
    depth: Annotated[int, typer.Option(min=1, max=20, help="How many jobs away.")] = 3,
    as_json: JsonOption = False,
) -> None:
    """Print what feeds a table and what it feeds.

    Examples:

        instar lineage show events --db sqlite:///lineage.db

    """
    require_lineage()
    from instar.lineage import open_database  # noqa: PLC0415 -- an extra
    from instar.lineage.queries.neighbours import neighbours  # noqa: PLC0415 -- an extra

    with open_database(db) as database, database.reading() as connection:
        found = neighbours(connection, table, depth)
    if as_json:
        print_json(found)
        return
    for heading, key in (("is fed by", "fedBy"), ("feeds", "feeds")):
        _print(found["dataset"], heading, found[key])


def _print(start: str, heading: str, steps: list[Json]) -> None:
    name = start.partition(":")[2]
    if not steps:
        console().print(f"{name} {heading} nothing known.")
        return
    root = Tree(f"{name} {heading}")
    places = {start: root}
    for step in steps:
        parent = places.get(step["from"])
        if parent is None:
            continue
        job = step["job"].partition(":")[2]
        if step["dataset"] is None:
            parent.add(f"job {job}")
            continue
        node = parent.add(f"{step['dataset'].partition(':')[2]}  (job {job})")
        places.setdefault(step["dataset"], node)
    console().print(root)
