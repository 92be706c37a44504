"""What a migration does to sorted rows: whether they stay sorted, and whether they stay distinct.

Rows of a run are sorted by the `order_by` columns, then by all columns in physical order, where a
struct compares by its members one after the other and a list by its elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.schema.migration_type import MigrationType
from instar.schema.rules import ChangeKind, compare
from instar.schema.types import Field, List, Map, Struct, Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from instar.schema.schema import Schema

__all__ = ["needs_consolidation", "preserves_order", "stays_sorted_by"]


def needs_consolidation(old: Schema, new: Schema) -> bool:
    """Whether rows that differ may become equal: exactly if a field is deleted, at any level."""
    return any(change.kind is ChangeKind.DELETED for change in compare(MigrationType.start(old), new))


def preserves_order(old: Schema, new: Schema, order_by: Sequence[int] = ()) -> bool:
    """Whether every run sorted under the old schema is, migrated, sorted under the new one.

    `order_by` are field ids; one that the old schema no longer has sorts nothing. Sorting is lexicographic,
    so what is deleted must be a tail of what is compared.
    """
    walk = _Walk()
    leading = [trail for field_id in order_by if (trail := _locate(old.fields, field_id))]
    for trail in leading:
        walk.key(trail, new.fields)
    for field in old.fields:
        if [field] not in leading:
            walk.field(field, new.fields)
    return not walk.broken


def stays_sorted_by(old: Schema, new: Schema, order_by: Sequence[int], columns: Sequence[int]) -> bool:
    """Whether every run sorted under the old schema is, migrated, sorted by some fields of the new one.

    Those that the old schema does not have are null in all rows. The others must be what rows are compared by
    first, one after the other.
    """
    leading = [trail for field_id in order_by if (trail := _locate(old.fields, field_id))]
    compared = [*leading, *([field] for field in old.fields if [field] not in leading)]
    wanted = [trail for field_id in columns if (trail := _locate(old.fields, field_id))]
    walk = _Walk()
    for trail in wanted:
        walk.key(trail, new.fields)
    return compared[: len(wanted)] == wanted and not walk.broken


class _Walk:
    """Visits what rows are compared by, in the order of comparison."""

    def __init__(self) -> None:
        self.cut = False  # something compared earlier is gone: whatever follows is no longer sorted
        self.broken = False

    def compared(self) -> None:
        """Note that the migrated rows are still compared by this."""
        self.broken |= self.cut

    def field(self, old: Field, siblings: tuple[Field, ...]) -> None:
        new = next((field for field in siblings if field.id == old.id), None)
        if new is None:
            self.cut = True
            return
        if old.nullable:
            self.compared()
        self.type(old.type, new.type)

    def type(self, old: Type, new: Type) -> None:
        match old, new:
            case Struct(), Struct():
                for member in old.fields:
                    self.field(member, new.fields)
            case (List(), List()) | (Map(), Map()):
                self.compared()
                # an element is followed by the next one: anything deleted inside comes before something kept
                self.broken |= _loses_fields(old, new)
            case _:
                self.compared()

    def key(self, trail: list[Field], siblings: tuple[Field, ...]) -> None:
        """Visit one `order_by` column, which may be a member of a struct."""
        for parent in trail[:-1]:
            new = next((field for field in siblings if field.id == parent.id), None)
            if new is None:
                self.cut = True
                return
            siblings = new.type.fields if isinstance(new.type, Struct) else ()
        self.field(trail[-1], siblings)


def _locate(fields: tuple[Field, ...], field_id: int) -> list[Field]:
    """Return the fields from the top level down to an id, through structs."""
    for field in fields:
        if field.id == field_id:
            return [field]
        if isinstance(field.type, Struct):
            below = _locate(field.type.fields, field_id)
            if below:
                return [field, *below]
    return []


def _loses_fields(old: Type, new: Type) -> bool:
    match old, new:
        case Struct(), Struct():
            kept = {field.id: field for field in new.fields}
            return any(
                member.id not in kept or _loses_fields(member.type, kept[member.id].type)
                for member in old.fields
            )
        case List(), List():
            return _loses_fields(old.element, new.element)
        case Map(), Map():
            return _loses_fields(old.value, new.value)
    return False
