"""Rows that are near on the curve are near in every field that it goes over."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.errors import UsageError
from instar.parts import Curve
from instar.schema import parse_schema_ddl
from tests.properties.parts.rows import orderable_ids
from tests.properties.schema.data import batch_of, random_rows
from tests.properties.schema.strategies import schemas

GRID = 32


def grid(fields: int) -> pa.Table:
    """Return every point of a grid once."""
    side = GRID if fields == 2 else 8
    points = list(product(range(side), repeat=fields))
    return pa.table({f"c{at}": pa.array([point[at] for point in points], pa.int32()) for at in range(fields)})


@pytest.mark.parametrize("fields", [1, 2, 3])
def test_the_curve_visits_every_cell_once_and_goes_from_each_to_a_neighbour(fields: int) -> None:
    """Two cells that follow each other differ by one, in one field."""
    table = grid(fields)
    schema = parse_schema_ddl(", ".join(f"c{at} int" for at in range(fields)))
    curve = Curve.fit(table, schema, range(1, fields + 1))
    order = np.argsort(curve.positions(table, schema), kind="stable")
    assert len(set(curve.positions(table, schema).tolist())) == table.num_rows
    points = np.stack([column.to_numpy() for column in table.columns], axis=1)[order]
    assert np.abs(np.diff(points, axis=0)).sum(axis=1).tolist() == [1] * (table.num_rows - 1)


def test_skew_does_no_harm() -> None:
    """Only ranks count: values that grow a million times faster are laid out alike."""
    schema = parse_schema_ddl("a double, b double")
    chance = np.random.default_rng(7)
    plain = pa.table({"a": chance.random(4000), "b": chance.random(4000)})
    skewed = pa.table({name: np.exp(plain[name].to_numpy() * 30) for name in ("a", "b")})
    one, two = (Curve.fit(table, schema, [1, 2]).positions(table, schema) for table in (plain, skewed))
    assert one.tolist() == two.tolist()


def test_parts_along_the_curve_are_small_in_both_fields() -> None:
    """A filter on either of two fields opens a fraction of the parts, where sorting serves only one."""
    schema = parse_schema_ddl("a int, b int")
    chance = np.random.default_rng(7)
    table = pa.table({name: pa.array(chance.integers(0, 1000, 64_000), pa.int32()) for name in "ab"})
    order = np.argsort(
        Curve.fit(table.slice(0, 5000), schema, [1, 2]).positions(table, schema), kind="stable"
    )
    parts = np.array_split(order, 64)
    for name in "ab":
        values = table[name].to_numpy()
        opened = sum(values[part].min() <= 500 <= values[part].max() for part in parts)
        assert opened <= 16


@pytest.mark.parametrize("few", [2, 3, 10])
def test_a_field_of_few_values_counts_as_much_as_one_of_many(few: int) -> None:
    """A part has hardly more than one of them, and a narrow filter on the other field opens a fraction."""
    schema = parse_schema_ddl("a int, b double")
    chance = np.random.default_rng(7)
    table = pa.table({"a": pa.array(chance.integers(0, few, 64_000), pa.int32()), "b": chance.random(64_000)})
    order = np.argsort(Curve.fit(table, schema, [1, 2]).positions(table, schema), kind="stable")
    parts = np.array_split(order, 100)
    a, b = (table[name].to_numpy() for name in "ab")
    for value in range(few):
        assert sum(a[part].min() <= value <= a[part].max() for part in parts) <= 100 / few + 15
    assert sum(b[part].min() <= 0.5 <= b[part].max() for part in parts) <= 20


@given(st.data())
def test_any_type_that_can_be_sorted_can_be_clustered(data: st.DataObject) -> None:
    """Nulls, NaN, texts, nested values: a row's number does not depend on the rows beside it."""
    schema = data.draw(schemas(depth=2))
    random = Random(data.draw(st.integers(0, 2**32 - 1)))
    table = pa.Table.from_batches([batch_of(random_rows(random, schema, 30), schema, random)])
    ids = orderable_ids(schema.fields)[:3]
    curve = Curve.fit(table, schema, [*ids, 10**6])
    whole = curve.positions(table, schema)
    halves = [curve.positions(table.slice(0, 11), schema), curve.positions(table.slice(11), schema)]
    assert np.concatenate(halves).tolist() == whole.tolist()


def test_too_many_columns_are_refused() -> None:
    """A curve over nine columns would serve none of them."""
    names = "abcdefghi"
    schema = parse_schema_ddl(", ".join(f"{name} int" for name in names))
    table = pa.table({name: pa.array([1], pa.int32()) for name in names})
    with pytest.raises(UsageError, match="at most 8 columns"):
        Curve.fit(table, schema, range(1, 10))
