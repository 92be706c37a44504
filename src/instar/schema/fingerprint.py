"""A fingerprint of what a schema says: names, types, nullability and order, at every level.

Field ids are left out: two tables with the same columns have the same fingerprint. Everything is
length-prefixed, so no choice of names can make two schemas look alike.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from instar.schema.algebra import fold_type
from instar.schema.types import Decimal, Struct

if TYPE_CHECKING:
    from instar.schema.algebra import Slot
    from instar.schema.schema import Schema
    from instar.schema.types import Field, Primitive

__all__ = ["canonical_bytes", "fingerprint"]


def fingerprint(schema: Schema) -> str:
    """Return the SHA-256 of a schema's canonical bytes, in hex."""
    return hashlib.sha256(canonical_bytes(schema)).hexdigest()


def canonical_bytes(schema: Schema) -> bytes:
    """Encode what a schema says so that different schemas never have the same bytes."""
    return fold_type(
        Struct(schema.fields),
        leaf=_leaf,
        list_=lambda slot, element: b"L" + _flag(slot) + element,
        map_=lambda _, key, slot, value: b"M" + key + _flag(slot) + value,
        struct=_struct,
    )


def _struct(members: list[tuple[Field, bytes]]) -> bytes:
    made = b"".join(_text(field.name) + _flag(field) + type_ for field, type_ in members)
    return b"S" + _number(len(members)) + made


def _flag(slot: Slot | Field) -> bytes:
    return b"?" if slot.nullable else b"!"


def _leaf(type_: Primitive | Decimal) -> bytes:
    if isinstance(type_, Decimal):
        return b"D" + _number(type_.precision) + _number(type_.scale)
    return b"P" + _text(type_.name)


def _text(text: str) -> bytes:
    data = text.encode()
    return _number(len(data)) + data


def _number(number: int) -> bytes:
    return number.to_bytes(4, "big")
