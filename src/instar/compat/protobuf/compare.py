"""Two versions of protobuf messages, compared by number (what bytes go by) and by name (what queries go by).

Each pair of messages is compared once, wherever it is used. Types of fields are in `scalars.py`, enums in
`enums.py`, and the columns that a query sees in `mapping.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from instar.compat.columns import ADDED, DELETED, RENAMED, compare_columns, goes_on, read_as
from instar.compat.judgement import Difference, Level, Ruling, conditional, safe, unsafe
from instar.compat.protobuf.enums import compare_enums
from instar.compat.protobuf.mapping import column_type, columns, is_plain_message
from instar.compat.protobuf.reserved import covers, reservations
from instar.compat.protobuf.scalars import read_scalar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.compat.protobuf.model import ProtobufField, ProtobufMessage, ProtobufVersion

__all__ = ["compare_protobuf"]

_NEVER_PACKED: Final = frozenset({"string", "bytes", "message", "group"})


def compare_protobuf(old: ProtobufVersion, new: ProtobufVersion) -> tuple[Difference, ...]:
    """Name every difference between two versions, with its rulings."""
    return tuple(_Comparison(old, new).run())


class _Comparison:
    """One walk over the messages of two versions, from their roots."""

    def __init__(self, old: ProtobufVersion, new: ProtobufVersion) -> None:
        self.old = old
        self.new = new
        self.seen: set[tuple[str, str]] = set()

    def run(self) -> Iterator[Difference]:
        pairs = dict(_pair_roots(self.old.roots, self.new.roots))
        for root in self.old.roots:
            if root not in pairs:
                doubt = conditional(
                    "nothing can read its records any more, unless it goes on under another name"
                )
                yield Difference(root, "message deleted", wire=doubt, query=doubt)
        for root in self.new.roots:
            if root not in pairs.values():
                yield Difference(root, "message added", wire=safe("nobody has written it yet"))
        found: list[Difference] = []
        for before, after in pairs.items():
            if before != after:
                what = f"message renamed: {before} → {after}"
                yield Difference(after, what, wire=safe("the name of a message is not in its bytes"))
            found += self.messages(before, after)
        yield from found
        if all(it.query is None or it.query.level is Level.SAFE for it in found):
            for before, after in pairs.items():
                yield from self.overlooked(before, after)

    def overlooked(self, before: str, after: str) -> Iterator[Difference]:
        """Compare the columns as a whole: keys of maps, and structs that become bytes to end a recursion."""
        for difference in compare_columns(columns(self.old, before), columns(self.new, after)):
            ruling = difference.query
            if ruling is not None and ruling.level is Level.UNSAFE:
                yield Difference(f"{after}.{difference.path}", difference.what, query=ruling)

    def messages(self, before: str, after: str) -> Iterator[Difference]:
        if (before, after) in self.seen:
            return
        self.seen.add((before, after))
        old, new = self.old.messages[before], self.new.messages[after]
        numbers = {field.number: field for field in new.fields}
        names = {field.name.lower(): field for field in new.fields}
        known_numbers = {field.number for field in old.fields}
        known_names = {field.name.lower() for field in old.fields}
        for field in old.fields:
            path = f"{after}.{field.name}"
            same = numbers.get(field.number)
            if same is not None:
                moved = same.name.lower() != field.name.lower() and (
                    field.name.lower() in names or same.name.lower() in known_names
                )
                yield from self.fields(field, same, f"{after}.{same.name}", moved=moved)
                if moved and field.name.lower() in names:
                    taken = names[field.name.lower()]
                    what = f"renumbered: {field.number} → {taken.number}"
                    yield Difference(f"{after}.{taken.name}", what, query=self.query(field, taken))
            elif field.name.lower() in names:
                yield self.renumbered(field, names[field.name.lower()], new, path)
            else:
                yield self.deleted(field, new, path)
        for field in new.fields:
            if field.number not in known_numbers and field.name.lower() not in known_names:
                yield self.added(field, old, f"{after}.{field.name}")
            elif field.number not in known_numbers:
                yield from self.reuses(field, old, f"{after}.{field.name}")
        yield from _oneofs(old, new, after)
        yield from reservations(old, new, after, {field.number for field in new.fields})

    def added(self, field: ProtobufField, old: ProtobufMessage, path: str) -> Difference:
        reused = next(self.reuses(field, old, path), None)
        what = f"added: {self.text(self.new, field)} = {field.number}"
        if reused is not None:
            return Difference(path, what, wire=reused.wire, query=ADDED)
        if field.required:
            return Difference(
                path, what, wire=unsafe("old records lack a required field and fail"), query=ADDED
            )
        return Difference(path, what, wire=safe("old records read as if it was not set"), query=ADDED)

    def reuses(self, field: ProtobufField, old: ProtobufMessage, path: str) -> Iterator[Difference]:
        if covers(old.reserved, field.number):
            why = f"number {field.number} was reserved: records of a deleted field may still hold it"
            yield Difference(path, f"takes reserved number {field.number}", wire=unsafe(why))
        elif covers(old.extensions, field.number):
            why = f"number {field.number} was open to extensions: records may hold one under it"
            yield Difference(path, f"takes number {field.number} of extensions", wire=conditional(why))

    def deleted(self, field: ProtobufField, new: ProtobufMessage, path: str) -> Difference:
        return Difference(
            path,
            f"deleted: {self.text(self.old, field)} = {field.number}",
            wire=_deletion(field, new),
            query=DELETED,
        )

    def renumbered(
        self, field: ProtobufField, new: ProtobufField, message: ProtobufMessage, path: str
    ) -> Difference:
        query = self.query(field, new)
        if self.text(self.old, field) == self.text(self.new, new):
            what = f"renumbered: {field.number} → {new.number}"
            why = f"records hold it under number {field.number}, and read as if {new.number} was not set"
            return Difference(path, what, wire=unsafe(why), query=query)
        was, now = self.text(self.old, field), self.text(self.new, new)
        what = f"name used again: {was} = {field.number} → {now} = {new.number}"
        meaning = unsafe(
            f"`{new.name}` is another field now: tables of both versions hold different things under it"
        )
        return Difference(path, what, wire=_deletion(field, message), query=query, semantic=meaning)

    def fields(
        self, old: ProtobufField, new: ProtobufField, path: str, *, moved: bool
    ) -> Iterator[Difference]:
        """Compare two fields of one number."""
        if moved:
            what = f"number {old.number} moved: {old.name} → {new.name}"
            why = f"records hold `{old.name}` under number {old.number}, and it reads as `{new.name}`"
            yield Difference(path, what, wire=unsafe(why), semantic=unsafe(why))
        elif old.name.lower() != new.name.lower():
            what = f"renamed: {old.name} → {new.name}"
            kept = safe("names are not in the bytes")
            yield Difference(path, what, wire=kept, query=RENAMED, semantic=goes_on(old.name, new.name))
        yield from self.presence(old, new, path)
        if old.any_bytes and new.type == "string" and not new.any_bytes:
            why = "strings of old records that are not UTF-8 cannot be read any more"
            yield Difference(path, "has to be UTF-8", wire=conditional(why))
        maps = self.is_map(self.old, old), self.is_map(self.new, new)
        what = f"type changed: {self.text(self.old, old)} → {self.text(self.new, new)}"
        wire = self.wire(old, new)
        if (
            old.repeated != new.repeated
            or maps[0] != maps[1]
            or wire is not None
            or self.shape_differs(old, new)
        ):
            # Under another name, the column is another one: the rename has said what that means.
            query = None if old.name.lower() != new.name.lower() else self.query(old, new)
            yield Difference(path, what, wire=wire, query=query)
        if {old.type, new.type} <= {"message", "group"}:
            yield from self.messages(old.type_name, new.type_name)
        if old.type == new.type == "enum":
            enums = self.old.enums[old.type_name], self.new.enums[new.type_name]
            if (old.type_name, new.type_name) not in self.seen:
                self.seen.add((old.type_name, new.type_name))
                yield from compare_enums(*enums)

    def wire(self, old: ProtobufField, new: ProtobufField) -> Ruling | None:
        """Rule on the bytes of a field whose type or label changed; None if neither did."""
        if old.type != new.type:
            closed = new.type == "enum" and self.new.enums[new.type_name].closed
            ruling = read_scalar(old.type, new.type, closed_enum=closed)
            if ruling.level is not Level.SAFE or old.repeated == new.repeated:
                return ruling
        maps = self.is_map(self.old, old), self.is_map(self.new, new)
        if new.repeated and not old.repeated:
            return safe("a single value reads as a list of one, and one that is not set as an empty list")
        if old.repeated and not new.repeated:
            if old.type in _NEVER_PACKED:
                return conditional(
                    "of a list, only the last element is read, or all are merged into one message"
                )
            return unsafe("numbers in a list are packed together, which a single field does not read")
        if maps == (False, True):
            return conditional("of entries with the same key, only the last is read")
        if maps == (True, False):
            return safe("a map is encoded as a list of entries")
        return None

    def query(self, old: ProtobufField, new: ProtobufField) -> Ruling | None:
        """Rule on a column whose type may have changed; what is inside messages is ruled on there."""
        if is_plain_message(old) and is_plain_message(new) and not self.shape_differs(old, new):
            return None
        return read_as(column_type(self.old, old), column_type(self.new, new))

    def shape_differs(self, old: ProtobufField, new: ProtobufField) -> bool:
        """Whether a column changes its type other than inside a message."""
        maps = self.is_map(self.old, old), self.is_map(self.new, new)
        if (maps[0], old.repeated) != (maps[1], new.repeated):
            return True
        if is_plain_message(old) and is_plain_message(new):
            return False
        return column_type(self.old, old) != column_type(self.new, new)

    def presence(self, old: ProtobufField, new: ProtobufField, path: str) -> Iterator[Difference]:
        if old.required != new.required:
            what = "made required" if new.required else "no longer required"
            wire = (
                unsafe("records without it fail")
                if new.required
                else conditional("readers of the old version fail on new records without it")
            )
            yield Difference(path, what, wire=wire)
        elif old.presence != new.presence and not old.repeated and not new.repeated:
            zero = "null" if old.presence else "0 or empty"
            after = "0 or empty" if old.presence else "null"
            what = "no longer says whether it is set" if old.presence else "says whether it is set"
            yield Difference(
                path,
                what,
                wire=safe("0 or empty and not set are the same bytes, or stand for the same"),
                query=safe("the column can be null in both"),
                semantic=conditional(
                    f"a value that is not set is stored as {zero} before and as {after} after"
                ),
            )
        if old.default != new.default:
            why = f"a value that is not set reads as {_default(old)} before and as {_default(new)} after"
            yield Difference(
                path,
                f"default changed: {_default(old)} → {_default(new)}",
                wire=unsafe(why),
                query=safe("what is not set is stored as null, whatever the default"),
                semantic=conditional(why),
            )

    def is_map(self, version: ProtobufVersion, field: ProtobufField) -> bool:
        message = version.messages.get(field.type_name)
        return message is not None and message.is_map_entry

    def text(self, version: ProtobufVersion, field: ProtobufField) -> str:
        """Print the type of a field as a .proto file has it."""
        if self.is_map(version, field):
            key, value = version.messages[field.type_name].fields
            return f"map<{key.type}, {value.type_name or value.type}>"
        return ("repeated " if field.repeated else "") + (field.type_name or field.type)


def _pair_roots(old: tuple[str, ...], new: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Pair messages of the same name, then those that only moved to another package, then the only two."""
    left = [name for name in new if name not in old]
    for name in old:
        moved = [it for it in left if it.rpartition(".")[2] == name.rpartition(".")[2]]
        if name in new:
            yield name, name
        elif len(moved) == 1:
            left.remove(moved[0])
            yield name, moved[0]
        elif len(old) == len(new) == 1:
            yield name, new[0]


def _deletion(field: ProtobufField, new: ProtobufMessage) -> Ruling:
    if field.required:
        return conditional("readers of the old version fail on new records: they require it")
    if covers(new.reserved, field.number):
        return safe(f"number {field.number} is reserved: old values are skipped, and never taken for others")
    return conditional(f"right until a new field takes number {field.number}: add `reserved {field.number};`")


def _oneofs(old: ProtobufMessage, new: ProtobufMessage, path: str) -> Iterator[Difference]:
    """Compare which fields exclude one another."""
    before = {field.number: field for field in old.fields}
    moved = [it for it in new.fields if it.number in before and before[it.number].oneof != it.oneof]
    for field in moved:
        peers = [it for it in new.fields if field.oneof and it.oneof == field.oneof and it.number in before]
        groups = {before[it.number].oneof or it.name for it in peers}
        outside = field.oneof or "no oneof"
        what = f"oneof changed: {before[field.number].oneof or 'none'} → {field.oneof or 'none'}"
        wire = (
            unsafe(
                f"records that hold more than one of {', '.join(it.name for it in peers)} keep only the last"
            )
            if len(groups) > 1
            else safe(
                f"old records hold at most one of the fields of {outside}"
                if field.oneof
                else "every field is read"
            )
        )
        yield Difference(
            f"{path}.{field.name}", what, wire=wire, query=safe("each field is a column of its own")
        )


def _default(field: ProtobufField) -> str:
    return "the default of its type" if field.default is None else repr(field.default)
