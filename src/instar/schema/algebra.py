"""Walking through types: what is inside them, and other things made of it, written once for all kinds.

A type holds others in its slots: a struct in its members, a list in its element, a map in its key and its
value. Code that depends on the kind matches on the type; all other code uses this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from instar.schema.paths import ELEMENT, KEY, VALUE
from instar.schema.types import Decimal, Field, List, Map, Primitive, Struct, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = [
    "Slot",
    "fold_type",
    "map_members",
    "member_fields",
    "slots",
    "walk_fields",
    "walk_slots",
    "walk_types",
]

_T = TypeVar("_T")


class Slot(NamedTuple):
    """A place directly inside a type: a member of a struct, an element, a key or a value."""

    name: str
    """The step to it in a path: the member's name, `element`, `key` or `value`."""
    type: Type
    nullable: bool
    field: Field | None = None
    """The member, if it is one."""


def slots(type_: Type, *, keys: bool = True) -> Iterator[Slot]:
    """Yield what is directly inside a type, without the keys of maps if nobody asks for them."""
    match type_:
        case Struct(fields=members):
            for member in members:
                yield Slot(member.name, member.type, member.nullable, member)
        case List(element=element, element_nullable=nullable):
            yield Slot(ELEMENT, element, nullable)
        case Map(key=key, value=value, value_nullable=nullable):
            if keys:
                yield Slot(KEY, key, nullable=False)
            yield Slot(VALUE, value, nullable)


def walk_slots(type_: Type, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Slot]]:
    """Yield everything inside a type at every level, with the path to it, parents before children."""
    for slot in slots(type_):
        inside = (*path, slot.name)
        yield inside, slot
        yield from walk_slots(slot.type, inside)


def walk_types(type_: Type) -> Iterator[Type]:
    """Yield a type and all types inside it."""
    yield type_
    for slot in slots(type_):
        yield from walk_types(slot.type)


def member_fields(type_: Type, *, keys: bool = True) -> Iterator[Field]:
    """Yield the struct members directly below a type, looking through lists and maps."""
    for slot in slots(type_, keys=keys):
        if slot.field is not None:
            yield slot.field
        else:
            yield from member_fields(slot.type, keys=keys)


def walk_fields(fields: Iterable[Field]) -> Iterator[Field]:
    """Yield every field at every level of nesting, parents before children."""
    for field in fields:
        yield field
        yield from walk_fields(member_fields(field.type))


def map_members(type_: Type, change: Callable[[Field], Field]) -> Type:
    """Return a type with the struct members directly below it changed, looking through lists and maps."""
    match type_:
        case Struct(fields=members):
            return Struct(tuple(change(member) for member in members))
        case List(element=element, element_nullable=nullable):
            return List(map_members(element, change), nullable)
        case Map(key=key, value=value, value_nullable=nullable):
            return Map(map_members(key, change), map_members(value, change), nullable)
    return type_


def fold_type(
    type_: Type,
    leaf: Callable[[Primitive | Decimal], _T],
    list_: Callable[[Slot, _T], _T],
    map_: Callable[[Slot, _T, Slot, _T], _T],
    struct: Callable[[list[tuple[Field, _T]]], _T],
) -> _T:
    """Make something of a type, from the inside out: of each kind, of what was made of its slots."""

    def fold(inner: Type) -> _T:
        match inner:
            case Struct(fields=members):
                return struct([(member, fold(member.type)) for member in members])
            case List():
                (element,) = slots(inner)
                return list_(element, fold(element.type))
            case Map():
                key, value = slots(inner)
                return map_(key, fold(key.type), value, fold(value.type))
        return leaf(inner)

    return fold(type_)
