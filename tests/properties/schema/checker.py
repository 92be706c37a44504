"""The rules and the fences once more, read straight from the design and sharing no code with instar.

It knows no migration type and walks no two trees at once: a schema is flattened into slots, each
named by the field around it and the steps below that, and slots of the same name are compared.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from instar.schema import ChangeKind, Decimal, List, Map, Primitive, Schema, Struct, Type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from instar.schema import Field

__all__ = ["Finding", "Stop", "expected_changes", "expected_fences", "is_wider", "slots_of"]

Slot = tuple[int, tuple[str, ...]]
"""A field's id, and the way down from it through lists and maps: `(7, ("element",))`."""

TABLE: Slot = (-1, ())

WIDENINGS = {
    ("tinyint", "smallint"),
    ("smallint", "int"),
    ("int", "bigint"),
    ("float", "double"),
    ("int", "double"),
}


class Finding(NamedTuple):
    """What a change is about, without its words."""

    kind: ChangeKind
    path: str
    ids: tuple[int, ...]


class Stop(NamedTuple):
    """What a fence is about, without its words."""

    kind: ChangeKind
    path: str
    ids: tuple[int, ...]
    by_schema: int


class Place(NamedTuple):
    """All that can be said about one slot of one schema."""

    type: Type
    nullable: bool
    steps: tuple[str, ...]
    ids: tuple[int, ...]
    parent: Slot
    name: str
    position: int

    @property
    def path(self) -> str:
        """The path as people type it."""
        return _path(self.steps)

    @property
    def shape(self) -> object:
        """What must be equal for the insides to be comparable; for a leaf, the type itself."""
        return type(self.type) if isinstance(self.type, Struct | List | Map) else self.type


def _path(steps: tuple[str, ...]) -> str:
    return ".".join(
        step if step.isascii() and step.isidentifier() else "`" + step.replace("`", "``") + "`"
        for step in steps
    )


def slots_of(schema: Schema) -> dict[Slot, Place]:
    """Flatten a schema."""
    return dict(_members(schema.fields, TABLE, (), ()))


def _members(
    fields: tuple[Field, ...], parent: Slot, steps: tuple[str, ...], ids: tuple[int, ...]
) -> Iterator[tuple[Slot, Place]]:
    for at, field in enumerate(fields):
        place = Place(
            field.type, field.nullable, (*steps, field.name), (*ids, field.id), parent, field.name, at
        )
        yield from _place((field.id, ()), place)


def _place(slot: Slot, place: Place) -> Iterator[tuple[Slot, Place]]:
    yield slot, place

    def below(step: str, type_: Type, nullable: bool) -> Iterator[tuple[Slot, Place]]:
        inner = Place(type_, nullable, (*place.steps, step), place.ids, slot, step, 0)
        yield from _place((slot[0], (*slot[1], step)), inner)

    match place.type:
        case Struct(fields=members):
            yield from _members(members, slot, place.steps, place.ids)
        case List(element=element, element_nullable=nullable):
            yield from below("element", element, nullable)
        case Map(key=key, value=value, value_nullable=nullable):
            yield from below("key", key, False)
            yield from below("value", value, nullable)


def is_wider(old: Type, new: Type) -> bool:
    """Whether the design lets a type grow into another, in one step or several."""
    match old, new:
        case Decimal(), Decimal():
            digits = new.precision - new.scale >= old.precision - old.scale
            return digits and new.scale >= old.scale and old != new
        case Primitive(), Primitive():
            reached = {old.name}
            while True:
                more = {wide for narrow, wide in WIDENINGS if narrow in reached} - reached
                if not more:
                    return new.name in reached and old != new
                reached |= more
    return False


def _ids(schema: Schema) -> set[int]:
    return {slot[0] for slot in slots_of(schema)}


class _Comparison:
    """The latest schema of a history and the schema that would follow, slot by slot."""

    def __init__(self, history: Sequence[Schema], new: Schema) -> None:
        self.ever = {field_id for schema in history for field_id in _ids(schema)}
        self.live = _ids(history[-1])
        self.old = slots_of(history[-1])
        self.new = slots_of(new)
        self.standing: dict[Slot, str] = {TABLE: "same"}
        for slot in self.new:  # parents come before children
            self.standing[slot] = self.stand(slot)

    def stand(self, slot: Slot) -> str:
        """Say whether a slot is still the `same`, is an `outsider` to its place, or is `beyond` comparing."""
        field_id, steps = slot
        parent = self.new[slot].parent
        if self.standing[parent] != "same":
            return self.standing[parent]
        if parent != TABLE and self.old[parent].shape != self.new[parent].shape:
            return "beyond"
        if steps:
            return "beyond" if steps[-1] == "key" else "same"
        here = slot in self.old and self.old[slot].parent == parent and field_id in self.live
        return "same" if here else "outsider"

    def changes(self) -> Iterator[Finding]:
        for slot, place in self.new.items():
            match self.standing[slot]:
                case "same":
                    yield from self.evolved(slot, self.old[slot], place)
                case "outsider" if not slot[1]:
                    yield from self.arrived(slot, place)
        for slot, place in self.old.items():
            if not slot[1] and self.standing.get(slot) != "same" and self.was_dropped_from(place.parent):
                steps = () if place.parent == TABLE else self.new[place.parent].steps
                yield Finding(ChangeKind.DELETED, _path((*steps, place.name)), place.ids)
        yield from self.orders()

    def was_dropped_from(self, parent: Slot) -> bool:
        """Whether the struct around a lost field is still the same struct, and so does not have it."""
        if parent == TABLE:
            return True
        return self.standing.get(parent) == "same" and isinstance(self.new[parent].type, Struct)

    def arrived(self, slot: Slot, place: Place) -> Iterator[Finding]:
        kind = None
        if slot[0] in self.live:
            kind = ChangeKind.MOVED
        elif slot[0] in self.ever:
            kind = ChangeKind.RECREATED
        elif self.standing[place.parent] == "same":
            kind = ChangeKind.ADDED if place.nullable else ChangeKind.ADDED_REQUIRED
        if kind is not None:
            yield Finding(kind, place.path, place.ids)

    def evolved(self, slot: Slot, old: Place, new: Place) -> Iterator[Finding]:
        about = new.path, new.ids
        if not slot[1] and old.name != new.name:
            yield Finding(ChangeKind.RENAMED, *about)
        if old.nullable != new.nullable:
            yield Finding(ChangeKind.MADE_NULLABLE if new.nullable else ChangeKind.MADE_REQUIRED, *about)
        if isinstance(old.type, Map) and isinstance(new.type, Map) and old.type.key != new.type.key:
            yield Finding(ChangeKind.KEY_CHANGED, _path((*new.steps, "key")), new.ids)
        if old.shape != new.shape:
            if is_wider(old.type, new.type):
                yield Finding(ChangeKind.WIDENED, *about)
            elif is_wider(new.type, old.type):
                yield Finding(ChangeKind.NARROWED, *about)
            else:
                yield Finding(ChangeKind.RETYPED, *about)

    def orders(self) -> Iterator[Finding]:
        """Look at each struct that is still the same: are the members that stayed in the old order?"""
        structs: dict[Slot, list[int]] = {}
        for slot, place in self.new.items():  # siblings come in order
            if self.standing[slot] == "same" and not slot[1]:
                structs.setdefault(place.parent, []).append(self.old[slot].position)
        for parent, positions in structs.items():
            if any(before > after for before, after in pairwise(positions)):
                found = ("", ()) if parent == TABLE else (self.new[parent].path, self.new[parent].ids)
                yield Finding(ChangeKind.REORDERED, *found)


def expected_changes(history: Sequence[Schema], new: Schema) -> list[Finding]:
    """Return every change that a schema makes to a history."""
    return list(_Comparison(history, new).changes())


def expected_fences(history: Sequence[Schema], at: int, reader: Schema) -> list[Stop]:
    """Return why a reader opened at one schema of a history is fenced by the later ones.

    The reader's schema is that schema or a projection of it, so all it can meet is what the rules permit.
    """
    later = [(by, slots_of(history[by])) for by in range(at + 1, len(history))]
    stops = []
    for slot, place in slots_of(reader).items():
        about = place.path, place.ids
        gone = [by for by, slots in later if (slot[0], ()) not in slots]
        if gone:
            stops += [] if slot[1] else [Stop(ChangeKind.RECREATED, *about, gone[0])]
            continue
        if not place.nullable:
            nullable = [by for by, slots in later if slots[slot].nullable]
            stops += [Stop(ChangeKind.MADE_REQUIRED, *about, by) for by in nullable[:1]]
        if isinstance(place.type, Primitive | Decimal):
            widened = [by for by, slots in later if slots[slot].type != place.type]
            stops += [Stop(ChangeKind.NARROWED, *about, by) for by in widened[:1]]
    return stops
