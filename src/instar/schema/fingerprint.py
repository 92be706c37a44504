"""A fingerprint of what a schema says: names, types, nullability and order, at every level.

Field ids are left out: two tables with the same columns have the same fingerprint. Everything is
length-prefixed, so no choice of names can make two schemas look alike.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from instar.schema.types import Decimal, Field, List, Map, Primitive, Struct, Type

if TYPE_CHECKING:
    from instar.schema.schema import Schema

__all__ = ["canonical_bytes", "fingerprint"]


def fingerprint(schema: Schema) -> str:
    """Return the SHA-256 of a schema's canonical bytes, in hex."""
    return hashlib.sha256(canonical_bytes(schema)).hexdigest()


def canonical_bytes(schema: Schema) -> bytes:
    """Encode what a schema says so that different schemas never have the same bytes."""
    return _struct(schema.fields)


def _struct(fields: tuple[Field, ...]) -> bytes:
    members = b"".join(_text(field.name) + _slot(field.type, field.nullable) for field in fields)
    return b"S" + _number(len(fields)) + members


def _slot(type_: Type, nullable: bool) -> bytes:  # noqa: FBT001 -- a type and its flag
    return (b"?" if nullable else b"!") + _type(type_)


def _type(type_: Type) -> bytes:
    match type_:
        case Primitive(name=name):
            return b"P" + _text(name)
        case Decimal(precision=precision, scale=scale):
            return b"D" + _number(precision) + _number(scale)
        case List(element=element, element_nullable=nullable):
            return b"L" + _slot(element, nullable)
        case Map(key=key, value=value, value_nullable=nullable):
            return b"M" + _type(key) + _slot(value, nullable)
        case Struct(fields=fields):
            return _struct(fields)


def _text(text: str) -> bytes:
    data = text.encode()
    return _number(len(data)) + data


def _number(number: int) -> bytes:
    return number.to_bytes(4, "big")
