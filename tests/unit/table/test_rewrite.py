"""Rewriting merges only what is sorted in every respect: other runs would lose rows and double others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from instar.api.store import Store
from instar.table.housekeeping import rewrite
from instar.table.write.append import move_since
from tests.tables import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.api.table import Table


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    """Return a table whose runs are all merged as they are read."""
    monkeypatch.setattr(rewrite, "STREAMED_BYTES", 0)
    world = World()
    yield Store("memory", world.services()).create_table("t", "a bigint, b string", order_by=["a"])
    world.close()


def rows(table: Table) -> list[tuple[object, ...]]:
    """Return the rows in order, as tuples."""
    return sorted((tuple(row.values()) for row in table.snapshot().to_arrow().to_pylist()), key=str)


def test_times_out_of_order_after_a_drop_lose_nothing(table: Table) -> None:
    """Without the last column rows of several times are equal, and follow each other in no order of times."""
    table.apply(pa.table({"a": [1, 1, 1], "b": ["x", "y", "z"], "_ts": [9, 5, 7]}))
    table.apply(pa.table({"a": [1, 1, 1], "b": ["x", "y", "z"], "_ts": [16, 18, 12]}))
    table.append(pa.table({"a": [1], "b": ["w"]}))
    table.evolve().drop_column("b").commit()
    before = [table.snapshot(as_of=at).count() for at in range(5, 20)]
    table.compact(full=True)
    assert rows(table) == [(1,)] * 7
    assert [table.snapshot(as_of=at).count() for at in range(5, 20)] == before


def test_retractions_that_share_a_time_after_since_lose_nothing(table: Table) -> None:
    """Times before since become one, so a row's retraction no longer follows it in order."""
    changes = {"a": [1, 1, 2, 2], "b": ["x"] * 4, "_ts": [5, 6, 5, 6], "_diff": [1, -1, 1, 2]}
    table.apply(pa.table(changes))
    table.apply(pa.table({"a": [1, 2, 3], "b": ["x"] * 3, "_ts": [8, 9, 8]}))
    move_since(table._log, 9)
    table.compact(full=True)
    assert rows(table) == [(1, "x"), *[(2, "x")] * 4, (3, "x")]
