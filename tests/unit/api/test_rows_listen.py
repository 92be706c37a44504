"""Listening: what is told, in which order, from where on, and when it ends."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.api.store import Store
from instar.errors import ReaderFencedError, UsageError
from instar.table.write.append import move_since
from tests.tables import World, small_numbers

if TYPE_CHECKING:
    from instar.api.listen import Changes, Listen
    from instar.api.table import Table


def ints(**columns: list[int]) -> pa.Table:
    """Return a table of 32-bit integers, times and diffs."""
    wide = ("_ts", "_diff")
    types = {name: pa.int64() if name in wide else pa.int32() for name in columns}
    return pa.table({name: pa.array(values, types[name]) for name, values in columns.items()})


def told(changes: Changes) -> list[tuple[int, ...]]:
    """Return updates as plain tuples."""
    return [tuple(row.values()) for row in changes.rows.to_pylist()]


def all_told(listen: Listen) -> list[tuple[int, ...]]:
    """Return everything that a listener is told until it ends."""
    return [row for changes in listen for row in told(changes)]


def test_a_listener_is_told_what_comes_after(store: Store) -> None:
    """Without a time it begins now; rows come with when they count and how often."""
    table = store.create_table("t", "a int")
    table.append(ints(a=[1]))
    listen = table.listen(timeout=0)
    first = table.append(ints(a=[2]))
    second = table.apply(ints(a=[1], _diff=[-1]))
    assert all_told(listen) == [(2, first.ts, 1), (1, second.ts, -1)]
    assert listen.upper == table.upper


def test_from_the_beginning_a_listener_is_told_everything(store: Store) -> None:
    """`since=-1` is before all times."""
    table = store.create_table("t", "a int")
    commits = [table.append(ints(a=[number])) for number in range(3)]
    assert all_told(table.listen(since=-1, timeout=0)) == [
        (number, commit.ts, 1) for number, commit in enumerate(commits)
    ]


def test_updates_come_by_time_wherever_they_are_stored(world: World) -> None:
    """Rollups and merged chunks move parts around, and one batch may have many times."""
    with small_numbers():
        store = Store("memory", world.services())
        table = store.create_table("t", "a int")
        for number in range(12):
            table.apply(
                ints(a=[number] * 3, _ts=[10 * number + 9, 10 * number + 1, 10 * number + 5], _diff=[1] * 3)
            )
        table._log.settle()
        (changes,) = store.table("t").listen(since=-1, timeout=0)
    assert [row[1] for row in told(changes)] == sorted(
        10 * number + at for number in range(12) for at in (1, 5, 9)
    )


def test_each_change_goes_on_where_the_last_one_ended(store: Store) -> None:
    """Uppers only grow, and no update is told twice or left out, however the listener is interrupted."""
    table = store.create_table("t", "a int")
    listen = table.listen(since=-1, timeout=0)
    uppers = [0]
    rows: list[tuple[int, ...]] = []
    for number in range(4):
        table.append(ints(a=[number]))
        changes = next(listen)
        uppers.append(changes.upper)
        rows += told(changes)
        assert all(uppers[-2] <= ts < uppers[-1] for _, ts, _ in told(changes))
    assert all(before < after for before, after in itertools.pairwise(uppers))
    assert [row[0] for row in rows] == [0, 1, 2, 3]
    for upper in uppers:
        assert all_told(table.listen(since=upper - 1, timeout=0)) == [row for row in rows if row[1] >= upper]


def test_a_listener_ends_when_nothing_comes(store: Store) -> None:
    """With a timeout, a listener that waited for so long stops, and can be asked again."""
    table = store.create_table("t", "a int")
    listen = table.listen(timeout=0)
    with pytest.raises(StopIteration):
        next(listen)
    table.append(ints(a=[1]))
    assert [row[0] for row in all_told(listen)] == [1]


def test_a_listener_waits_with_growing_pauses(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks again after each pause, and answers as soon as there is something."""
    table = store.create_table("t", "a int")
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            table.append(ints(a=[7]))

    monkeypatch.setattr("instar.api.listen.time.sleep", sleep)
    assert [row[0] for row in told(next(table.listen()))] == [7]
    assert len(slept) == 3


def test_a_commit_without_rows_is_told_by_its_upper(store: Store) -> None:
    """Somebody who waits for a time to be complete must hear of it."""
    table = store.create_table("t", "a int")
    listen = table.listen(timeout=0)
    commit = table.append(ints(a=[]))
    changes = next(listen)
    assert (told(changes), changes.upper) == ([], commit.ts + 1)


def test_a_listener_reads_the_columns_that_it_asked_for(store: Store) -> None:
    """In its own order and under its own names, whatever has been renamed since."""
    table = store.create_table("t", "a int, b int, c int")
    listen = table.listen(columns=["c", "a"], timeout=0)
    table.evolve().rename_column("a", "z").drop_column("b").add_column("a", "int").commit()
    table.append(ints(z=[1], c=[3], a=[9]))
    changes = next(listen)
    assert changes.rows.column_names == ["c", "a", "_ts", "_diff"]
    assert [row[:2] for row in told(changes)] == [(3, 1)]


def test_a_listener_is_checked_at_each_change_of_schema(store: Store) -> None:
    """As soon as the table has evolved away from it it is fenced, new rows or not; another one goes on."""
    table = store.create_table("t", "a int, b int")
    listen = table.listen(timeout=0)
    table.append(ints(a=[1], b=[1]))
    assert len(told(next(listen))) == 1
    upper = listen.upper
    table.evolve().drop_column("b").commit()
    with pytest.raises(ReaderFencedError):
        next(listen)
    assert listen.upper == upper
    table.append(ints(a=[2]))
    with pytest.raises(ReaderFencedError):
        next(listen)
    resumed = table.listen(since=upper - 1, timeout=0)
    assert [row[0] for row in all_told(resumed)] == [2]


def test_times_that_were_merged_cannot_be_told_apart(store: Store) -> None:
    """Who resumes before since is told so, for some of the updates may have been heard already."""
    table = store.create_table("t", "a int")
    table.apply(ints(a=[1, 2], _ts=[5, 15], _diff=[1, 1]))
    move_since(table._log, 10)
    with pytest.raises(UsageError, match="have been merged"):
        next(table.listen(since=7, timeout=0))
    assert [row[0] for row in all_told(table.listen(since=10, timeout=0))] == [2]


@settings(max_examples=max(20, settings().max_examples // 5))
@given(st.data())
def test_what_was_told_adds_up_to_what_is_there(data: st.DataObject) -> None:
    """A snapshot as of one time and all that is told after it make the snapshot of every later time."""
    world = World()
    table: Table = Store("memory", world.services()).create_table("t", "a int")
    rows = st.lists(st.tuples(st.integers(0, 3), st.sampled_from((1, 1, 2))), max_size=4)
    listen = table.listen(since=-1, timeout=0)
    heard: Counter[int] = Counter()
    for batch in data.draw(st.lists(rows, min_size=1, max_size=6)):
        here = Counter(table.snapshot().to_arrow().column("a").to_pylist())
        changes = batch + [(value, -count) for value, count in here.items() if data.draw(st.booleans())]
        first = table.upper
        ts = [first + data.draw(st.integers(0, 3)) for _ in changes]
        table.apply(ints(a=[a for a, _ in changes], _diff=[diff for _, diff in changes], _ts=ts))
        if data.draw(st.booleans()):
            for value, _, diff in all_told(listen):
                heard[value] += diff
            assert +heard == Counter(table.snapshot().to_arrow().column("a").to_pylist())
    since = data.draw(st.sampled_from(range(-1, table.upper)))
    begun = (
        Counter(table.snapshot(since).to_arrow().column("a").to_pylist()) if since >= 0 else Counter[int]()
    )
    for value, _, diff in all_told(table.listen(since=since, timeout=0)):
        begun[value] += diff
    assert +begun == Counter(table.snapshot().to_arrow().column("a").to_pylist())
    world.close()
