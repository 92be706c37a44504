"""What notebooks show: stores and tables as small pieces of HTML. Everything from outside is escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from instar.schema import Schema
    from instar.state import TableState

__all__ = ["html_table", "schema_html", "store_html", "table_html"]

_SHOWN: Final = 50
"""How many tables a store shows by name."""


def html_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of texts."""
    head = "".join(f"<th>{escape(text)}</th>" for text in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def schema_html(schema: Schema) -> str:
    """Return the columns of a schema, those inside structs indented."""
    rows = [
        ("\u2003" * depth + field.name, field.type, "" if field.nullable else "not null", field.id)
        for depth, field in schema.walk()
    ]
    return html_table(("column", "type", "", "field"), rows)


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
    return f"<p><b>Table</b> {escape(state.name)}: {facts}</p>{schema_html(history.latest)}"
