"""Bounds side by side: what goes in comes out, widening loses nothing, and the whole is never narrower."""

from __future__ import annotations

from decimal import Decimal as PyDecimal
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from instar.schema import Decimal, Primitive, Type
from instar.stats import FieldStats, bounds_columns, bounds_schema, cast_bounds, null_bounds, unite_bounds

INT, DOUBLE, STRING = Primitive("int"), Primitive("double"), Primitive("string")

VALUES: list[tuple[Type, Any, Any]] = [
    (Primitive("boolean"), False, True),
    (Primitive("tinyint"), -128, 127),
    (Primitive("smallint"), -(2**15), 2**15 - 1),
    (INT, -(2**31), 2**31 - 1),
    (Primitive("bigint"), -(2**63), 2**63 - 1),
    (Primitive("float"), -1.5, float("inf")),
    (DOUBLE, float("-inf"), 1e300),
    (STRING, "", "\U0010ffff"),
    (Primitive("binary"), b"", b"\xff\x00"),
    (Primitive("date"), -719162, 2932896),
    (Primitive("timestamp"), -(10**15), 10**15),
    (Primitive("timestamp_ntz"), 0, 1),
    (Decimal(38, 10), "-9999999999999999999999999999.9999999999", "0.0000000001"),
    (Primitive("interval day to second"), -1, 86_400_000_000),
    (Primitive("interval year to month"), -1, 12),
]
IDS = [str(type_) for type_, _, _ in VALUES]


def stored(scalar: pa.Scalar) -> Any:  # noqa: ANN401 - whatever the type holds
    """Return a value of a column as it is stored."""
    if pa.types.is_decimal(scalar.type):
        return f"{scalar.as_py():f}"
    if pa.types.is_temporal(scalar.type):
        return scalar.value
    return scalar.as_py()


@pytest.mark.parametrize(("type_", "low", "high"), VALUES, ids=IDS)
def test_bounds_of_every_type_come_out_as_they_went_in(type_: Type, low: object, high: object) -> None:
    """The columns are typed, and hold the extremes of their type."""
    columns = bounds_columns([FieldStats(1, 0, low, high), None], type_)
    assert columns.schema == bounds_schema(type_)
    assert columns.column("nulls").to_pylist() == [1, None]
    assert stored(columns.column("min")[0]) == low
    assert stored(columns.column("max")[0]) == high
    assert columns.column("min").null_count == 1


@pytest.mark.parametrize(("type_", "low", "high"), VALUES, ids=IDS)
def test_bounds_of_several_parts_together_hold_for_each(type_: Type, low: object, high: object) -> None:
    """Least and greatest of all, stored as each was, which decodes to the same columns again."""
    stats = [FieldStats(1, 0, high, high), FieldStats(2, 0, low, low), FieldStats(10, 0)]
    united = unite_bounds(bounds_columns(stats, type_), pa.array([10, 10, 10]))
    assert united == FieldStats(13, 0, low, high)
    assert bounds_columns([united], type_).column("min")[0].is_valid


@pytest.mark.parametrize(
    ("unknown", "expected"),
    [
        (None, FieldStats(None, None)),
        (FieldStats(None, 0, 3, 4), FieldStats(None, 0, 1, 4)),
        (FieldStats(0, None, 3, 4), FieldStats(0, None, 1, 4)),
        (FieldStats(0, 0, None, 4), FieldStats(0, 0, None, 4)),
        (FieldStats(0, 0, 3, None), FieldStats(0, 0, 1, None)),
        (FieldStats(9, 0), FieldStats(9, 0)),
        (FieldStats(10, 0), FieldStats(10, 0, 1, 2)),
        (FieldStats(4, 6), FieldStats(4, 6, 1, 2)),
        (FieldStats(None, 10), FieldStats(None, 10)),
    ],
)
def test_what_is_not_known_of_one_part_is_not_known_of_all(
    unknown: FieldStats | None, expected: FieldStats
) -> None:
    """A part that may hold any value makes the bound on that side unknown; one without values does not."""
    columns = bounds_columns([FieldStats(0, 0, 1, 2), unknown], DOUBLE)
    assert unite_bounds(columns, pa.array([10, 10])) == expected


def test_no_parts_have_no_bounds() -> None:
    """Nothing is known of nothing, except that it has no nulls."""
    assert unite_bounds(bounds_columns([], INT), pa.array([], pa.int64())) == FieldStats(0, 0)


@given(st.lists(st.lists(st.none() | st.integers(-5, 5), min_size=1), min_size=1))
def test_together_they_are_never_narrower(parts: list[list[int | None]]) -> None:
    """Every value of every part lies within the bounds of all."""
    stats = []
    for rows in parts:
        values = [value for value in rows if value is not None]
        stats.append(
            FieldStats(len(rows) - len(values), 0, min(values, default=None), max(values, default=None))
        )
    united = unite_bounds(bounds_columns(stats, INT), pa.array([len(rows) for rows in parts], pa.int64()))
    values = [value for rows in parts for value in rows if value is not None]
    assert united == FieldStats(
        sum(rows.count(None) for rows in parts), 0, min(values, default=None), max(values, default=None)
    )


@pytest.mark.parametrize(
    ("old", "new", "low", "expected"),
    [
        (INT, Primitive("bigint"), -(2**31), -(2**31)),
        (INT, DOUBLE, 2**31 - 1, float(2**31 - 1)),
        (Primitive("float"), DOUBLE, 0.1, 0.10000000149011612),
        (Decimal(6, 2), Decimal(9, 3), "-9999.99", PyDecimal("-9999.990")),
        (STRING, STRING, "a", "a"),
    ],
)
def test_widened_bounds_are_the_same_values(old: Type, new: Type, low: object, expected: object) -> None:
    """A bound of the narrower type is exactly a value of the wider one, cast or laid out anew."""
    columns = cast_bounds(bounds_columns([FieldStats(0, 0, low, low)], old), new)
    assert columns.schema == bounds_schema(new)
    assert columns.column("min")[0].as_py() == expected


def test_a_field_that_parts_do_not_have_is_null_in_every_row() -> None:
    """Its null count is the number of rows, and it has no NaN."""
    columns = null_bounds(pa.array([3, 0]), STRING)
    assert columns.to_pylist() == [
        {"nulls": 3, "nans": 0, "min": None, "max": None},
        {"nulls": 0, "nans": 0, "min": None, "max": None},
    ]
