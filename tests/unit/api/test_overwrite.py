"""Overwriting: rows take the place of others in one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from instar.errors import ColumnNotFoundError, DataMismatchError
from instar.parts import DIFF
from tests.unit.api.one_column import held, rows

if TYPE_CHECKING:
    from instar.api.store import Store
    from tests.tables import World


def test_all_rows_go_without_being_read(store: Store, world: World) -> None:
    """The new rows come with the same commit, and the past stays."""
    table = store.create_table("t", "k int")
    table.append(rows(1, 2))
    table.delete("k = 1")
    before = table.append(rows(3, 4))
    for stored in list(world.services().blob.list()):
        if stored.key.endswith(".parquet"):
            world.services().blob.put(stored.key, b"")
    commit = table.overwrite(rows(7, 8))
    assert (commit.seqno, commit.rows) == (before.seqno + 1, 5)
    assert held(table) == [7, 8]


def test_some_rows_go_by_position_and_by_value(store: Store) -> None:
    """Rows that were retracted by value before, and stand several times, go as often as they are there."""
    table = store.create_table("t", "k int")
    table.append(rows(1, 2, 3, 5, 5))
    table.apply(rows(5, 3).append_column(DIFF, pa.array([-1, -1])))
    table.overwrite(rows(9, 1), "k in (1, 5)")
    assert held(table) == [1, 2, 9]
    table.overwrite(rows(), "k = 9")
    assert held(table) == [1, 2]
    table.overwrite(rows())
    assert held(table) == []


def test_what_does_not_fit_leaves_everything_as_it_is(store: Store) -> None:
    """Neither rows nor the condition are taken half."""
    table = store.create_table("t", "k int")
    table.append(rows(1))
    with pytest.raises(DataMismatchError):
        table.overwrite(pa.table({"x": [1]}))
    with pytest.raises(ColumnNotFoundError, match="nosuch"):
        table.overwrite(rows(2), "nosuch = 1")
    assert held(table) == [1]
