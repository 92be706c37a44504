"""Schemas as Spark's `StructType`, through its JSON, and back without loss.

Spark itself is never imported: a `StructType` is recognised by its `jsonValue`, and
`StructType.fromJson` takes what `spark_json` gives.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from instar.errors import InvalidSchemaError, UnsupportedTypeError
from instar.schema.algebra import fold_type
from instar.schema.ddl import UNSUPPORTED
from instar.schema.paths import ELEMENT, KEY, VALUE, format_path
from instar.schema.primitives import PRIMITIVE_ROWS, PRIMITIVES, SPARK_NAMES
from instar.schema.schema import Schema, number_fields
from instar.schema.types import Decimal, Field, List, Map, Primitive, Struct, Type
from instar.schema.wellformed import MAX_DEPTH, TOO_DEEP

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TypeJson", "schema_from_spark", "spark_json", "type_json"]

_DECIMAL = re.compile(r"decimal\(\s*(\d{1,9})\s*,\s*(-?\d{1,9})\s*\)")
_CHAR_METADATA: Final = "__CHAR_VARCHAR_TYPE_STRING"
_COLLATION_METADATA: Final = "__COLLATIONS"
_BY_BYTES: Final = " collate UTF8_BINARY"
"""The explicit form of Spark's default: strings that compare by their bytes."""


TypeJson = str | dict[str, Any]
"""A type as Spark's JSON says it: a name, or what is inside."""


def spark_json(schema: Schema) -> dict[str, Any]:
    """Return the schema as the JSON value of a Spark `StructType`."""
    return {"type": "struct", "fields": [_member_json(it, type_json(it.type)) for it in schema.fields]}


def schema_from_spark(value: dict[str, Any]) -> Schema:
    """Read the JSON value of a Spark `StructType`; ids count up from 1."""
    if value.get("type") != "struct":
        raise InvalidSchemaError(f"expected the JSON of a Spark struct, found a type {value.get('type')!r}")
    return Schema(number_fields(_fields(value, ())))


def _member_json(field: Field, type_: TypeJson) -> dict[str, Any]:
    return {"name": field.name, "type": type_, "nullable": field.nullable, "metadata": {}}


def type_json(type_: Type, member: Callable[[Field, TypeJson], dict[str, Any]] = _member_json) -> TypeJson:
    """Return a type as Spark's JSON says it; `member` says what the member of a struct is called there."""
    made: TypeJson = fold_type(
        type_,
        leaf=_leaf_json,
        list_=lambda slot, element: {
            "type": "array",
            "elementType": element,
            "containsNull": slot.nullable,
        },
        map_=lambda _, key, slot, value: {
            "type": "map",
            "keyType": key,
            "valueType": value,
            "valueContainsNull": slot.nullable,
        },
        struct=lambda members: {"type": "struct", "fields": [member(*each) for each in members]},
    )
    return made


def _leaf_json(type_: Primitive | Decimal) -> TypeJson:
    if isinstance(type_, Decimal):
        return f"decimal({type_.precision},{type_.scale})"
    return PRIMITIVE_ROWS[type_.name].spark or type_.name


def _fields(value: dict[str, Any], path: tuple[str, ...]) -> tuple[Field, ...]:
    try:
        return tuple(_field(member, path) for member in value["fields"])
    except (KeyError, TypeError, AttributeError) as error:
        where = f" in `{format_path(path)}`" if path else ""
        raise InvalidSchemaError(
            f"this is not the JSON of a Spark schema: a struct{where} lacks or misplaces {error}"
        ) from None


def _field(member: dict[str, Any], parent: tuple[str, ...]) -> Field:
    if not isinstance(member["name"], str):
        raise TypeError(f"the name of a column: {member['name']!r}")
    path = (*parent, member["name"])
    metadata = member.get("metadata") or {}
    if _CHAR_METADATA in metadata:
        raise UnsupportedTypeError(
            str(metadata[_CHAR_METADATA]), UNSUPPORTED["varchar"], path=format_path(path)
        )
    if metadata.get(_COLLATION_METADATA):
        raise UnsupportedTypeError(
            "string collate …", "strings compare by their bytes", path=format_path(path)
        )
    return Field(0, member["name"], _type(member["type"], path), bool(member["nullable"]))


def _type(value: str | dict[str, Any], path: tuple[str, ...]) -> Type:
    if isinstance(value, str):
        return _simple_type(value, path)
    if len(path) > MAX_DEPTH:
        raise InvalidSchemaError(TOO_DEEP)
    match value["type"]:
        case "array":
            return List(_type(value["elementType"], (*path, ELEMENT)), bool(value["containsNull"]))
        case "map":
            return Map(
                _type(value["keyType"], (*path, KEY)),
                _type(value["valueType"], (*path, VALUE)),
                bool(value["valueContainsNull"]),
            )
        case "struct":
            return Struct(_fields(value, path))
        case "udt":
            name = f"user-defined type {value.get('class') or value.get('pyClass')}"
            raise UnsupportedTypeError(name, "store its SQL type instead", path=format_path(path))
    raise UnsupportedTypeError(str(value["type"]), "there is no column type for it", path=format_path(path))


def _simple_type(value: str, path: tuple[str, ...]) -> Type:
    value = value.removesuffix(_BY_BYTES)
    name = SPARK_NAMES.get(value, value)
    if name in PRIMITIVES:
        return Primitive(name)
    decimal = _DECIMAL.fullmatch(value)
    try:
        if value == "decimal":
            return Decimal(10, 0)
        if decimal is not None:
            return Decimal(int(decimal[1]), int(decimal[2]))
    except ValueError as error:
        raise UnsupportedTypeError(value, str(error), path=format_path(path)) from None
    base = re.split(r"[( ]", value)[0]
    why = UNSUPPORTED.get(
        "calendar interval" if value == "interval" else base, "there is no column type for it"
    )
    raise UnsupportedTypeError(value, why, path=format_path(path))
