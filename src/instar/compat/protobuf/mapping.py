"""Messages to columns: which type each kind of field is stored under.

The one place that says so, for the check of queries, for decoding records and for docs/compatibility.md.
Members are ordered by field number, so the order of declarations means nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from instar.compat.size import ColumnCount
from instar.schema import Decimal, Field, List, Map, Primitive, Struct, Type

if TYPE_CHECKING:
    from instar.compat.protobuf.model import ProtobufField, ProtobufMessage, ProtobufVersion

__all__ = [
    "PRESENT",
    "SCALARS",
    "WELL_KNOWN",
    "check_columns",
    "column_type",
    "columns",
    "is_plain_message",
    "tables",
]

SCALARS: Final[dict[str, Type]] = {
    "bool": Primitive("boolean"),
    "int32": Primitive("int"),
    "sint32": Primitive("int"),
    "sfixed32": Primitive("int"),
    "int64": Primitive("bigint"),
    "sint64": Primitive("bigint"),
    "sfixed64": Primitive("bigint"),
    "uint32": Primitive("bigint"),
    "fixed32": Primitive("bigint"),
    "uint64": Decimal(20, 0),
    "fixed64": Decimal(20, 0),
    "float": Primitive("float"),
    "double": Primitive("double"),
    "string": Primitive("string"),
    "bytes": Primitive("binary"),
    "enum": Primitive("string"),
}
"""Unsigned numbers get the next type that holds them all; enums are stored by name."""

_WRAPPERS: Final = {
    f"google.protobuf.{name}Value": SCALARS[kind]
    for name, kind in {
        "Bool": "bool",
        "Int32": "int32",
        "Int64": "int64",
        "UInt32": "uint32",
        "UInt64": "uint64",
        "Float": "float",
        "Double": "double",
        "String": "string",
        "Bytes": "bytes",
    }.items()
}

WELL_KNOWN: Final[dict[str, Type]] = {
    "google.protobuf.Timestamp": Primitive("timestamp"),
    "google.protobuf.Duration": Primitive("interval day to second"),
    "google.protobuf.Struct": Primitive("string"),
    "google.protobuf.Value": Primitive("string"),
    "google.protobuf.ListValue": Primitive("string"),
    **_WRAPPERS,
}
"""Messages of protobuf itself that have a type of their own; free-form ones are stored as JSON text."""

PRESENT: Final = "_present"
"""The member of a message without fields: a struct needs one, and fields may come later."""


def tables(version: ProtobufVersion) -> dict[str, tuple[Field, ...]]:
    """Return the columns of each root, with field numbers for ids: they are unique in one message only."""
    return {root: columns(version, root) for root in version.roots}


def check_columns(version: ProtobufVersion) -> None:
    """Raise if records of a root become more columns than can be handled."""
    for root in version.roots:
        _count(version, root, (), ColumnCount())


def _count(version: ProtobufVersion, name: str, above: tuple[str, ...], count: ColumnCount) -> None:
    if name in above or name in WELL_KNOWN or name not in version.messages:
        return
    fields = version.messages[name].fields
    with count.inside(len(fields)):
        for field in fields:
            _count(version, field.type_name, (*above, name), count)


def columns(version: ProtobufVersion, root: str) -> tuple[Field, ...]:
    """Return the columns that records of one message become."""
    return _members(version, version.messages[root], (root,))


def _members(version: ProtobufVersion, message: ProtobufMessage, above: tuple[str, ...]) -> tuple[Field, ...]:
    if not message.fields:
        return (Field(0, PRESENT, Primitive("boolean")),)
    return tuple(Field(it.number, it.name, column_type(version, it, above)) for it in message.fields)


def column_type(version: ProtobufVersion, field: ProtobufField, above: tuple[str, ...] = ()) -> Type:
    """Return the type that a field is stored under; `above` are the messages that it is nested in.

    A message inside itself would have no end: it is stored as its own bytes.
    """
    entry = _map_entry(version, field)
    if entry is not None:
        key, value = entry.fields
        return Map(column_type(version, key), column_type(version, value, above), value_nullable=False)
    single = _single(version, field, above)
    return List(single, element_nullable=False) if field.repeated else single


def _single(version: ProtobufVersion, field: ProtobufField, above: tuple[str, ...]) -> Type:
    if field.type not in {"message", "group"}:
        return SCALARS[field.type]
    known = WELL_KNOWN.get(field.type_name)
    if known is not None:
        return known
    if field.type_name in above:
        return SCALARS["bytes"]
    return Struct(_members(version, version.messages[field.type_name], (*above, field.type_name)))


def _map_entry(version: ProtobufVersion, field: ProtobufField) -> ProtobufMessage | None:
    message = version.messages.get(field.type_name)
    return message if message is not None and message.is_map_entry else None


def is_plain_message(field: ProtobufField) -> bool:
    """Whether a field holds a message that has no type of its own."""
    return field.type in {"message", "group"} and field.type_name not in WELL_KNOWN
