"""Reads in process: which columns and rows are shown, and files that are not the ones that were written."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import instar
from instar.errors import ColumnNotFoundError, CorruptTableError, NegativeCountError, UsageError
from tests.tables import list_leases

if TYPE_CHECKING:
    from pathlib import Path

    from instar.api.store import Store


def test_a_read_shows_some_of_the_columns(store: Store) -> None:
    """In the order in which they are named, and a condition may look at others."""
    table = store.create_table("t", "a bigint, b bigint, c string")
    table.append(pa.table({"a": [1, 2], "b": [3, 4], "c": ["x", "y"]}))
    snapshot = table.snapshot()
    assert snapshot.to_arrow(columns=["c", "a"]).to_pylist() == [{"c": "x", "a": 1}, {"c": "y", "a": 2}]
    assert snapshot.to_arrow("b > 3", columns=["c"]).to_pylist() == [{"c": "y"}]
    assert snapshot.to_arrow("b > 4", columns=["c"]).schema.names == ["c"]
    assert [batch.schema.names for batch in snapshot.to_batches(columns=["b"])] == [["b"]]
    with pytest.raises(ColumnNotFoundError, match="`d`"):
        snapshot.to_arrow(columns=["d"])
    with pytest.raises(ColumnNotFoundError, match="`b`"):
        table.snapshot(columns=["a"]).to_arrow(columns=["b"])


def test_a_condition_on_changed_rows_looks_only_at_its_own(store: Store) -> None:
    """A part may be skipped that holds a row which another part, that is read, retracts."""
    table = store.create_table("t", "a bigint")
    table.append(pa.table({"a": [0]}))
    table.apply(pa.table({"a": [0, 10], "_diff": [-1, 1]}))
    snapshot = table.snapshot()
    assert snapshot.explain("a = 10").skipped == 1
    assert snapshot.to_arrow("a = 10").to_pylist() == [{"a": 10}]
    assert snapshot.to_arrow("a = 0").to_pylist() == []
    table.apply(pa.table({"a": [10, 10], "_diff": [-1, -1]}))
    with pytest.raises(NegativeCountError):
        table.snapshot().to_arrow("a = 10")


def test_batches_keep_what_they_read(store: Store) -> None:
    """Nobody has the snapshot any more, but whoever reads on holds the files against a vacuum."""
    table = store.create_table("t", "a bigint")
    for number in range(3):
        table.append(pa.table({"a": [number]}))
    batches = table.snapshot().to_batches()
    first = next(batches)
    gc.collect()
    assert list(list_leases(table._services, table.state.table_id))
    assert [first, *batches][-1].num_rows == 1
    gc.collect()
    assert not list(list_leases(table._services, table.state.table_id))


def test_one_part_in_the_place_of_another_is_no_answer(tmp_path: Path) -> None:
    """Not even one with as many bytes and rows of the same table."""
    table = instar.open(tmp_path / "lake").create_table("t", "a bigint")
    for start in (0, 2):
        table.append(pa.table({"a": [start, start + 1]}))
    one, other = (tmp_path / "lake").glob("tables/*/parts/*")
    assert one.stat().st_size == other.stat().st_size
    one.write_bytes(other.read_bytes())
    for where in (None, "a = 0 or a = 2"):
        with pytest.raises(CorruptTableError, match=one.name):
            table.snapshot().to_arrow(where)


def test_a_mode_that_does_not_exist_is_refused_at_once(store: Store) -> None:
    """Not only when a condition is asked, which may be never."""
    table = store.create_table("modes", "a int")
    with pytest.raises(UsageError, match="'skipping' cannot be 'maybe': it is one of off, audit, on"):
        table.snapshot(skipping="maybe")


@pytest.mark.parametrize("mode", ["off", "audit"])
def test_an_explanation_says_that_everything_is_read(store: Store, mode: str) -> None:
    """Where the table does not skip, no part is left out, whatever the condition excludes."""
    table = store.create_table("modes", "a int")
    table.append(pa.table({"a": pa.array([1], pa.int32())}))
    assert (table.explain("a = 2").skipping, table.explain("a = 2").read) == ("on", 0)
    table.configure(skipping=mode)
    report = table.explain("a = 2", parts=True)
    assert (report.skipping, report.read, report.skipped) == (mode, 1, 0)
    assert report.bytes_read == report.bytes_total
    assert report.parts[0].read
    assert report.parts[0].why.startswith(f"skipping is {mode}, though (a = 2) is never true")
    assert report.conjuncts[0].excludes == 1


def test_a_snapshot_is_held_until_it_is_closed(store: Store) -> None:
    """Its lease is there as long as it is open, and nothing can be read from it after that."""
    table = store.create_table("t", "a bigint")
    table.append(pa.table({"a": [1]}))

    def held() -> int:
        return len(list(list_leases(table._services, table.state.table_id)))

    with table.snapshot() as snapshot:
        assert (held(), snapshot.to_arrow().num_rows) == (1, 1)
    assert held() == 0
    snapshot.close()
    for read in (snapshot.to_arrow, lambda: snapshot.explain("a = 1"), snapshot.to_batches):
        with pytest.raises(UsageError, match="was closed"):
            read()
    assert (snapshot.schema.names, snapshot.as_of) == (("a",), table.upper - 1)
    assert (table.count(), table.head().num_rows, table.explain("a = 1").read, held()) == (1, 1, 1, 0)


def test_a_table_without_rows_has_no_time_to_read() -> None:
    """As of 0 is refused while `upper` is 0; before all times there was nothing, and that can be read."""
    table = instar.open("memory://").create_table("t", "id int")
    assert table.upper == 0
    with pytest.raises(UsageError, match="as of 0"):
        table.snapshot(as_of=0)
    assert table.snapshot(as_of=table.snapshot().as_of).to_arrow().num_rows == 0


def test_no_updates_are_told_of_a_row_that_is_added_no_times() -> None:
    """A diff of 0 is not stored, and whoever listens does not hear of it."""
    table = instar.open("memory://").create_table("t", "id int")
    done = table.apply(pa.table({"id": pa.array([1, 2], pa.int32()), "_diff": [0, 3]}))
    assert done.rows == 1
    told = next(table.listen(since=0, timeout=0))
    assert told.rows.select(["id", "_diff"]).to_pylist() == [{"id": 2, "_diff": 3}]
    table.apply(pa.table({"id": pa.array([1], pa.int32()), "_diff": [0]}))
    assert table.snapshot().to_arrow().num_rows == 3
