"""What must be read of a part for a reader: the fields that both know, and never nothing at all."""

from __future__ import annotations

from functools import lru_cache

from msgspec.structs import replace

from instar.schema import Field, List, Map, Primitive, Schema, Struct, Type

__all__ = ["needed_columns", "needed_fields"]


@lru_cache(maxsize=1024)
def needed_fields(written: Schema, reader: Schema) -> Schema:
    """Return what must be read of a part: the fields that the reader has too, at every level.

    Where it has none of a struct's members, one is read all the same: it tells which structs are null. And
    of a part that has nothing for the reader, one column tells how many rows there are.
    """
    fields = _needed(written.fields, reader.fields) or (_cheapest(written.fields),)
    return Schema(fields)


def needed_columns(written: Schema, reader: Schema) -> Schema:
    """Return the top-level fields that the reader has too, or any one: others' structs are read whole."""
    wanted = {field.id for field in reader.fields}
    fields = tuple(field for field in written.fields if field.id in wanted)
    return Schema(fields or (min(written.fields, key=lambda field: _cost(field.type)),))


def _needed(written: tuple[Field, ...], reader: tuple[Field, ...]) -> tuple[Field, ...]:
    wanted = {field.id: field for field in reader}
    return tuple(
        replace(field, type=_needed_type(field.type, wanted[field.id].type))
        for field in written
        if field.id in wanted
    )


def _needed_type(written: Type, reader: Type) -> Type:
    match written, reader:
        case Struct(), Struct():
            return Struct(_needed(written.fields, reader.fields) or (_cheapest(written.fields),))
        case List(), List():
            return List(_needed_type(written.element, reader.element), written.element_nullable)
        case Map(), Map():
            return Map(written.key, _needed_type(written.value, reader.value), written.value_nullable)
    return written


def _cheapest(fields: tuple[Field, ...]) -> Field:
    """Return one of the fields, with a single column if it can be."""
    field = min(fields, key=lambda field: _cost(field.type))
    return replace(field, type=_cheapest_type(field.type))


def _cheapest_type(type_: Type) -> Type:
    match type_:
        case Struct(fields=members):
            return Struct((_cheapest(members),))
        case List(element=element, element_nullable=nullable):
            return List(_cheapest_type(element), nullable)
        case Map(key=key, value=value, value_nullable=nullable):
            return Map(key, _cheapest_type(value), nullable)
    return type_


def _cost(type_: Type) -> int:
    """Guess what reading a field takes: texts are longer than numbers, and lists longer than both."""
    match type_:
        case Primitive(name="string" | "binary"):
            return 1
        case Struct(fields=members):
            return min(_cost(member.type) for member in members)
        case List() | Map():
            return 2
    return 0
