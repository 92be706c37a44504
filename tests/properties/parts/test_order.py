"""Rows are sorted and added up as plain Python does it, whatever their types."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.errors import CountOverflowError, NegativeCountError
from instar.parts import consolidate, expand, snapshot_rows, sort_indices, sort_rows
from instar.schema import Schema, Struct, parse_schema_ddl, plan_migration, preserves_order
from tests.properties.parts.rows import as_bag, orderable_ids, plain_rows, row_group_key, twin, with_updates
from tests.properties.schema.data import batch_of, random_rows
from tests.properties.schema.ordering import row_key, small_changes
from tests.properties.schema.strategies import schemas, thorough

SEEDS = st.integers(0, 2**32 - 1)
Change = tuple[Schema, Schema, tuple[int, ...]]


@thorough
@given(st.data())
def test_rows_are_sorted_as_python_sorts_them(data: st.DataObject) -> None:
    """By the leading fields, then all columns: nulls first, NaN last, zeros equal, nested item by item."""
    schema = data.draw(schemas(depth=3))
    random = Random(data.draw(SEEDS))
    rows = random_rows(random, schema, 12)
    rows += random.choices(rows, k=3)
    order_by = [*random.sample(ids := orderable_ids(schema.fields), min(2, len(ids))), 10**6]
    pieces = [batch_of(rows[:7], schema, random), batch_of(rows[7:], schema, random)]
    table = pa.Table.from_batches(pieces)
    found = plain_rows(sort_rows(table, schema, order_by), schema)
    keys = [row_key(row, schema, order_by) for row in found]
    assert keys == sorted(row_key(row, schema, order_by) for row in rows)
    assert as_bag(found) == as_bag(rows)


@given(small_changes(), SEEDS)
def test_sorted_rows_stay_sorted_where_the_schema_layer_says_so(case: Change, seed: int) -> None:
    """Rows that are sorted here, and migrated by a change that preserves order, are sorted here again."""
    old, new, order_by = case
    rows = random_rows(Random(seed), old, 20)
    table = sort_rows(pa.Table.from_batches([batch_of(rows, old, Random(seed))]), old, order_by)
    migrated = plan_migration(old, new).apply(table)
    keys = [row_key(row, new, order_by) for row in plain_rows(migrated, new)]
    again = plain_rows(sort_rows(migrated, new, order_by), new)
    assert [row_key(row, new, order_by) for row in again] == sorted(keys)
    if preserves_order(old, new, order_by):
        assert all(one <= two for one, two in pairwise(keys))


@pytest.mark.parametrize(("ddl", "width"), [("float", 4), ("double", 8)])
def test_every_nan_is_the_same_and_the_greatest(ddl: str, width: int) -> None:
    """Whatever its sign and its other bits."""
    schema = parse_schema_ddl(f"a {ddl}")
    ones = (1 << 8 * width) - 1  # the sign and the exponent of a NaN, and a fraction
    bits = np.array([ones, ones >> 1, ones - 1], f"u{width}")
    values = np.concatenate([bits.view(f"f{width}"), np.array([np.inf, -np.inf], f"f{width}")])
    table = pa.table({"a": values, "_diff": [1] * 5})
    assert sort_indices(table, schema).to_pylist() == [4, 3, 0, 1, 2]
    assert consolidate(table, schema)["_diff"].to_pylist() == [3, 1, 1]


def test_lists_of_many_different_elements_are_sorted() -> None:
    """More elements than a byte can number, and lists that begin alike."""
    schema = parse_schema_ddl("a array<int>")
    lists = [[at] for at in range(1000)] + [[at, 1] for at in range(0, 1000, 7)]
    given_lists = Random(1).sample(lists, len(lists))
    table = pa.table({"a": pa.array(given_lists, pa.list_(pa.int32()))})
    assert sort_rows(table, schema)["a"].to_pylist() == sorted(lists)


def test_time_and_diff_come_last() -> None:
    """Equal rows are in the order of their times, and then of their diffs."""
    schema = parse_schema_ddl("a int")
    batch = batch_of([{1: 2}, {1: 1}, {1: 1}, {1: 1}], schema, Random(0))
    table = pa.Table.from_batches([with_updates(batch, [1, 9, 5, 5], [1, 1, 1, -1])])
    assert sort_indices(table, schema).to_pylist() == [3, 2, 1, 0]


# --- adding up ------------------------------------------------------------------------------------


@thorough
@given(st.data())
def test_diffs_of_equal_rows_are_added_up(data: st.DataObject) -> None:
    """As a dictionary of rows does it: zeros of either sign, NaN and maps in any order are equal."""
    schema = data.draw(schemas(depth=3))
    random = Random(data.draw(SEEDS))
    whole = Struct(schema.fields)
    some = random_rows(random, schema, 4)
    rows = [twin(random.choice(some), whole, random) for _ in range(random.randint(0, 14))]
    diffs = [random.choice((-2, -1, 1, 1, 2, 3)) for _ in rows]
    times = [random.choice((5, 6)) for _ in rows]
    table = pa.Table.from_batches([with_updates(batch_of(rows, schema, random), times, diffs)])

    def model(keys: list[object]) -> list[tuple[str, int]]:
        sums: dict[object, tuple[int, int]] = {}
        for at, (key, diff) in enumerate(zip(keys, diffs, strict=True)):
            first, count = sums.get(key, (at, 0))
            sums[key] = (first, count + diff)
        return [(as_bag([rows[first]])[0], count) for first, count in sums.values() if count]

    def found(consolidated: pa.Table) -> list[tuple[str, int]]:
        plain = plain_rows(consolidated, schema)
        return list(zip((as_bag([row])[0] for row in plain), consolidated["_diff"].to_pylist(), strict=True))

    keys = [row_group_key(row, schema) for row in rows]
    assert found(consolidate(table, schema)) == model(list(zip(keys, times, strict=True)))
    assert found(consolidate(table.drop_columns(["_ts"]), schema)) == model(keys)
    counts = model(keys)
    if all(count > 0 for _, count in counts):
        expected = sorted(row for row, count in counts for _ in range(count))
        found_rows = [row for batch in snapshot_rows(table, schema) for row in plain_rows(batch, schema)]
        assert as_bag(found_rows) == expected
    else:
        with pytest.raises(NegativeCountError):
            list(snapshot_rows(table, schema))


def test_a_negative_count_names_the_row() -> None:
    """The error shows the row that was retracted too often, and how often."""
    schema = parse_schema_ddl("a int, b string")
    batch = batch_of([{1: 1, 2: "x"}, {1: 2, 2: "y"}, {1: 2, 2: "y"}], schema, Random(0))
    table = pa.Table.from_batches([with_updates(batch, [1, 1, 1], [1, -2, 1])])
    with pytest.raises(NegativeCountError, match=r"its count is -1\b.*a=2, b=y") as caught:
        list(snapshot_rows(table, schema))
    assert caught.value.count == -1


@pytest.mark.parametrize(
    "diffs",
    [
        [2**63 - 1, 2**63 - 1],
        [2**62, 2**62],
        [-(2**63), -1],
        [2**63 - 1, 2**63 - 1, -(2**63), -5],
        [2**63 - 1, 1, -1],
    ],
)
def test_counts_are_exact_or_refused(diffs: list[int]) -> None:
    """Sums never wrap around: one that 64 bits cannot hold is an error, whatever is added on the way."""
    schema = parse_schema_ddl("a int")
    batch = batch_of([{1: 1}] * len(diffs) + [{1: 2}], schema, Random(0))
    table = pa.Table.from_batches([with_updates(batch, [1] * (len(diffs) + 1), [*diffs, 7])])
    count = sum(diffs)
    if -(2**63) <= count < 2**63:
        assert consolidate(table.drop_columns(["_ts"]), schema)["_diff"].to_pylist() == [count, 7]
        return
    with pytest.raises(NegativeCountError if count < 0 else CountOverflowError, match=str(count)):
        consolidate(table.drop_columns(["_ts"]), schema)


def test_a_row_may_be_there_more_often_than_memory_could_hold() -> None:
    """Copies of a row are made as they are read, and share their memory."""
    table = pa.table({"a": [1, 2], "_diff": [3, 3_000_000_000]})
    batches = expand(table)
    assert next(batches).to_pylist() == [{"a": 1}] * 3
    assert sum(batch.num_rows for batch in batches) == 3_000_000_000


def test_expanding_plain_rows_copies_nothing() -> None:
    """Rows that are there once are passed on."""
    table = pa.table({"a": [1, 2], "_diff": [1, 1]})
    (batch,) = expand(table)
    assert batch["a"].buffers()[1].address == table["a"].chunk(0).buffers()[1].address
