"""What others do to a table while it is compacted stands, and nobody fails because of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from instar.table import load_parts
from instar.table.housekeeping.compaction import compact_table
from instar.table.housekeeping.rewrite import rewrite_parts
from instar.table.write.append import move_since

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from instar.api.store import Store
    from instar.api.table import Table
    from instar.table.housekeeping.compaction import CompactionReport
    from instar.table.housekeeping.rewrite import Output, Work


@pytest.fixture
def table(store: Store) -> Table:
    """Return a table of four overlapping parts."""
    made = store.create_table("t", "a bigint, b string", order_by=["a"], key=["a"])
    for part in range(4):
        made.append(pa.table({"a": range(part, 40, 4), "b": [f"b{part}"] * 10}))
    return made


def compact_while(table: Table, meanwhile: Callable[[], object]) -> CompactionReport:
    """Compact a table; others act after its parts were read and before they are swapped."""

    def rewrite(work: Work) -> Iterable[Output]:
        outputs = list(rewrite_parts(work))
        meanwhile()
        return outputs

    return compact_table(table._services, table._log, rewrite)


def ids(table: Table, as_of: int | None = None) -> list[int]:
    """Return the numbers of the rows, in order."""
    found: list[int] = sorted(table.snapshot(as_of=as_of).to_arrow()["a"].to_pylist())
    return found


def test_rows_that_are_deleted_meanwhile_stay_deleted(table: Table) -> None:
    """They are carried over, and can be read as of before."""
    before = table.upper - 1
    report = compact_while(table, lambda: table.delete("a < 5 or b = 'b3'"))
    assert (report.jobs, report.overtaken) == (1, 0)
    left = [number for number in range(40) if number >= 5 and number % 4 != 3]
    assert ids(table) == left
    assert ids(table, before) == list(range(40))
    assert table.condition().retracted == 0, "they are retracted by value"
    places = load_parts(table._services.chunks, table.state).columns["places"].to_pylist()
    assert len({place["run"] for place in places}) == 2
    table.compact(full=True)
    assert table.condition().retracted == 40 - len(left)
    assert ids(table) == left
    assert ids(table, before) == list(range(40))


def test_rows_that_are_replaced_meanwhile_stay_replaced(table: Table) -> None:
    """An upsert and an append land as if nothing went on."""

    def meanwhile() -> None:
        table.upsert(pa.table({"a": [7, 100], "b": ["new", "new"]}))
        table.append(pa.table({"a": [200], "b": ["more"]}))
        table.evolve().add_column("c", "string").commit()

    compact_while(table, meanwhile)
    assert ids(table) == [*range(40), 100, 200]
    assert table.snapshot().to_arrow("b = 'new'").num_rows == 2
    assert table.schema.names == ("a", "b", "c")


def test_of_two_compactions_of_the_same_parts_one_gives_way(table: Table) -> None:
    """And leaves nothing behind."""
    report = compact_while(table, lambda: table.compact(full=True))
    assert (report.jobs, report.overtaken) == (0, 1)
    assert ids(table) == list(range(40))
    keys = [stored.key for stored in table._services.blob.list(f"tables/{table.state.table_id}/parts")]
    assert len(keys) == 4 + 1


def test_a_deleted_row_leaves_the_bytes_once_nobody_can_read_it(store: Store, table: Table) -> None:
    """When since has passed the delete, a compaction leaves the row out."""
    table.delete("a >= 10")
    table.compact(full=True)
    assert table.state.totals.rows == 40
    move_since(table._log, table.upper - 1)
    table.compact(full=True)
    assert table.state.totals.rows == 10
    assert ids(table) == list(range(10))
    assert store["t"].count() == 10


@pytest.mark.parametrize("layout", [{}, {"order_by": ["a"]}, {"cluster_by": ["a", "b"]}])
def test_a_table_whose_rows_are_all_gone_becomes_empty(store: Store, layout: dict[str, list[str]]) -> None:
    """Its parts are given up without being opened."""
    order_by, cluster_by = layout.get("order_by", []), layout.get("cluster_by", [])
    table = store.create_table("gone", "a bigint, b string", order_by=order_by, cluster_by=cluster_by)
    for part in range(3):
        table.append(pa.table({"a": [part, part + 10], "b": ["x", "y"]}))
    table.delete("true")
    move_since(table._log, table.upper - 1)
    table._services.blob.delete(load_parts(table._services.chunks, table.state).keys)
    assert table.compact(full=True).parts_after == 0
    assert (table.state.totals.parts, table.count()) == (0, 0)
    table.append(pa.table({"a": [1], "b": ["z"]}))
    assert ids(table) == [1]
