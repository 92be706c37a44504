"""Rows laid out along a curve are the same rows, and filters on each of its columns open few parts."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.api.store import Store
from instar.errors import ColumnNotFoundError, UsageError
from instar.parts import PartLimits
from instar.schema import Map, format_path
from instar.table.housekeeping import rewrite
from tests.properties.parts.rows import orderable_ids, plain_rows, row_group_key
from tests.properties.schema.data import batch_of, random_rows
from tests.properties.schema.strategies import schemas
from tests.tables import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.api.table import Table
    from instar.schema import Schema


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few rows be many parts, and more than fits in memory."""
    limits = PartLimits(file_bytes=4000, buffer_bytes=8000)
    monkeypatch.setattr("instar.table.write.append.PartLimits", lambda: limits)
    monkeypatch.setattr(rewrite, "SORTED_BYTES", 6000)


@pytest.fixture
def store() -> Iterator[Store]:
    """Return a store in memory."""
    world = World()
    yield Store("memory", world.services())
    world.close()


def counted(table: Table, as_of: int | None) -> Counter[object]:
    """Return how often each row is there; rows that are equal are one."""
    rows = plain_rows(table.snapshot(as_of=as_of).to_arrow(), table.schema)
    return Counter(row_group_key(row, table.schema) for row in rows)


@settings(max_examples=8)
@given(schema=schemas(), seed=st.integers(0, 2**32))
def test_rows_stay_the_same_along_a_curve(schema: Schema, seed: int) -> None:
    """Whatever their types, with nulls, NaN and retractions, with and without an order, at every time."""
    random = Random(seed)
    world = World()
    store = Store("memory", world.services())
    table = store.create_table("t", schema)
    latest = table.schema
    names = {leaf.id: format_path(path) for path, leaf in latest.leaves() if not isinstance(leaf.type, Map)}
    ids = [field_id for field_id in orderable_ids(latest.fields) if field_id in names]
    if ids:
        chosen = random.sample(ids, k=min(len(ids), random.randint(1, 3)))
        table.configure(
            cluster_by=[names[it] for it in chosen], cluster_at=random.choice(("append", "compaction"))
        )
    expected = {}
    for _ in range(random.randint(1, 4)):
        batch = batch_of(random_rows(random, latest, random.choice((1, 20, 60))), latest, random)
        table.append(pa.Table.from_batches([batch]))
        if random.random() < 0.3:
            some = table.head(2)
            if "_diff" not in some.column_names and some.num_rows:
                table.apply(some.append_column("_diff", pa.array([-1] * some.num_rows)))
        world.clock.now += 1
        expected[table.upper - 1] = counted(table, None)
    table.compact(full=random.random() < 0.7)
    for as_of, rows in expected.items():
        assert counted(table, as_of) == rows
    table.compact(full=True)
    assert table.plan_compaction(full=True) == []
    assert counted(table, None) == rows
    world.close()


def points(table: Table, rows: int = 6000) -> None:
    """Append points of a square, one column skewed and one with nulls and NaN, in several appends."""
    chance = np.random.default_rng(11)
    for _ in range(4):
        a = np.exp(chance.random(rows // 4) * 20)
        b = chance.random(rows // 4)
        b[chance.random(rows // 4) < 0.01] = np.nan
        table.append(pa.table({"a": a, "b": pa.array(b, mask=chance.random(rows // 4) < 0.01)}))


def test_filters_on_either_column_open_few_parts(store: Store) -> None:
    """Sorted by the first column, filters on the second open nearly everything."""
    opened = {}
    for name, layout in (("ordered", {"order_by": ["a", "b"]}), ("clustered", {"cluster_by": ["a", "b"]})):
        table = store.create_table(name, "a double, b double", **layout)  # type: ignore[arg-type]
        points(table)
        table.compact(full=True)
        narrow = "a between 900 and 1100", "b between 0.50 and 0.51"
        reports = [table.explain(where) for where in (*narrow, " and ".join(narrow))]
        opened[name] = [report.read / report.total for report in reports]
    ordered, clustered = opened["ordered"], opened["clustered"]
    assert ordered[0] < 0.1
    assert ordered[1] > 0.9
    assert max(clustered[:2]) < 0.3
    assert clustered[2] < 0.1


def test_every_row_is_rewritten_few_times(store: Store) -> None:
    """Small appends are gathered as they double; what has been laid out waits for as many new rows."""
    table = store.create_table("t", "a int, b int", cluster_by=["a", "b"])
    written = 0
    for number in range(64):
        table.append(pa.table({"a": pa.array([number], pa.int32()), "b": pa.array([-number], pa.int32())}))
        written += table.compact().rows
    assert written <= 64 * 7
    assert table.state.totals.parts <= 7


def test_clustering_can_be_chosen_changed_and_taken_back(store: Store) -> None:
    """It follows a column that is renamed, and forgets one that is dropped."""
    table = store.create_table("t", "a int, b int, s struct<x: int>", order_by=["a"])
    for number in range(4):
        numbers = pa.array([number, 9 - number], pa.int32())
        table.append(pa.table({"a": numbers, "b": numbers}))
    table.compact(full=True)
    table.configure(cluster_by=["b", "s.x"])
    table.append(pa.table({"a": pa.array([5], pa.int32()), "b": pa.array([5], pa.int32())}))
    assert [job.reason for job in table.plan_compaction(full=True)] == ["cluster"]
    table.compact(full=True)
    assert not table.plan_compaction(full=True)
    table.evolve().rename_column("b", "c").commit()
    table.configure(cluster_by=["a", "c"])
    table.compact(full=True)
    table.evolve().drop_column("c").commit()
    table.compact(full=True)
    assert table.count() == 9
    table.configure(cluster_by=None)
    table.compact(full=True)
    assert table.is_ordered(["a"])


def test_columns_that_cannot_be_clustered_by_are_refused(store: Store) -> None:
    """Before anything is created or changed."""
    table = store.create_table("t", "a int, m map<string, int>")
    for columns, error in (
        (["nothing"], ColumnNotFoundError),
        (["m"], UsageError),
        (["a", "a"], UsageError),
        (["a"] * 9, UsageError),
        ("a", UsageError),
        ([1], UsageError),
    ):
        with pytest.raises(error):
            table.configure(cluster_by=columns)  # type: ignore[arg-type]
    with pytest.raises(ColumnNotFoundError):
        store.create_table("other", "a int", cluster_by=["b"])
    with pytest.raises(UsageError):
        table.configure(cluster_at="never")
    assert store.tables() == ["t"]
