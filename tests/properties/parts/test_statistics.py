"""Statistics are true of every row: bounds contain the data, counts are exact, whatever the values are."""

from __future__ import annotations

import math
from decimal import Decimal as PythonDecimal
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.parts import compute_stats, decode_row, may_overlap, present_fields, write_part
from instar.parts.rows import compare_bounds
from instar.parts.truncate import lower_bound, upper_bound
from instar.schema import Decimal, Field, List, Map, Schema, Struct, parse_schema_ddl
from instar.state.manifest import stats_fields
from instar.stats import bounds_columns
from tests.properties.parts.rows import orderable_ids
from tests.properties.schema.data import array_of, batch_of, batches, random_rows
from tests.properties.schema.ordering import value_key
from tests.properties.schema.strategies import schemas, thorough

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.schema import Type
    from instar.stats import FieldStats
    from tests.properties.schema.data import Row, Value

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
AWKWARD = st.text(
    st.sampled_from("aé日\U0001f600\x00\x7f\x80\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff"),
    max_size=12,
)


def leaf_values(row: Row | None, fields: tuple[Field, ...]) -> Iterator[tuple[int, Any]]:
    """Yield the single values of a row; below a null struct all are null."""
    for field in fields:
        value = None if row is None else row[field.id]
        if isinstance(field.type, Struct):
            yield from leaf_values(value, field.type.fields)
        elif not isinstance(field.type, List | Map):
            yield field.id, value


def assert_contains(stats: FieldStats, values: list[Any], type_: Type) -> None:
    """Check that statistics are true of values, and not needlessly vague about counts."""
    real = [value for value in values if value is not None and value == value]  # noqa: PLR0124
    assert stats.nulls == values.count(None)
    assert stats.nans == len(values) - stats.nulls - len(real)
    if not real:
        assert (stats.min, stats.max) == (None, None)
        return
    assert stats.min is not None
    assert stats.max is not None
    low, high = stats.min, stats.max
    if isinstance(type_, Decimal):
        low, high = PythonDecimal(low), PythonDecimal(high)
    for value in real:
        assert value_key(low, type_) <= value_key(value, type_) <= value_key(high, type_)


@thorough
@given(st.data())
def test_bounds_contain_every_value(data: st.DataObject) -> None:
    """Of every leaf of every type, nested in structs or not, for sliced batches with garbage under nulls."""
    schema = data.draw(schemas(depth=3))
    rows, batch = data.draw(batches(schema, most=10))
    stats = compute_stats(pa.Table.from_batches([batch, batch.slice(0, 0)]), schema)
    assert list(stats) == [field.id for field in stats_fields(schema)]
    values: dict[int, list[Any]] = {field_id: [] for field_id in stats}
    for row in rows:
        for field_id, value in leaf_values(row, schema.fields):
            values[field_id].append(value)
    for field in stats_fields(schema):
        assert_contains(stats[field.id], values[field.id], field.type)
        assert bounds_columns([stats[field.id]], field.type).num_rows == 1  # as they are stored


@pytest.mark.parametrize(
    ("ddl", "values", "low", "high"),
    [
        ("tinyint", [-128, 127], -128, 127),
        ("smallint", [-(2**15), 2**15 - 1], -(2**15), 2**15 - 1),
        ("int", [-(2**31), 2**31 - 1], -(2**31), 2**31 - 1),
        ("bigint", [-(2**63), 2**63 - 1], -(2**63), 2**63 - 1),
        ("boolean", [True, False], False, True),
        ("date", [-719162, 2932896], -719162, 2932896),  # the years 1 and 9999
        ("date", [-141428, -141427], -141428, -141427),  # 1582-10-14 and -15: the calendar changes
        ("timestamp", [-62135596800000000, 253402300799999999], -62135596800000000, 253402300799999999),
        ("timestamp_ntz", [-62135596800000000, 1], -62135596800000000, 1),
        ("timestamp", [-(2**63), 2**63 - 1], -(2**63), 2**63 - 1),
        ("interval day to second", [-5, 86400_000_000], -5, 86400_000_000),
        ("interval year to month", [-13, 14], -13, 14),
        ("decimal(5,2)", ["-1.50", "0.00"], "-1.50", "0.00"),
        ("decimal(38,38)", ["1E-38", "0E-38"], "0E-38", "1E-38"),
        ("string", ["", "\U0010ffff"], "", "\U0010ffff"),
        ("binary", [b"", b"\xff"], b"", b"\xff"),
        ("double", [math.inf, -math.inf, math.nan], -math.inf, math.inf),
        ("double", [5e-324, math.nan], 5e-324, 5e-324),
    ],
)
def test_bounds_are_stored_as_documented(ddl: str, values: list[Value], low: Value, high: Value) -> None:
    """Dates are days, times microseconds, decimals text, and all else itself."""
    [field] = parse_schema_ddl(f"a {ddl}").fields
    plain = [PythonDecimal(value) for value in values] if isinstance(field.type, Decimal) else values
    table = pa.table({"a": array_of([*plain, None], field.type, Random(0))})
    [stats] = compute_stats(table, Schema((field,))).values()
    assert (stats.nulls, stats.min, stats.max) == (1, low, high)
    assert type(stats.min) is type(low)


@pytest.mark.parametrize("values", [[0.0], [-0.0], [0.0, -0.0], [math.nan, -0.0]])
@pytest.mark.parametrize("ddl", ["float", "double"])
def test_zero_as_a_bound_has_both_signs(values: list[float], ddl: str) -> None:
    """A part of -0.0 has the least zero below and the greatest above: nobody can miss either."""
    schema = parse_schema_ddl(f"a {ddl}")
    [stats] = compute_stats(
        pa.table({"a": array_of(values, schema.fields[0].type, Random(0))}), schema
    ).values()
    assert math.copysign(1, stats.min) == -1
    assert math.copysign(1, stats.max) == 1
    assert (stats.min, stats.max) == (0, 0)


def test_a_column_of_nothing_but_nan_has_no_bounds() -> None:
    """NaN is counted, and is neither least nor greatest."""
    schema = parse_schema_ddl("a double")
    [stats] = compute_stats(pa.table({"a": [math.nan, None, math.nan]}), schema).values()
    assert (stats.nulls, stats.nans, stats.min, stats.max) == (1, 2, None, None)


# --- texts that are cut ---------------------------------------------------------------------------


@thorough
@given(ANY_TEXT | AWKWARD, AWKWARD, st.integers(1, 12))
def test_cut_texts_are_still_bounds(text: str, tail: str, limit: int) -> None:
    """A lower bound is a prefix, an upper bound is greater than all that begins with what was kept."""
    low, high = lower_bound(text, limit), upper_bound(text, limit)
    assert isinstance(low, str)
    assert len(low.encode()) <= limit
    assert low.encode() <= text.encode()
    if high is None:
        assert set(low) <= {"\U0010ffff"}
    else:
        assert isinstance(high, str)
        assert text.encode() <= high.encode()
        assert len(high) <= max(len(low), 1)
        assert low == text or (low + tail).encode() < high.encode()


@given(st.binary(max_size=20) | st.sampled_from([b"\xff" * 9, b"a\xff\xff\xff\xff\xff"]), st.integers(1, 8))
def test_cut_bytes_are_still_bounds(value: bytes, limit: int) -> None:
    """The same for bytes, where 0xFF cannot be raised."""
    low, high = lower_bound(value, limit), upper_bound(value, limit)
    assert isinstance(low, bytes)
    assert value.startswith(low)
    assert len(low) <= limit
    assert high is None or (isinstance(high, bytes) and value <= high and len(high) <= limit)
    assert (high is None) == (len(value) > limit and set(value[:limit]) == {0xFF})


@pytest.mark.parametrize(
    ("text", "high"),
    [
        ("a" * 65, "a" * 63 + "b"),
        ("a" * 63 + "é", "a" * 62 + "b"),  # two bytes do not fit behind 63
        ("a" * 61 + "\ud7ff" + "x", "a" * 61 + "\ue000"),  # surrogates are no characters
        ("a" * 60 + "\U0010ffff" + "x", "a" * 59 + "b"),
        ("\U0010ffff" * 17, None),
        ("\x7f" * 65, "\x7f" * 63 + "\x80"),
        ("a" * 64, "a" * 64),
    ],
)
def test_upper_bounds_are_raised_by_code_point(text: str, high: str | None) -> None:
    """At 64 bytes a text is cut before the character that does not fit, and its last one is raised."""
    assert upper_bound(text) == high


@pytest.mark.parametrize("values", [["\U0010ffff" * 17, "a"], [b"\xff" * 65, b"a"]])
def test_what_has_no_upper_bound_has_none(values: list[Any]) -> None:
    """If the greatest value cannot be rounded up, neither bound is known; the counts are."""
    schema = parse_schema_ddl("a " + ("string" if isinstance(values[0], str) else "binary"))
    [stats] = compute_stats(pa.table({"a": values}), schema).values()
    assert (stats.nulls, stats.nans, stats.min, stats.max) == (0, 0, None, None)


def test_texts_that_are_not_utf8_have_no_bounds() -> None:
    """Bytes that are no text are written all the same, and nothing is claimed of them."""
    schema = parse_schema_ddl("a string")
    broken = pa.array([b"\xff", b"a"]).view(pa.string())
    new = write_part(pa.table({"a": broken}), schema)
    assert (new.part.stats[1].nulls, new.part.stats[1].min) == (0, None)


# --- the budget -----------------------------------------------------------------------------------


@given(st.data())
def test_a_budget_takes_what_is_not_sorted_by(data: st.DataObject) -> None:
    """Under any budget the statistics of sort columns stay, and what stays is unchanged or only counts."""
    schema = data.draw(schemas())
    _, batch = data.draw(batches(schema))
    table = pa.Table.from_batches([batch])
    order_by = data.draw(st.lists(st.sampled_from(orderable_ids(schema.fields)), max_size=2, unique=True))
    whole = compute_stats(table, schema)
    some = compute_stats(table, schema, order_by, budget=data.draw(st.integers(0, 200)))
    assert some.keys() <= whole.keys()
    for field_id, stats in some.items():
        assert stats == whole[field_id] or (stats.nulls, stats.min) == (whole[field_id].nulls, None)
    assert {field_id: whole[field_id] for field_id in order_by if field_id in whole}.items() <= some.items()


def test_long_bounds_go_before_short_ones() -> None:
    """A text's bounds are given up before a number's, then its counts; the sort column is never touched."""
    schema = parse_schema_ddl("a string, b int, c string")
    table = pa.table({"a": ["x" * 64], "b": pa.array([5], pa.int32()), "c": ["y" * 50]})
    tight = compute_stats(table, schema, budget=60)
    assert [stats.min for stats in tight.values()] == [None, 5, None]
    assert list(compute_stats(table, schema, [3], budget=0)) == [3]


# --- what is present ------------------------------------------------------------------------------


def present_in(value: Value, type_: Type) -> set[int]:
    """Return the fields inside a value that are not null."""
    match type_:
        case _ if value is None:
            return set()
        case Struct(fields=members):
            return present_in_row(value, members)
        case List(element=element):
            return set().union(*(present_in(item, element) for item in value))
        case Map(key=key, value=item_type):
            return set().union(*(present_in(k, key) | present_in(v, item_type) for k, v in value))
    return set()


def present_in_row(row: Row, fields: tuple[Field, ...]) -> set[int]:
    """Return the fields of a row that are not null, at every level."""
    found = set()
    for field in fields:
        if row[field.id] is not None:
            found |= {field.id} | present_in(row[field.id], field.type)
    return found


@given(st.data())
def test_fields_with_a_value_are_present(data: st.DataObject) -> None:
    """At every level, also inside lists and maps, and not because of garbage under a null."""
    schema = data.draw(schemas(depth=3))
    rows, batch = data.draw(batches(schema, most=3))
    expected = set().union(*(present_in_row(row, schema.fields) for row in rows))
    assert present_fields(pa.Table.from_batches([batch]), schema) == expected


def test_garbage_under_a_null_struct_is_not_present() -> None:
    """A member is present because of a struct that is there, not of one that is not."""
    schema = parse_schema_ddl("s struct<a: int>")
    members = [pa.array([None, 5], pa.int32())]
    structs = pa.StructArray.from_arrays(members, names=["a"], mask=pa.array([False, True]))
    assert present_fields(pa.table({"s": structs}), schema) == {1}


# --- least and greatest rows ----------------------------------------------------------------------


@given(st.data())
def test_parts_that_share_a_row_overlap(data: st.DataObject) -> None:
    """However rows are sorted and bounds cut, two parts with a common row may not be told apart."""
    schema = data.draw(schemas())
    random = Random(data.draw(st.integers(0, 2**32 - 1)))
    rows = random_rows(random, schema, 9)
    order_by = random.sample(ids := orderable_ids(schema.fields), min(2, len(ids)))
    tables = [
        pa.Table.from_batches([batch_of(some, schema, random)]) for some in (rows[:5], rows[4:], rows[4:5])
    ]
    one, two, common = (write_part(table, schema, order_by).part for table in tables)
    for part in (one, two):
        assert may_overlap(part, common)
        assert may_overlap(common, part)
        if part.first_row is not None and part.last_row is not None:
            assert compare_bounds(decode_row(part.first_row), decode_row(part.last_row)) <= 0
    assert may_overlap(one, two)


def test_parts_that_lie_apart_do_not_overlap() -> None:
    """Bounds tell parts apart by all they are compared by, through structs and decimals."""
    schema = parse_schema_ddl("a int, s struct<d: decimal(5,2), t: string>")
    table = pa.Table.from_batches(
        [
            batch_of(
                [{1: 1, 2: {3: PythonDecimal("9.50"), 4: text}} for text in ("a" * 99, "b", "c", "d")],
                schema,
                Random(0),
            )
        ]
    )
    parts = [write_part(table.slice(start, 2), schema).part for start in (0, 2)]
    assert not may_overlap(parts[0], parts[1])
    assert decode_row(parts[0].first_row or b"") == ((1, 1), (2, True), (3, ["9.50"]), (4, "a" * 64))


def test_row_bounds_end_after_a_text_that_was_cut() -> None:
    """The greatest row is rounded up and the least is not; what comes after a cut text says nothing."""
    schema = parse_schema_ddl("t string, n int")
    table = pa.table({"t": ["a" * 70], "n": pa.array([1], pa.int32())})
    part = write_part(table, schema).part
    assert decode_row(part.first_row or b"") == ((1, "a" * 64),)
    assert decode_row(part.last_row or b"") == ((1, "a" * 63 + "b"),)
