"""`instar lookup`: the rows that have a key, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from instar.cli.options import (
    AsOfOption,
    ConsensusOption,
    StoreOption,
    TableArgument,
    open_store,
    snapshot_at,
)
from instar.cli.output import JsonOption  # noqa: TC001 -- typer reads annotations
from instar.cli.printing import CsvOption, NdjsonOption, VerticalOption, chosen_shape, print_rows
from instar.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["lookup"]


def lookup(  # noqa: PLR0913 -- options of a command
    table: TableArgument,
    key: Annotated[
        list[str], typer.Argument(metavar="COLUMN=VALUE...", help="The values to look for: country=de id=7")
    ],
    *,
    column: Annotated[list[str] | None, typer.Option(help="Show only this column. Repeatable.")] = None,
    as_of: AsOfOption = None,
    vertical: VerticalOption = False,
    csv: CsvOption = False,
    ndjson: NdjsonOption = False,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the rows that have some values, without starting Spark.

    Any columns can be used, not only the table's key. If the table is sorted by them, one part (Parquet file)
    is opened. Write dates and times as 2026-11-15 and 2026-11-15T12:00:00; without a zone they are in UTC.

    Examples:

        instar lookup users id=7

        instar lookup events country=de day=2026-11-15 --json

    """
    shape = chosen_shape(as_json=as_json, ndjson=ndjson, csv=csv, vertical=vertical)
    values = _parse(key)
    with open_store(store, consensus) as opened, snapshot_at(opened.table(table), as_of) as snapshot:
        found = snapshot.lookup(values, column or None)
    print_rows(found, shape)


def _parse(pairs: Sequence[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"{pair!r} is not COLUMN=VALUE: write it as id=7")
        if name in values:
            raise UsageError(f"column {name!r} is given twice")
        values[name] = value
    return values
