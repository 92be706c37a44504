"""The ways through a type agree with each other, and with what a type says of itself."""

from __future__ import annotations

from hypothesis import given

from instar.schema import Field, List, Map, Struct, Type
from instar.schema.algebra import (
    Slot,
    fold_type,
    map_members,
    member_fields,
    slots,
    walk_fields,
    walk_slots,
    walk_types,
)
from tests.properties.schema.strategies import types


def rebuilt(type_: Type) -> Type:
    """Take a type apart and put it together again."""

    def map_(_: Slot, key: Type, slot: Slot, value: Type) -> Type:
        return Map(key, value, slot.nullable)

    def struct(members: list[tuple[Field, Type]]) -> Type:
        return Struct(tuple(Field(own.id, own.name, inside, own.nullable) for own, inside in members))

    return fold_type(type_, lambda leaf: leaf, lambda slot, it: List(it, slot.nullable), map_, struct)


@given(types())
def test_a_fold_sees_everything_once(type_: Type) -> None:
    """What is built of its pieces is the type itself, and as many types are counted as a walk meets."""
    assert rebuilt(type_) == type_
    count = fold_type(
        type_,
        lambda _: 1,
        lambda _, element: 1 + element,
        lambda _, key, __, value: 1 + key + value,
        lambda members: 1 + sum(number for _, number in members),
    )
    assert count == len(list(walk_types(type_))) == 1 + len(list(walk_slots(type_)))


@given(types())
def test_members_are_met_on_every_way(type_: Type) -> None:
    """A walk over slots meets the fields that a walk over fields meets, in the same order."""
    fields = [slot.field for _, slot in walk_slots(type_) if slot.field is not None]
    assert fields == list(walk_fields(member_fields(type_)))
    assert map_members(type_, lambda member: member) == type_
    renamed = map_members(type_, lambda member: Field(member.id, "other", member.type, member.nullable))
    assert all(field.name == "other" for field in member_fields(renamed))


@given(types())
def test_keys_can_be_passed_over(type_: Type) -> None:
    """Without keys, a map has its value only."""
    inside = list(slots(type_, keys=False))
    assert [slot for slot in slots(type_) if not (isinstance(type_, Map) and slot.name == "key")] == inside
