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
    assert repr(report).startswith("ScanReport('t', \"(s.x = 'a')\": reads 0 of 1 part, 0 B of ")
    assert repr(table.history()).splitlines()[1].endswith("created         schema 0")
    assert [commit.seqno for commit in table.history()] == [1, 0]
    everything: list[Any] = [store, table, table.schema, table.snapshot(), report, table.history()]
    for shown in everything:
        html = shown._repr_html_()
        assert "<b>`" not in html
        assert '"><b>' not in html
        assert html.count("<table") == html.count("</table>")
    assert "&lt;b&gt;" in table.schema._repr_html_()
    assert "1 row in 1 part" in table._repr_html_()
    assert repr(table.history()[:1]) == repr(table.history(1)) == repr(table.history()).splitlines()[0]


def test_every_object_says_what_it_is(store: Store) -> None:
    """No public object is printed as an address in memory."""
    table = store.create_table("t", "n int")
    stream = store.create_stream("s", "n int, at timestamp", time="at")
    assert repr(table.listen(since=4)) == "Listen('t', upper=5)"
    assert repr(store.evolver("s")) == "Evolver('s')"
    everything: list[Any] = [store, table, table.snapshot(), table.evolve(), table.listen(), stream]
    everything += [store.evolver(), store.maintenance(), stream.snapshot(), table.merge([{"n": 1}], on=["n"])]
    assert [repr(each) for each in everything if " object at 0x" in repr(each)] == []


def test_a_snapshot_shows_its_first_rows(store: Store) -> None:
    """A notebook shows what Polars would: some rows, numbers at the right, null apart from an empty text."""
    table = store.create_table("t", "n int, s string")
    table.append(
        [{"n": 1, "s": "<i>"}, {"n": 2, "s": "a\nb" + "x" * 100}, {"n": 3}, *[{"n": 4, "s": ""}] * 9]
    )
    html = table.snapshot()._repr_html_()
    assert "12 rows" in html
    assert "&lt;i&gt;" in html
    assert "null</span>" in html
    assert "a\\nbxxx" in html
    assert "x" * 61 not in html
    assert html.count("<tr>") == 1 + 10
    assert "and 2 more rows" in html


def test_a_wide_snapshot_shows_some_columns(store: Store) -> None:
    """A row of a thousand columns does not fill the notebook; what is left out is counted."""
    table = store.create_table("t", ", ".join(f"c{at} int" for at in range(100)))
    table.append([{"c1": 1}])
    html = table.snapshot()._repr_html_()
    assert html.count("<th ") == 30
    assert "and 70 more columns" in html


def test_the_time_of_a_printed_commit_reads_what_it_wrote(store: Store) -> None:
    """What the history shows can be pasted: as of that time, the rows of the commit are there."""
    table = store.create_table("t", "n int")
    table.append([{"n": 1}])
    table.append([{"n": 2}])
    history: Any = table.history()
    time = repr(history).splitlines()[1].removeprefix("1  ")[:23]
    assert str(history[1].ts) not in repr(history)
    assert time in history._repr_html_()
    assert table.snapshot(as_of=time).to_arrow().to_pylist() == [{"n": 1}]
    assert repr(table.snapshot(as_of=time)) == f"Snapshot('t', as_of={time!r})"
