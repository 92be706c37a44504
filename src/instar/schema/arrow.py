"""Schemas as Arrow schemas, and back without loss.

A table's types each have one Arrow type; intervals that Arrow cannot tell apart are named in field
metadata. Inside parts a field is called `f<id>`; to people it has its column name.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import pyarrow as pa

from instar.errors import InvalidSchemaError, UnsupportedTypeError
from instar.schema.algebra import Slot, fold_type
from instar.schema.paths import ELEMENT, KEY, VALUE, format_path
from instar.schema.primitives import PRIMITIVE_ROWS, PRIMITIVES
from instar.schema.schema import Schema, number_fields
from instar.schema.types import (
    MAX_PRECISION,
    Decimal,
    Field,
    List,
    Map,
    Primitive,
    Struct,
    Type,
)
from instar.schema.wellformed import MAX_DEPTH, TOO_DEEP

__all__ = [
    "ARROW_NAMES",
    "TYPE_METADATA",
    "Names",
    "arrow_field",
    "arrow_schema",
    "arrow_type",
    "field_name",
    "find_named",
    "said_type",
    "schema_from_arrow",
]

_FIELD_ID: Final = b"PARQUET:field_id"
TYPE_METADATA: Final = b"instar:type"
"""Names a type for which Arrow has none of its own."""
_DURATION: Final = "interval day to second"

_TO_ARROW: Final[dict[str, pa.DataType]] = {
    row.name: getattr(pa, row.arrow[0])(*row.arrow[1:]) for row in PRIMITIVE_ROWS.values()
}
ARROW_NAMES: Final = {
    type_: name for name, type_ in _TO_ARROW.items() if not PRIMITIVE_ROWS[name].is_said
} | {
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
}

_REFUSED: Final = (
    (lambda type_: type_ == pa.uuid(), "Spark has no such type; cast it to binary(16), or to string"),
    (pa.types.is_union, "a column has one type; use a struct with a member for each"),
    (
        pa.types.is_unsigned_integer,
        "there are no unsigned columns; cast it to the next larger signed integer",
    ),
    (pa.types.is_float16, "there are no half floats; cast it to float"),
    (pa.types.is_date64, "dates are kept in days; cast it to date32"),
    (
        pa.types.is_time,
        "Spark has no times of day by default; cast it to string, or to int64 and then duration[us]",
    ),
    (pa.types.is_interval, "months and days have no order; use int32 months or duration[us]"),
    (pa.types.is_null, "a column of nulls has no type; choose the type it will have"),
    (
        pa.types.is_decimal,
        "decimals have at most 38 digits and a scale from 0 to that; cast it to decimal128",
    ),
)


class Names(Enum):
    """What a field is called in Arrow data."""

    COLUMN = "column"
    """The name that people use."""
    FIELD = "field"
    """`f<id>`, as inside parts: a rename touches no data."""


def field_name(field_id: int) -> str:
    """Return the physical name of a field, the same forever."""
    return f"f{field_id}"


def arrow_schema(schema: Schema, names: Names = Names.COLUMN) -> pa.Schema:
    """Return the Arrow schema of a table's data."""
    return pa.schema([arrow_field(field, names) for field in schema.fields])


def arrow_field(field: Field, names: Names = Names.COLUMN) -> pa.Field:
    """Return the Arrow field, which carries its id the way Parquet does."""
    return _member(field, arrow_type(field.type, names), names)


def arrow_type(type_: Type, names: Names = Names.COLUMN) -> pa.DataType:
    """Return the Arrow type that holds every value of a type."""
    if isinstance(type_, Primitive | Decimal):  # most are, and an append asks for each column a few times
        return _arrow_leaf(type_)
    return fold_type(
        type_,
        leaf=_arrow_leaf,
        list_=lambda slot, element: pa.list_(_named(ELEMENT, slot, element)),
        map_=lambda first, key, second, value: pa.map_(_named(KEY, first, key), _named(VALUE, second, value)),
        struct=lambda members: pa.struct([_member(*each, names) for each in members]),
    )


def schema_from_arrow(schema: pa.Schema) -> Schema:
    """Read an Arrow schema; ids count up from 1, whatever ids it carries: those belong to another table."""
    return Schema(number_fields(_from_field(field, (field.name,)) for field in schema))


def _arrow_leaf(type_: Primitive | Decimal) -> pa.DataType:
    if isinstance(type_, Decimal):
        return pa.decimal128(type_.precision, type_.scale)
    return _TO_ARROW[type_.name]


def _member(field: Field, made: pa.DataType, names: Names) -> pa.Field:
    name = field.name if names is Names.COLUMN else field_name(field.id)
    return _named(name, field, made, {_FIELD_ID: str(field.id).encode()})


def _named(
    name: str, slot: Slot | Field, made: pa.DataType, metadata: dict[bytes, bytes] | None = None
) -> pa.Field:
    """Make an Arrow field, naming the type in its metadata where Arrow has no type of its own for it."""
    if isinstance(slot.type, Primitive) and PRIMITIVE_ROWS[slot.type.name].is_said:
        metadata = {**(metadata or {}), TYPE_METADATA: slot.type.name.encode()}
    return pa.field(name, made, slot.nullable, metadata)


def _from_field(field: pa.Field, path: tuple[str, ...]) -> Field:
    return Field(0, field.name, _from_type(field, path), field.nullable)


def _from_type(field: pa.Field, path: tuple[str, ...]) -> Type:
    type_ = field.type
    if len(path) > MAX_DEPTH:
        raise InvalidSchemaError(TOO_DEEP)
    if pa.types.is_dictionary(type_):
        return _from_type(pa.field(field.name, type_.value_type), path)
    if _is_list(type_):
        element = type_.value_field
        return List(_from_type(element, (*path, ELEMENT)), element.nullable)
    if pa.types.is_map(type_):
        key, value = type_.key_field, type_.item_field
        return Map(_from_type(key, (*path, KEY)), _from_type(value, (*path, VALUE)), value.nullable)
    if pa.types.is_struct(type_):
        return Struct(tuple(_from_field(member, (*path, member.name)) for member in type_.fields))
    leaf = _find_leaf(field)
    if leaf is None:
        raise UnsupportedTypeError(str(type_), why_refused(type_), path=format_path(path))
    return leaf


def why_refused(type_: pa.DataType) -> str:
    """Return why no column has an Arrow type, and what to do about it."""
    return next(
        (why for test, why in _REFUSED if test(type_)), "there is no column type for it; cast it first"
    )


def said_type(field: pa.Field) -> str:
    """Return the name of the type that an Arrow field is said to have, or nothing."""
    named: bytes = (field.metadata or {}).get(TYPE_METADATA, b"")
    return named.decode("utf-8", "replace")


def find_named(field: pa.Field) -> Primitive | None:
    """Return the type that an Arrow field is said to have, where Arrow has none of its own for it."""
    named = said_type(field)
    said = named in PRIMITIVES and arrow_type(Primitive(named)) == field.type
    return Primitive(named) if said else None


def _find_leaf(field: pa.Field) -> Type | None:
    type_ = field.type
    named = find_named(field)
    if named is not None:
        return named
    name = ARROW_NAMES.get(type_)
    if pa.types.is_fixed_size_binary(type_):
        name = "binary"
    elif pa.types.is_timestamp(type_):
        name = "timestamp_ntz" if type_.tz is None else "timestamp"
    elif pa.types.is_duration(type_):
        name = _DURATION
    if name is not None:
        return Primitive(name)
    if (
        pa.types.is_decimal(type_)
        and type_.precision <= MAX_PRECISION
        and 0 <= type_.scale <= type_.precision
    ):
        return Decimal(type_.precision, type_.scale)
    return None


def _is_list(type_: pa.DataType) -> bool:
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    views = (pa.types.is_list_view, pa.types.is_large_list_view)
    return any(test(type_) for test in tests + views)
