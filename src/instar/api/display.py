"""What notebooks show: stores and tables as small pieces of HTML. Everything from outside is escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from instar.schema import Schema
    from instar.state import TableState

__all__ = ["snapshot_html", "store_html", "table_html"]

_SHOWN: Final = 50
"""How many tables a store shows by name."""


def store_html(location: str, names: Sequence[str]) -> str:
    """Return where a store is and what its tables are called."""
    shown = "".join(f"<li>{escape(name)}</li>" for name in names[:_SHOWN])
    more = f"<li>… and {len(names) - _SHOWN:,} more</li>" if len(names) > _SHOWN else ""
    counted = "1 table" if len(names) == 1 else f"{len(names):,} tables"
    return f"<p><b>Store</b> {escape(location)}: {counted}</p><ul>{shown}{more}</ul>"


def table_html(state: TableState) -> str:
    """Return what a table is called, how much it holds, and its columns."""
    totals, history = state.totals, state.history
    facts = f"{totals.parts:,} parts, {totals.bytes:,} bytes, schema {history.latest_id}, seqno {state.seqno}"
    return f"<p><b>Table</b> {escape(state.name)}: {facts}</p>{history.latest._repr_html_()}"


def snapshot_html(name: str, as_of: int, rows: int, schema: Schema) -> str:
    """Return of which table and time a snapshot is, how many rows it has, and its columns."""
    columns = schema._repr_html_()
    return f"<p><b>Snapshot</b> of {escape(name)} as of {as_of}: {rows:,} rows</p>{columns}"
