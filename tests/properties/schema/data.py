"""Random rows of a schema as plain Python values, as awkward Arrow arrays, and read back again.

A struct is a dict by field id, a map a list of pairs, a date or time its number, so a value can be
migrated by hand (`migrated`) and compared bit for bit (`exact`). Arrays hold garbage under every null
and before the first list, and are slices of longer arrays wherever arrays can be.
"""

from __future__ import annotations

from decimal import Decimal as PythonDecimal
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import strategies as st

from instar.schema import (
    Decimal,
    Field,
    List,
    Map,
    Names,
    Primitive,
    Schema,
    Struct,
    Type,
    arrow_field,
    arrow_schema,
    arrow_type,
)
from instar.schema.types import INTERVAL_DAY_TIME, INTERVAL_YEAR_MONTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypothesis.strategies import DrawFn

__all__ = [
    "Row",
    "Value",
    "array_of",
    "batch_of",
    "batches",
    "exact",
    "migrated",
    "migrated_row",
    "random_leaf",
    "random_rows",
    "random_value",
    "rows_of",
    "values_of",
]

Value = Any
Row = dict[int, Value]

_INTEGERS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "date": 32}
_INTEGERS |= dict.fromkeys(INTERVAL_YEAR_MONTH, 32)
_INTEGERS |= dict.fromkeys(INTERVAL_DAY_TIME | {"timestamp", "timestamp_ntz"}, 64)
_STORED_AS_INT64 = INTERVAL_DAY_TIME | {"timestamp", "timestamp_ntz"}
_FLOATS = (0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.5, -(2.0**127), 2.0**-149)
_DOUBLES = (*_FLOATS, 0.1, 5e-324, 1.7976931348623157e308, 2.0**53 + 2)
_STRINGS = ("", "a", "b", "ab", "\x00", "日本", "\U0010ffff", "a" * 40)


def random_leaf(random: Random, type_: Type) -> Value:
    """Return a value of a type without members: often an extreme one."""
    match type_:
        case Decimal(precision=precision, scale=scale):
            most = 10**precision - 1
            digits = random.choice((0, 1, -1, most, -most, random.randint(-most, most)))
            return PythonDecimal(f"{digits}E-{scale}")  # arithmetic would round to the context's precision
        case Primitive(name="boolean"):
            return random.random() < 0.5
        case Primitive(name="float"):
            return random.choice(_FLOATS)
        case Primitive(name="double"):
            return random.choice(_DOUBLES)
        case Primitive(name="string"):
            return random.choice(_STRINGS)
        case Primitive(name="binary"):
            return random.choice((b"", b"\x00", b"\xff\xfe", b"a"))
        case Primitive(name=name):
            most = 2 ** (_INTEGERS[name] - 1) - 1
            return random.choice((0, 1, -1, most, -most - 1, random.randint(-most, most)))
    raise AssertionError(type_)


def random_value(random: Random, type_: Type, *, nullable: bool) -> Value:
    """Return a value of any type, None among them if it may be."""
    if nullable and random.random() < 0.25:
        return None
    match type_:
        case Struct(fields=members):
            return random_row(random, members)
        case List(element=element, element_nullable=element_nullable):
            size = random.choice((0, 0, 1, 2, 3))
            return [random_value(random, element, nullable=element_nullable) for _ in range(size)]
        case Map(key=key, value=value, value_nullable=value_nullable):
            drawn = [random_value(random, key, nullable=False) for _ in range(random.choice((0, 1, 2)))]
            keys = {_identity(k): k for k in drawn}
            return [(k, random_value(random, value, nullable=value_nullable)) for k in keys.values()]
    return random_leaf(random, type_)


def _identity(key: Value) -> str:
    """Return what makes a key of a map the same as another: zeros are equal, and so are all NaNs."""
    return repr(exact(key)).replace("-0x0.0p+0", "0x0.0p+0")


def random_row(random: Random, fields: tuple[Field, ...]) -> Row:
    """Return a value for each field, by id."""
    return {field.id: random_value(random, field.type, nullable=field.nullable) for field in fields}


def random_rows(random: Random, schema: Schema, size: int) -> list[Row]:
    """Return rows of a schema."""
    return [random_row(random, schema.fields) for _ in range(size)]


# --- plain values to Arrow ------------------------------------------------------------------------


def array_of(values: Sequence[Value], type_: Type, random: Random, names: Names = Names.COLUMN) -> pa.Array:
    """Build an array that is a slice of a longer one at every level, with garbage under its nulls."""
    before, after = random.choice(((0, 0), (2, 0), (0, 1), (3, 2)))
    padded = [
        *(random_value(random, type_, nullable=False) for _ in range(before)),
        *values,
        *(random_value(random, type_, nullable=False) for _ in range(after)),
    ]
    garbage = [random_value(random, type_, nullable=False) if v is None else v for v in padded]
    valid = [value is not None for value in padded]
    built = _build(garbage, valid, type_, random, names)
    return built.slice(before, len(values))


def _build(garbage: list[Value], valid: list[bool], type_: Type, random: Random, names: Names) -> pa.Array:
    target = arrow_type(type_, names)
    mask = None if all(valid) else pa.array([not ok for ok in valid])
    match type_:
        case Struct(fields=members):
            children = [array_of([value[m.id] for value in garbage], m.type, random, names) for m in members]
            fields = [arrow_field(member, names) for member in members]
            return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
        case List(element=element):
            unused = [random_value(random, element, nullable=False) for _ in range(random.choice((0, 0, 2)))]
            offsets, flat = _offsets(garbage, unused)
            return pa.ListArray.from_arrays(
                offsets, array_of(flat, element, random, names), type=target, mask=mask
            )
        case Map(key=key, value=value):
            entry = (random_value(random, key, nullable=False), random_value(random, value, nullable=False))
            offsets, flat = _offsets(garbage, [entry] * random.choice((0, 0, 2)))
            keys = array_of([k for k, _ in flat], key, random, names)
            items = array_of([v for _, v in flat], value, random, names)
            return pa.MapArray.from_arrays(offsets, keys, items, type=target, mask=mask)
    whole = pa.array(garbage, target)
    if mask is None:
        return whole
    validity = pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(target, len(garbage), [validity, *whole.buffers()[1:]])


def _offsets(lists: list[list[Value]], unused: list[Value]) -> tuple[pa.Array, list[Value]]:
    """Put lists end to end, after items that belong to none of them."""
    ends = [len(unused)]
    for items in lists:
        ends.append(ends[-1] + len(items))
    return pa.array(ends, pa.int32()), [*unused, *(item for items in lists for item in items)]


def batch_of(
    rows: Sequence[Row], schema: Schema, random: Random, names: Names = Names.COLUMN
) -> pa.RecordBatch:
    """Build a batch; each column is sliced in its own way."""
    columns = [array_of([row[f.id] for row in rows], f.type, random, names) for f in schema.fields]
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(schema, names))


@st.composite
def batches(draw: DrawFn, schema: Schema, most: int = 6) -> tuple[list[Row], pa.RecordBatch]:
    """Draw rows of a schema, and the same as a batch."""
    random = Random(draw(st.integers(0, 2**32 - 1)))  # drawing each value costs more than it tells
    rows = random_rows(random, schema, draw(st.integers(0, most)))
    return rows, batch_of(rows, schema, random)


# --- Arrow to plain values ------------------------------------------------------------------------


def values_of(array: pa.Array, type_: Type) -> list[Value]:
    """Read an array back, by position and without the code under test."""
    valid = array.is_valid().to_pylist()
    match type_:
        case Struct(fields=members):
            rows = _rows([array.field(at) for at in range(len(members))], members, len(array))
            return [row if ok else None for row, ok in zip(rows, valid, strict=True)]
        case List(element=element):
            inner = values_of(array.values, element)
            return [
                inner[start:end] if ok else None
                for start, end, ok in _spans(array.offsets.to_pylist(), valid)
            ]
        case Map(key=key, value=value):
            pairs = list(zip(values_of(array.keys, key), values_of(array.items, value), strict=True))
            return [
                pairs[start:end] if ok else None
                for start, end, ok in _spans(array.offsets.to_pylist(), valid)
            ]
        case Primitive(name="date"):
            array = array.view(pa.int32())
        case Primitive(name=name) if name in _STORED_AS_INT64:
            array = array.view(pa.int64())
    return list(array.to_pylist())


def _spans(offsets: list[int], valid: list[bool]) -> list[tuple[int, int, bool]]:
    return list(zip(offsets, offsets[1:], valid, strict=False)) if valid else []


def _rows(columns: list[pa.Array], fields: tuple[Field, ...], length: int) -> list[Row]:
    read = {f.id: values_of(column, f.type) for f, column in zip(fields, columns, strict=True)}
    return [{field_id: values[at] for field_id, values in read.items()} for at in range(length)]


def rows_of(batch: pa.RecordBatch, schema: Schema) -> list[Row]:
    """Read a batch back."""
    return _rows(batch.columns, schema.fields, batch.num_rows)


def exact(value: Value) -> Value:
    """Make a value comparable: NaN is NaN, and -0.0 is not 0.0."""
    match value:
        case float():
            return value.hex()
        case dict():
            return {field_id: exact(member) for field_id, member in value.items()}
        case tuple() | list():
            return [exact(item) for item in value]
    return value


# --- migration by hand ----------------------------------------------------------------------------


def migrated(value: Value, old: Type, new: Type) -> Value:
    """Migrate one plain value: a field is looked up by its id, and is null if it is not there."""
    if value is None:
        return None
    match old, new:
        case Struct(), Struct():
            return migrated_row(value, old.fields, new.fields)
        case List(), List():
            return [migrated(item, old.element, new.element) for item in value]
        case Map(), Map():
            return [(key, migrated(item, old.value, new.value)) for key, item in value]
        case _, Primitive(name="double"):
            return float(value)
    return value


def migrated_row(row: Row, old: tuple[Field, ...], new: tuple[Field, ...]) -> Row:
    """Migrate one row, or the members of one struct."""
    before = {field.id: field for field in old}
    return {
        field.id: migrated(row[field.id], before[field.id].type, field.type) if field.id in row else None
        for field in new
    }
