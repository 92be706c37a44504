"""Going back: rows as they were, and a history that outlives a vacuum."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from instar.errors import UsageError
from instar.parts import DIFF
from tests.unit.api.one_column import held, rows

if TYPE_CHECKING:
    from instar.api.store import Store
    from tests.tables import World


def test_rows_that_came_are_retracted_without_being_read(store: Store, world: World) -> None:
    """A bad append is undone from metadata alone."""
    table = store.create_table("t", "k int")
    good = table.append(rows(1, 2))
    table.append(rows(3, 4))
    for stored in list(world.services().blob.list()):
        if stored.key.endswith(".parquet"):
            world.services().blob.put(stored.key, b"")
    commit = table.restore(version=good.seqno)
    assert (commit.rows, table.count()) == (2, 2)


def test_rows_that_went_come_back(store: Store) -> None:
    """Whether some or all of a part went, by position or by value; and a restore can be restored."""
    table = store.create_table("t", "k int", key=["k"])
    table.append(rows(1, 2, 3))
    table.append(rows(4))
    first = table.append(rows(5, 5))
    table.delete("k in (1, 4)")
    table.apply(rows(5, 2).append_column(DIFF, pa.array([-1, -1])))
    before = held(table)
    assert before == [3, 5]
    bad = table.restore(version=first.seqno)
    assert held(table) == [1, 2, 3, 4, 5, 5]
    table.restore(version=bad.seqno - 1)
    assert held(table) == before
    for wrong in ({}, {"version": 99}, {"as_of": 1, "version": 1}):
        with pytest.raises(UsageError):
            table.restore(**wrong)


@pytest.mark.parametrize("seed", range(6))
def test_any_version_can_be_restored(store: Store, seed: int) -> None:
    """Whatever happened between: the rows are those of then, and what they were meanwhile is still known."""
    random = Random(seed)
    table = store.create_table("t", "k int", key=["k"])
    known = {}
    for _ in range(12):
        value = random.randrange(6)
        match random.randrange(5):
            case 0 | 1:
                table.append(rows(value, value + 1))
            case 2:
                table.delete(f"k = {value}")
            case 3:
                table.upsert(rows(value))
            case 4 if value in held(table):
                table.apply(rows(value).append_column(DIFF, pa.array([-1])))
        if random.randrange(5) == 0:
            table.compact(full=True)
        known[table.state.seqno] = held(table)
    for version in random.sample(sorted(known), 4):
        table.restore(version=version)
        assert held(table) == known[version]
    assert {version: held(table, version) for version in known} == known


def test_the_log_calls_a_restore_by_its_name(store: Store, world: World) -> None:
    """Whether rows came, went or both, with the time that it went back to; after a vacuum too."""
    world.clock.now = 1_700_000_000_000
    table = store.create_table("t", "k int")
    good = table.append(rows(1, 2))
    table.append(rows(3))
    table.restore(version=good.seqno)
    table.delete("k = 1")
    table.restore(version=good.seqno)
    told = [commit.line()[3] for commit in table.history()]
    then = table.history()[-2].line()[1]
    assert told[0] == told[2] == f"restored as of {then}: 1 update"
    assert [told[1], told[3]] == ["retracted 1 row", "appended 1 row"]
    assert table.snapshot(as_of=then).to_arrow().num_rows == 2
    world.clock.now += 10**9
    table.vacuum(grace_ms=0)
    table.append(rows(4))
    assert told == [commit.line()[3] for commit in table.history()][-len(told) :]


def test_history_outlives_a_vacuum(store: Store, world: World) -> None:
    """Who did what and when stays known, and so do versions, however often the log is cut off."""
    table = store.create_table("t", "k int")
    for value in range(3):
        table.append(rows(value))
    before = table.history()
    for _ in range(20):
        world.clock.now += 10**9
        table.vacuum(grace_ms=0)
        table.append(rows(7))
    after = table.history()
    assert [line for line in after if line.seqno <= before[0].seqno] == before
    assert [line.seqno for line in after] == list(range(after[0].seqno, -1, -1))
    assert table.history(5) == after[:5]
    assert len(list(world.services().blob.list(f"tables/{table.state.table_id}/history"))) <= 16
    assert held(table, 2) == [0, 1]
    assert next(iter(table._log.entries())).seqno > before[0].seqno


def test_rows_come_in_many_forms(store: Store) -> None:
    """Dicts, datasets and iterators of batches are rows too."""
    dataset = pytest.importorskip("pyarrow.dataset")
    table = store.create_table("t", "k int, v string")
    table.append([{"k": 1, "v": "a"}, {"k": 2}])
    table.append(dataset.dataset(rows(3)))
    table.append(iter([*rows(4).to_batches(), rows(5)]))
    assert held(table) == [1, 2, 3, 4, 5]
    for wrong in ([], [1], "text", {"k": [1]}, [{"k": 1}, {"k": "x"}], [rows(1), pa.table({"v": ["x"]})]):
        with pytest.raises(UsageError):
            table.append(wrong)
    assert held(table) == [1, 2, 3, 4, 5]
