"""The evolution rules: what a schema changes in a history, and whether that is allowed.

`compare` walks the migration type and a schema once and names every change; five kinds are
permitted, at every level of nesting, and all others are violations.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

import msgspec

from instar.schema.algebra import slots
from instar.schema.migration_type import (
    MigrationField,
    MigrationList,
    MigrationMap,
    MigrationStruct,
    MigrationType,
    Node,
    current_type,
)
from instar.schema.paths import ELEMENT, KEY, VALUE, format_path
from instar.schema.primitives import PRIMITIVE_ROWS
from instar.schema.text import format_field, format_type
from instar.schema.types import Decimal, Field, List, Map, Primitive, Struct, Type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.schema.schema import Schema

__all__ = ["PERMITTED", "Change", "ChangeKind", "can_widen", "compare"]


class ChangeKind(Enum):
    """What happened to a field. The first five are permitted."""

    ADDED = "added"
    DELETED = "deleted"
    RENAMED = "renamed"
    MADE_NULLABLE = "made nullable"
    WIDENED = "widened"

    ADDED_REQUIRED = "added as not null"
    MADE_REQUIRED = "made not null"
    NARROWED = "narrowed"
    RETYPED = "type changed"
    KEY_CHANGED = "map key changed"
    REORDERED = "reordered"
    RECREATED = "deleted id used again"
    MOVED = "moved"


PERMITTED: Final = frozenset(
    {ChangeKind.ADDED, ChangeKind.DELETED, ChangeKind.RENAMED, ChangeKind.MADE_NULLABLE, ChangeKind.WIDENED}
)


class Change(msgspec.Struct, frozen=True):
    """One difference between a history and a schema.

    `path` has the names of the new schema, or of the old one for a deleted field. `ids` are the field
    ids from the top-level column down to the field; an element or a value of a list or map has no id of
    its own, so its change carries the ids of the field around it. A change of type that makes two
    subtrees incomparable is one change: nothing inside is compared.
    """

    kind: ChangeKind
    path: str
    ids: tuple[int, ...]
    old: str | None
    new: str | None

    @property
    def permitted(self) -> bool:
        """Whether the rules allow this change."""
        return self.kind in PERMITTED

    @property
    def reason(self) -> str:
        """Say why, in a sentence, and what to do instead if it is not permitted."""
        return _REASONS[self.kind].format(old=self.old, new=self.new)

    @property
    def summary(self) -> str:
        """Say what changes, without the reason."""
        return _SUMMARIES[self.kind].format(old=self.old, new=self.new)

    def __str__(self) -> str:
        where = f"`{self.path}` (field {self.ids[-1]})" if self.ids else "the table"
        return f"{where} {self.summary}: {self.reason}"


_SUMMARIES: Final = {
    ChangeKind.ADDED: "is added",
    ChangeKind.DELETED: "is deleted",
    ChangeKind.RENAMED: "is renamed from `{old}`",
    ChangeKind.MADE_NULLABLE: "becomes nullable",
    ChangeKind.WIDENED: "is widened from {old} to {new}",
    ChangeKind.ADDED_REQUIRED: "cannot be added as not null",
    ChangeKind.MADE_REQUIRED: "cannot become not null",
    ChangeKind.NARROWED: "cannot be narrowed from {old} to {new}",
    ChangeKind.RETYPED: "cannot change from {old} to {new}",
    ChangeKind.KEY_CHANGED: "cannot change its keys from {old} to {new}",
    ChangeKind.REORDERED: "cannot change the order of its fields to {new}",
    ChangeKind.RECREATED: "cannot be created under this id",
    ChangeKind.MOVED: "cannot be created under this id",
}

_REASONS: Final = {
    ChangeKind.ADDED: "data written before reads as null",
    ChangeKind.DELETED: "its values are no longer read, and its id is never used again",
    ChangeKind.RENAMED: "a field is known by its id, so no data changes",
    ChangeKind.MADE_NULLABLE: "data written before has no nulls, and stays as it is",
    ChangeKind.WIDENED: "every {old} is also a {new}",
    ChangeKind.ADDED_REQUIRED: "parts already written have no values for it. Add it as a nullable column",
    ChangeKind.MADE_REQUIRED: "parts already written may hold nulls. Leave it nullable",
    ChangeKind.NARROWED: "parts already written hold values of {old}, which {new} cannot represent. "
    "Add a new column of type {new} instead",
    ChangeKind.RETYPED: "parts already written hold values of {old}, which are not {new}. "
    "Add a new column of type {new} instead",
    ChangeKind.KEY_CHANGED: "keys that differ could become equal. Add a new map column instead",
    ChangeKind.REORDERED: "rows are sorted by the order {old}. Keep the fields that stay in this order",
    ChangeKind.RECREATED: "the id belongs to a deleted field whose values would come back. Use a new id",
    ChangeKind.MOVED: "the id belongs to a field in another place. Use a new id",
}


def compare(history: MigrationType, schema: Schema) -> tuple[Change, ...]:
    """Name every change that a schema makes to a history, in the order of the new schema."""
    return tuple(_Comparison(history).struct(history.root, schema.fields, (), ()))


def can_widen(old: Type, new: Type) -> bool:
    """Whether every value of one type is, without loss, a value of the other (and the types differ)."""
    match old, new:
        case Primitive(), Primitive():
            return new.name in PRIMITIVE_ROWS[old.name].wider
        case Decimal(), Decimal():
            integer_digits = old.precision - old.scale
            return old != new and new.precision - new.scale >= integer_digits and new.scale >= old.scale
    return False


class _Comparison:
    """One walk over two trees; it knows the ids of the whole table."""

    def __init__(self, history: MigrationType) -> None:
        self.live = history.live_ids()
        self.deleted = history.deleted_ids()

    def struct(
        self, old: MigrationStruct, fields: tuple[Field, ...], path: tuple[str, ...], ids: tuple[int, ...]
    ) -> Iterator[Change]:
        known = old.live()
        kept = {field.id for field in fields if field.id in known}
        for elder in known.values():
            if elder.id not in kept:
                where = format_path((*path, elder.name))
                yield Change(ChangeKind.DELETED, where, (*ids, elder.id), _format_old(elder), None)
        before = [elder.name for elder in known.values() if elder.id in kept]
        after = [known[field.id].name for field in fields if field.id in kept]
        if before != after:
            yield Change(ChangeKind.REORDERED, format_path(path), ids, ", ".join(before), ", ".join(after))
        for field in fields:
            if field.id in known:
                yield from self.field(known[field.id], field, path, ids)
            else:
                yield from self.added(field, path, ids)

    def added(self, field: Field, path: tuple[str, ...], ids: tuple[int, ...]) -> Iterator[Change]:
        kind = ChangeKind.ADDED if field.nullable else ChangeKind.ADDED_REQUIRED
        kind = self.reuse(field.id) or kind
        yield Change(kind, format_path((*path, field.name)), (*ids, field.id), None, format_field(field))
        yield from self.added_members(field.type, (*path, field.name), (*ids, field.id))

    def added_members(self, type_: Type, path: tuple[str, ...], ids: tuple[int, ...]) -> Iterator[Change]:
        """Inside a new field anything goes, except ids that are taken."""
        for slot in slots(type_):
            inside, within = (*path, slot.name), ids
            if slot.field is not None:
                within = (*ids, slot.field.id)
                reuse = self.reuse(slot.field.id)
                if reuse is not None:
                    yield Change(reuse, format_path(inside), within, None, format_field(slot.field))
            yield from self.added_members(slot.type, inside, within)

    def reuse(self, field_id: int) -> ChangeKind | None:
        if field_id in self.deleted:
            return ChangeKind.RECREATED
        return ChangeKind.MOVED if field_id in self.live else None

    def field(
        self, old: MigrationField, new: Field, path: tuple[str, ...], ids: tuple[int, ...]
    ) -> Iterator[Change]:
        where, ids = (*path, new.name), (*ids, new.id)
        if old.name != new.name:
            yield Change(ChangeKind.RENAMED, format_path(where), ids, old.name, new.name)
        yield from self.nullability(old.nullable, new.nullable, where, ids)
        yield from self.type(old.type, new.type, where, ids)

    def nullability(
        self,
        old: bool,  # noqa: FBT001 -- two flags of one kind, compared
        new: bool,  # noqa: FBT001
        path: tuple[str, ...],
        ids: tuple[int, ...],
    ) -> Iterator[Change]:
        if new and not old:
            yield Change(ChangeKind.MADE_NULLABLE, format_path(path), ids, "not null", "nullable")
        if old and not new:
            yield Change(ChangeKind.MADE_REQUIRED, format_path(path), ids, "nullable", "not null")

    def type(self, old: Node, new: Type, path: tuple[str, ...], ids: tuple[int, ...]) -> Iterator[Change]:
        match old, new:
            case MigrationStruct(), Struct(fields=members):
                yield from self.struct(old, members, path, ids)
            case MigrationList(), List(element=element, element_nullable=nullable):
                inside = (*path, ELEMENT)
                yield from self.nullability(old.element_nullable, nullable, inside, ids)
                yield from self.type(old.element, element, inside, ids)
            case MigrationMap(), Map(key=key, value=value, value_nullable=nullable):
                if old.key != key:
                    where = format_path((*path, KEY))
                    yield Change(ChangeKind.KEY_CHANGED, where, ids, format_type(old.key), format_type(key))
                inside = (*path, VALUE)
                yield from self.nullability(old.value_nullable, nullable, inside, ids)
                yield from self.type(old.value, value, inside, ids)
            case _ if old != new:
                before = current_type(old)
                kind = _retyping(before, new)
                yield Change(kind, format_path(path), ids, format_type(before), format_type(new))


def _retyping(old: Type, new: Type) -> ChangeKind:
    if can_widen(old, new):
        return ChangeKind.WIDENED
    return ChangeKind.NARROWED if can_widen(new, old) else ChangeKind.RETYPED


def _format_old(field: MigrationField) -> str:
    return format_field(Field(field.id, field.name, current_type(field.type), field.nullable))
