"""What notebooks show: stores and tables as small pieces of HTML. Everything from outside is escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from instar.amounts import format_bytes, format_count, format_time
from instar.files.values import is_number, text_rows
from instar.schema.html import html_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from instar.state import TableState

__all__ = ["snapshot_html", "store_html", "table_html"]

_SHOWN: Final = 50
"""How many tables a store shows by name."""
_COLUMNS: Final = 30
_WIDEST: Final = 60
"""How many columns of rows are shown, and how many characters of a value."""


def store_html(location: str, names: Sequence[str]) -> str:
    """Return where a store is and what its tables are called."""
    shown = "".join(f"<li>{escape(name)}</li>" for name in names[:_SHOWN])
    more = f"<li>… and {len(names) - _SHOWN:,} more</li>" if len(names) > _SHOWN else ""
    counted = format_count(len(names), "table")
    return f"<p><b>Store</b> {escape(location)}: {counted}</p><ul>{shown}{more}</ul>"


def table_html(state: TableState, rows: int) -> str:
    """Return what a table is called, how much it holds, and its columns."""
    totals, history = state.totals, state.history
    size = f"{format_count(totals.parts, 'part')}, {format_bytes(totals.bytes)}"
    facts = f"{format_count(rows, 'row')} in {size}; schema {history.latest_id}, version {state.seqno}"
    return f"<p><b>Table</b> {escape(state.name)}: {facts}</p>{history.latest._repr_html_()}"


def snapshot_html(name: str, as_of: int, count: int, first: pa.Table) -> str:
    """Return of which table and time a snapshot is, how many rows it has, and the first of them."""
    shown = first.select(range(min(first.num_columns, _COLUMNS)))
    numbers = [at for at, field in enumerate(shown.schema) if is_number(field.type)]
    rows = [[None if text is None else _cut(text) for text in row] for row in text_rows(shown)]
    left_out = {"more row": count - len(rows), "more column": first.num_columns - shown.num_columns}
    more = " and ".join(format_count(number, noun) for noun, number in left_out.items() if number > 0)
    told = f"of {escape(name)} as of {format_time(as_of)} UTC: {format_count(count, 'row')}"
    table = html_table(shown.schema.names, rows, numbers=numbers)
    return f"<p><b>Snapshot</b> {told}</p>{table}" + (f"<p>… and {more}</p>" if more else "")


def _cut(text: str) -> str:
    line = text.replace("\n", "\\n").replace("\r", "\\r")
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 1]}…"
