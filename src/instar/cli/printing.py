"""How rows of tables are printed: for people what fits the terminal, for programs every value."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer
from rich.cells import cell_len

from instar.amounts import format_count
from instar.cli.output import console, print_json, print_table
from instar.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

__all__ = [
    "CsvOption",
    "LimitOption",
    "NdjsonOption",
    "Printing",
    "Shape",
    "VerticalOption",
    "chosen_printing",
    "chosen_shape",
    "print_rows",
]

CsvOption = Annotated[bool, typer.Option("--csv", help="Print CSV.")]
NdjsonOption = Annotated[bool, typer.Option("--ndjson", help="Print one JSON object a line.")]
VerticalOption = Annotated[bool, typer.Option("--vertical", help="Print each value on a line of its own.")]
LimitOption = Annotated[
    int | None,
    typer.Option(
        min=0, help="At most this many rows; by default 50 in a table, and all of them for programs."
    ),
]

_WIDEST: Final = 40
"""How wide a column is at most if others have to be left out for it."""
_MOST: Final = 50
"""How many rows of a query people are shown unless they ask for more."""
_NAMED: Final = 20
"""How many of the columns that do not fit are named."""
_GAP: Final = 3
_EDGE: Final = 2


class Shape(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    VERTICAL = "vertical"
    JSON = "json"
    NDJSON = "ndjson"
    CSV = "csv"


def chosen_shape(*, as_json: bool, ndjson: bool = False, csv: bool = False, vertical: bool = False) -> Shape:
    """Return the one shape that was asked for."""
    asked = {Shape.JSON: as_json, Shape.NDJSON: ndjson, Shape.CSV: csv, Shape.VERTICAL: vertical}
    chosen = [shape for shape, wanted in asked.items() if wanted]
    if len(chosen) > 1:
        raise UsageError(f"give only one of {', '.join(f'--{shape}' for shape in chosen)}")
    return chosen[0] if chosen else Shape.TABLE


class Printing(NamedTuple):
    """How the rows of a query are printed, and how many at most."""

    shape: Shape
    most: int | None

    @property
    def asked(self) -> int | None:
        """How many rows to ask for: one more than are printed tells that there are more."""
        return None if self.most is None else self.most + 1

    def print(self, rows: pa.Table) -> None:
        """Print the rows that were found, and whether there are more."""
        more = self.most is not None and rows.num_rows > self.most
        print_rows(rows.slice(0, self.most), self.shape, more=more)


def chosen_printing(*, as_json: bool, ndjson: bool, csv: bool, vertical: bool, limit: int | None) -> Printing:
    """Return how the rows of a query are printed, as its options say."""
    shape = chosen_shape(as_json=as_json, ndjson=ndjson, csv=csv, vertical=vertical)
    return Printing(shape, _MOST if limit is None and shape in {Shape.TABLE, Shape.VERTICAL} else limit)


def print_rows(rows: pa.Table, shape: Shape, *, more: bool = False, header: bool = True) -> None:
    """Print rows; `more` says that there are others, and without `header` CSV goes on from before."""
    from instar.files import Format  # noqa: PLC0415 -- slow
    from instar.files.values import is_number, json_rows, text_rows  # noqa: PLC0415 -- slow
    from instar.files.write import write_text  # noqa: PLC0415 -- slow

    match shape:
        case Shape.JSON | Shape.NDJSON if len(set(rows.schema.names)) < len(rows.schema.names):
            names = ", ".join(rows.schema.names)
            raise UsageError(f"two columns have one name among {names}: rename with `as`")
        case Shape.JSON:
            print_json(list(json_rows(rows)))
        case Shape.NDJSON | Shape.CSV:
            kind = Format.JSON if shape is Shape.NDJSON else Format.CSV
            write_text(sys.stdout, kind, rows.schema, rows.to_batches(), header=header)
        case Shape.VERTICAL:
            _print_vertically(rows.schema.names, list(text_rows(rows)))
        case Shape.TABLE:
            numbers = {at for at, field in enumerate(rows.schema) if is_number(field.type)}
            _print_table(rows.schema.names, list(text_rows(rows)), numbers)
    if more and shape in {Shape.TABLE, Shape.VERTICAL}:
        console().print("There are more rows; --limit shows more.")


def _print_vertically(names: Sequence[str], rows: Iterable[Sequence[str | None]]) -> None:
    width = max((cell_len(name) for name in names), default=0)
    for number, row in enumerate(rows, 1):
        console().print(f"row {number}")
        for name, value in zip(names, row, strict=True):
            space = " " * (width - cell_len(name))
            console().print(f"  {name}{space}  {_shown(value)}".rstrip(), soft_wrap=True)


def _print_table(names: Sequence[str], rows: Sequence[Sequence[str | None]], numbers: set[int]) -> None:
    texts = [[_shown(value) for value in row] for row in rows]
    kept = len(names)
    if sys.stdout.isatty():
        widths = [
            max([cell_len(name), *(cell_len(row[at]) for row in texts)]) for at, name in enumerate(names)
        ]
        kept = _how_many(widths, console().width)
    print_table(names[:kept], [row[:kept] for row in texts], numbers=numbers)
    if kept < len(names):
        others = names[kept:]
        more = f" and {len(others) - _NAMED:,} more" if len(others) > _NAMED else ""
        console().print(
            f"{kept} of {format_count(len(names), 'column')} fit here; not shown: "
            f"{', '.join(others[:_NAMED])}{more}. "
            "--vertical shows all, --column chooses.",
            soft_wrap=False,
        )


def _how_many(widths: Sequence[int], room: int) -> int:
    """Return how many columns fit: all as they are, or as many as do if none is wider than need be."""
    if sum(widths) + _GAP * len(widths) + _EDGE <= room:
        return len(widths)
    used = _EDGE
    for at, width in enumerate(widths):
        used += min(width, _WIDEST) + _GAP
        if used > room:
            return max(1, at)
    return len(widths)


def _shown(value: str | None) -> str:
    """Return a value on one line; null is not the empty text."""
    return "null" if value is None else value.replace("\n", "\\n").replace("\r", "\\r")
