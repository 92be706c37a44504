"""A table says whether its rows can be read in order in a single pass, from metadata alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from instar.errors import UsageError

if TYPE_CHECKING:
    from instar.api.store import Store


def test_parts_that_lie_apart_are_in_order_and_parts_that_overlap_are_not(store: Store) -> None:
    """Until a compaction has merged them."""
    table = store.create_table("t", "b string, a bigint", order_by=["a"])
    assert table.is_ordered(["a"])
    table.append(pa.table({"a": [5, 4], "b": ["x", "y"]}))
    table.append(pa.table({"a": [1, 3], "b": ["x", "y"]}))
    assert table.is_ordered(["a"])
    assert table.is_ordered(["a", "b"])
    assert not table.is_ordered(["b"])
    table.append(pa.table({"a": [2], "b": ["z"]}))
    assert not table.is_ordered(["a"])
    table.compact(full=True)
    assert table.is_ordered(["a"])


def test_parts_may_meet_in_a_row(store: Store) -> None:
    """The last row of one part and the first of the next may be equal in the columns that are asked for."""
    table = store.create_table("t", "a bigint, b string", order_by=["a"])
    table.append(pa.table({"a": [1, 2], "b": ["x", "y"]}))
    table.append(pa.table({"a": [2, 3], "b": ["a", "y"]}))
    assert table.is_ordered(["a"])
    assert not table.is_ordered(["a", "b"])


def test_a_dropped_column_breaks_the_order_of_those_after_it(store: Store) -> None:
    """Old parts were sorted by it first. Compaction sorts them anew."""
    table = store.create_table("t", "a bigint, b bigint, c bigint", order_by=["a", "b"])
    table.append(pa.table({"a": [1, 2], "b": [2, 1], "c": [0, 0]}))
    table.evolve().drop_column("c").commit()
    assert table.is_ordered(["a", "b"])
    table.evolve().drop_column("a").commit()
    assert not table.is_ordered(["b"])
    table.compact(full=True)
    assert table.is_ordered(["b"])


def test_an_added_column_is_null_in_old_parts(store: Store) -> None:
    """So it does not disturb their order."""
    table = store.create_table("t", "a bigint", order_by=["a"])
    table.append(pa.table({"a": [1, 2]}))
    table.evolve().add_column("s", "struct<x: bigint>").commit()
    table.append(pa.table({"a": [2, 3], "s": [{"x": 1}, {"x": 0}]}))
    assert table.is_ordered(["a", "s"])


def test_texts_that_begin_alike_are_not_told_apart(store: Store) -> None:
    """Metadata has only their beginnings: the answer is no, unless they are of one run."""
    table = store.create_table("t", "a string", order_by=["a"])
    table.append(pa.table({"a": ["x" * 500 + "1"]}))
    table.append(pa.table({"a": ["x" * 500 + "2"]}))
    assert not table.is_ordered(["a"])
    table.compact(full=True)
    assert table.is_ordered(["a"])


def test_a_table_without_an_order_is_not_in_order(store: Store) -> None:
    """And an order by no column is no question."""
    table = store.create_table("t", "a bigint")
    table.append(pa.table({"a": [1, 2]}))
    assert not table.is_ordered(["a"])
    with pytest.raises(UsageError, match="needs a column"):
        table.is_ordered([])


def test_a_full_compaction_orders_parts_that_need_it_for_different_reasons(store: Store) -> None:
    """A part whose order is broken, and one that overlaps it and is as it should be, are merged."""
    table = store.create_table("t", "a bigint, b bigint", order_by=["a", "b"])
    table.append(pa.table({"a": [1, 2], "b": [9, 1]}))
    table.evolve().drop_column("a").commit()
    table.append(pa.table({"b": [5]}))
    table.compact(full=True)
    assert table.is_ordered(["b"])
