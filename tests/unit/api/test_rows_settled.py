"""Rows that were retracted by value are found once, and then left out by position."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from instar.errors import NegativeCountError
from instar.table.read.settle import settle

if TYPE_CHECKING:
    from instar import Store, Table
    from instar.table.read.snapshot import SnapshotPlan

ROWS = 2_000


@pytest.fixture
def table(store: Store) -> Table:
    """Return a table of three parts that all may hold every row."""
    table = store.create_table("t", "n bigint, text string, share double")
    for first in range(3):
        ids = np.arange(first, ROWS, 3)
        table.append(pa.table({"n": ids, "text": [str(n % 7) for n in ids], "share": ids / 4}))
    return table


def change(table: Table, diff: int, *ids: int) -> None:
    """Add or retract rows by value."""
    texts, shares = [str(n % 7) for n in ids], [n / 4 for n in ids]
    table.apply(pa.table({"n": ids, "text": texts, "share": shares, "_diff": [diff] * len(ids)}))


def settled(table: Table, as_of: int | None = None) -> SnapshotPlan:
    """Return the plan of a snapshot once it is settled."""
    snapshot = table.snapshot(as_of)
    assert snapshot._plan.merge
    return settle(table._services, snapshot._plan)


def test_nothing_is_added_up_when_rows_can_be_left_out(table: Table) -> None:
    """Only the rows that are meant are left out, as of each time, and the part that retracts is not read."""
    before = table.upper - 1
    change(table, -1, 5, 700)
    change(table, -1, 701)
    plan = settled(table)
    assert not plan.merge
    assert sum(len(rows) for rows in plan.scan.positions.values()) == 3
    assert len(plan.scan) == 3
    assert sorted(set(range(ROWS)) - set(table.snapshot().to_arrow().column("n").to_pylist())) == [
        5,
        700,
        701,
    ]
    assert table.snapshot(before + 1).count() == ROWS - 2
    assert table.snapshot(before).count() == ROWS
    assert table.snapshot().count("n = 5 or n = 6") == 1


def test_of_equal_rows_as_many_stay_as_are_left(table: Table) -> None:
    """Whether they are in one part or in several, or came with the retraction itself."""
    change(table, 1, 5)
    change(table, 1, 5, 5, 6)
    change(table, -1, 5)
    change(table, -2, 5)
    assert not settled(table).merge
    assert table.count("n = 5") == 1
    assert table.count("n = 6") == 2
    table.delete("n = 5")
    assert table.count("n = 5") == 0
    assert table.count() == ROWS


def test_what_cannot_be_left_out_is_added_up(table: Table) -> None:
    """A row that was added several times at once has too few positions, and an error stays one."""
    change(table, 3, 5)
    change(table, -1, 6)
    assert settled(table).merge
    assert table.count("n = 5") == 4
    change(table, -1, 6)
    assert table.count("n = 5") == 4
    with pytest.raises(NegativeCountError):
        table.count()
    with pytest.raises(NegativeCountError):
        table.count("n = 6")


def test_equal_is_as_for_rows(table: Table) -> None:
    """A zero has no sign and a null is a null, before columns were dropped and after."""
    zeros = pa.table({"n": [-1, None], "share": [-0.0, float("nan")]})
    table.append(zeros)
    table.apply(pa.table({"n": [-1, None], "share": [0.0, float("nan")], "_diff": [-1, -1]}))
    assert not settled(table).merge
    assert table.count() == ROWS
    assert table.count("share = 0") == 1
    change(table, -1, 9)
    table.append(pa.table({"n": [9], "text": ["other"], "share": [9 / 4]}))
    assert table.count("n = 9") == 1
    table.evolve().drop_column("text").commit()
    assert table.count("n = 9") == 1


def test_parts_with_later_rows_are_read_less_these(table: Table) -> None:
    """A compaction puts rows of several times into one part; as of each of them, only its rows are seen."""
    before = table.upper - 1
    change(table, -1, 10)
    change(table, 1, 11)
    table.compact()
    plan = settled(table, before)
    assert not plan.merge
    assert table.snapshot(before).count("n in (10, 11)") == 2
    assert table.snapshot(before + 1).count("n in (10, 11)") == 1
    assert table.snapshot().count("n in (10, 11)") == 2


def test_times_beyond_the_calendar_of_python_are_found(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """In parts of several row groups, whose bounds Python has no dates for."""
    monkeypatch.setattr("instar.parts.write.ROW_GROUP_ROWS", 2)
    table = store.create_table("far", "at timestamp_ntz")
    far = pa.array([-(2**62), -5, 7, 2**62], pa.timestamp("us"))
    table.append(pa.table({"at": far}))
    table.apply(pa.table({"at": far.slice(3), "_diff": [-1]}))
    assert not settled(table).merge
    assert table.snapshot().to_arrow().column("at").cast(pa.int64()).to_pylist() == [-(2**62), -5, 7]


def test_the_same_files_in_another_table_are_settled_anew(table: Table) -> None:
    """Clones have the same files as other parts, and each loses rows of its own."""
    change(table, -1, 3)
    clones = [table.clone(name) for name in ("one", "two")]
    for at, one in enumerate(clones):
        assert one.snapshot().to_arrow().num_rows == ROWS - 1
        one.delete(f"n = {at}")
    for one, n in ((table, 3), (clones[0], 0), (clones[1], 1)):
        left = set(one.snapshot().to_arrow()["n"].to_pylist())
        assert set(range(ROWS)) - left == {3, n}
