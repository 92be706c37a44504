"""What people see of objects: in a notebook, and where they are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from instar.api.store import Store


def test_what_is_printed_can_be_read(store: Store) -> None:
    """Schemas as DDL, scans and histories in words; in notebooks as tables, with every name escaped."""
    table = store.create_table("t", "`<b>` int not null, s struct<x: string>")
    table.append(pa.table({"<b>": [1]}))
    assert repr(table.schema) == "Schema('`<b>` int not null, s struct<x: string>')"
    report = table.explain("s.x = 'a'")
    assert repr(report).startswith("ScanReport('t', \"(s.x = 'a')\": reads 0 of 1 parts, 0 of ")
    assert repr(table.history()).splitlines()[1].endswith("created")
    assert [commit.seqno for commit in table.history()] == [1, 0]
    everything: list[Any] = [store, table, table.schema, table.snapshot(), report, table.history()]
    for shown in everything:
        html = shown._repr_html_()
        assert "<b>`" not in html
        assert "<td><b>" not in html
        assert html.count("<table>") == html.count("</table>")
    assert "&lt;b&gt;" in table.schema._repr_html_()
    assert "1 rows" in table.snapshot()._repr_html_()
