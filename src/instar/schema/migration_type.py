"""The migration type: a table's schema that also remembers every field it ever deleted.

It is folded from the whole history, so that a check never has to look at more than this one value.
The current schema is what remains when deleted fields are filtered out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from instar.schema.schema import Schema
from instar.schema.types import Decimal, Field, List, Map, Primitive, Struct, Type

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "MigrationField",
    "MigrationList",
    "MigrationMap",
    "MigrationStruct",
    "MigrationType",
    "Node",
    "current_type",
]


class MigrationList(NamedTuple):
    """A list whose element may hold deleted fields."""

    element: Node
    element_nullable: bool


class MigrationMap(NamedTuple):
    """A map whose value may hold deleted fields; its key never changes."""

    key: Type
    value: Node
    value_nullable: bool


class MigrationStruct(NamedTuple):
    """Members in physical order, the deleted ones where they were."""

    fields: tuple[MigrationField, ...]

    def live(self) -> dict[int, MigrationField]:
        """Return the members that are not deleted, by id and in order."""
        return {field.id: field for field in self.fields if not field.deleted}


class MigrationField(NamedTuple):
    """A field, and whether it has been deleted: once true, true forever."""

    id: int
    name: str
    type: Node
    nullable: bool
    deleted: bool


Node = Primitive | Decimal | MigrationList | MigrationMap | MigrationStruct


class MigrationType(NamedTuple):
    """The fold of a history: one struct of live and deleted fields."""

    root: MigrationStruct

    @staticmethod
    def start(schema: Schema) -> MigrationType:
        """Begin a history."""
        return MigrationType(MigrationStruct(tuple(_lift_field(field) for field in schema.fields)))

    def extend(self, schema: Schema) -> MigrationType:
        """Fold in the next schema, which must obey the rules (see `rules.py`)."""
        return MigrationType(_extend_struct(self.root, schema.fields))

    def current(self) -> Schema:
        """Return the latest schema: the deleted fields filtered out."""
        return Schema(_current_fields(self.root))

    def live_ids(self) -> frozenset[int]:
        """Return the id of every field that is not deleted."""
        return frozenset(field.id for field, dead in _walk(self.root) if not dead)

    def deleted_ids(self) -> frozenset[int]:
        """Return the id of every field that was deleted, itself or with the struct around it."""
        return frozenset(field.id for field, dead in _walk(self.root) if dead)


def _lift_field(field: Field) -> MigrationField:
    return MigrationField(field.id, field.name, _lift(field.type), field.nullable, deleted=False)


def _lift(type_: Type) -> Node:
    match type_:
        case Struct(fields=members):
            return MigrationStruct(tuple(_lift_field(member) for member in members))
        case List(element=element, element_nullable=nullable):
            return MigrationList(_lift(element), nullable)
        case Map(key=key, value=value, value_nullable=nullable):
            return MigrationMap(key, _lift(value), nullable)
    return type_


def _extend_struct(old: MigrationStruct, fields: tuple[Field, ...]) -> MigrationStruct:
    """Merge two orders: new fields go where the schema puts them, deleted ones stay behind their elder."""
    current = {field.id for field in fields}
    known = old.live()
    merged: list[MigrationField] = []
    rest = list(old.fields)

    def take_until(field_id: int | None) -> None:
        """Carry over deleted fields up to a live one, which the caller replaces."""
        while rest and rest[0].id != field_id:
            elder = rest.pop(0)
            if elder.id not in current:
                merged.append(elder._replace(deleted=True))

    for field in fields:
        if field.id in known:
            take_until(field.id)
            merged.append(_extend_field(rest.pop(0), field))
        else:
            merged.append(_lift_field(field))
    take_until(None)
    return MigrationStruct(tuple(merged))


def _extend_field(old: MigrationField, field: Field) -> MigrationField:
    return MigrationField(field.id, field.name, _extend(old.type, field.type), field.nullable, deleted=False)


def _extend(old: Node, type_: Type) -> Node:
    match old, type_:
        case MigrationStruct(), Struct(fields=members):
            return _extend_struct(old, members)
        case MigrationList(), List(element=element, element_nullable=nullable):
            return MigrationList(_extend(old.element, element), nullable)
        case MigrationMap(), Map(key=key, value=value, value_nullable=nullable):
            return MigrationMap(key, _extend(old.value, value), nullable)
    return _lift(type_)


def _current_fields(struct: MigrationStruct) -> tuple[Field, ...]:
    return tuple(
        Field(field.id, field.name, current_type(field.type), field.nullable)
        for field in struct.live().values()
    )


def current_type(node: Node) -> Type:
    """Filter the deleted fields out of one node."""
    match node:
        case MigrationStruct():
            return Struct(_current_fields(node))
        case MigrationList(element=element, element_nullable=nullable):
            return List(current_type(element), nullable)
        case MigrationMap(key=key, value=value, value_nullable=nullable):
            return Map(key, current_type(value), nullable)
    return node


def _walk(node: Node, *, dead: bool = False) -> Iterator[tuple[MigrationField, bool]]:
    """Yield every field with whether it, or a struct around it, is deleted."""
    match node:
        case MigrationStruct(fields=fields):
            for field in fields:
                yield field, dead or field.deleted
                yield from _walk(field.type, dead=dead or field.deleted)
        case MigrationList(element=element):
            yield from _walk(element, dead=dead)
        case MigrationMap(key=key, value=value):
            yield from _walk(_lift(key), dead=dead)
            yield from _walk(value, dead=dead)
