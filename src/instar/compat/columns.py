"""Columns, and whether one query can run over tables of two versions of them.

Every format ends here: a version of any kind says which columns its records become. The reference is Spark
reading Parquet files of both versions in one explicit schema, matched by name; where Spark's ways of reading
differ, or a table could not evolve so, the answer is not *safe*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from instar.compat.judgement import Difference, Ruling, conditional, safe, unsafe
from instar.schema import (
    Field,
    List,
    Map,
    Primitive,
    Schema,
    Struct,
    Type,
    fingerprint,
    format_path,
    format_type,
)
from instar.schema.paths import ELEMENT, KEY, VALUE
from instar.schema.rules import can_widen
from instar.schema.text import format_field

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "ADDED",
    "DELETED",
    "RENAMED",
    "ColumnsVersion",
    "compare_columns",
    "goes_on",
    "may_go_on",
    "read_as",
]

ADDED: Final = safe("old tables have no values for it, and it reads as null")
DELETED: Final = safe("a range of tables still has it, with nulls for new tables")
RENAMED: Final = unsafe("columns are found by name: old rows read as null under the new name")

_INTERCHANGED: Final = frozenset({"string", "binary"})


class ColumnsVersion(msgspec.Struct, frozen=True, tag="columns"):
    """A version given as columns: DDL, or a schema. With `by_id`, ids tell a rename from a new column."""

    schema: Schema
    by_id: bool = False

    @property
    def fingerprint(self) -> str:
        """Identify what the version says."""
        if not self.by_id:
            return fingerprint(self.schema)
        ids = ",".join(str(number) for number in self.schema.field_ids())
        return f"{fingerprint(self.schema)}:{ids}"

    def tables(self) -> dict[str, tuple[Field, ...]]:
        """Return the columns of the one table that this is."""
        return {"": self.schema.fields}


def compare_columns(
    old: tuple[Field, ...], new: tuple[Field, ...], path: tuple[str, ...] = (), *, by_id: bool = False
) -> Iterator[Difference]:
    """Name every difference that a query might notice, by column."""
    matched = _match(old, new, by_id=by_id)
    gone = [field for field in old if field.name not in matched.values()]
    elders = {field.name: field for field in old}
    for field in gone:
        yield Difference(format_path((*path, field.name)), f"deleted: {format_field(field)}", query=DELETED)
    for field in new:
        where = (*path, field.name)
        if field.name in matched:
            yield from _compare_field(elders[matched[field.name]], field, where, by_id=by_id)
        else:
            alike = [it.name for it in new if it.name.lower() == field.name.lower() and it is not field]
            yield _added(field, where, None if by_id else _may_be(field, gone), alike)
    yield from _order(old, new, matched, path)


def goes_on(old: str, new: str) -> Ruling:
    """Rule on the meaning of a rename."""
    return unsafe(f"`{old}` continues as `{new}`: queries by either name see only half of the rows")


def may_go_on(lost: Sequence[object], new: object) -> Ruling | None:
    """Rule on the meaning of a value that came while others went: it may be one of them under a new name."""
    if not lost:
        return None
    return conditional(f"{lost[0]} is gone and may continue as {new}: queries for either miss some rows")


def _match(old: tuple[Field, ...], new: tuple[Field, ...], *, by_id: bool) -> dict[str, str]:
    """Return the name of the old field for each new field that was there before."""
    if by_id:
        names = {field.id: field.name for field in old}
        return {field.name: names[field.id] for field in new if field.id in names}
    same = {field.name for field in old}.intersection(field.name for field in new)
    known = {field.name.lower(): field.name for field in old if field.name not in same}
    found = {}
    for field in new:  # names that differ in case alone are one, if no name is the very same
        name = field.name if field.name in same else known.pop(field.name.lower(), None)
        if name is not None:
            found[field.name] = name
    return found


def _may_be(field: Field, gone: list[Field]) -> str | None:
    """Return the deleted column that this one could be under a new name."""
    return next((lost.name for lost in gone if read_as(lost.type, field.type).level.value == "safe"), None)


def _added(field: Field, path: tuple[str, ...], suspect: str | None, alike: list[str]) -> Difference:
    ruling = ADDED
    if not field.nullable:
        ruling = unsafe("old tables have no values for it, and it may not be null: make it nullable")
    if alike:
        ruling = unsafe(f"its name differs from `{alike[0]}` in case alone, and no table holds both")
    doubt = None
    if suspect is not None:
        doubt = conditional(
            f"`{suspect}` is gone and may be the same under an old name: old rows would read as null"
        )
    return Difference(format_path(path), f"added: {format_field(field)}", query=ruling, semantic=doubt)


def _compare_field(old: Field, new: Field, path: tuple[str, ...], *, by_id: bool) -> Iterator[Difference]:
    where = format_path(path)
    if old.name.lower() != new.name.lower():
        meaning = goes_on(old.name, new.name)
        yield Difference(where, f"renamed: {old.name} → {new.name}", query=RENAMED, semantic=meaning)
    yield from _compare_slot((old.type, old.nullable), (new.type, new.nullable), path, by_id=by_id)


def _compare_slot(
    old: tuple[Type, bool], new: tuple[Type, bool], path: tuple[str, ...], *, by_id: bool
) -> Iterator[Difference]:
    where = format_path(path)
    if new[1] and not old[1]:
        yield Difference(where, "made nullable", query=safe("old rows have no nulls, and stay as they are"))
    if old[1] and not new[1]:
        yield Difference(where, "made not null", query=unsafe("old rows may hold nulls: leave it nullable"))
    match old[0], new[0]:
        case Struct(), Struct():
            yield from compare_columns(old[0].fields, new[0].fields, path, by_id=by_id)
        case List(), List():
            before = (old[0].element, old[0].element_nullable)
            after = (new[0].element, new[0].element_nullable)
            yield from _compare_slot(before, after, (*path, ELEMENT), by_id=by_id)
        case Map(), Map():
            keys = (*path, KEY)
            for inside in _compare_slot((old[0].key, False), (new[0].key, False), keys, by_id=by_id):
                ruling = unsafe("keys must stay what they are: keys that differ could become equal")
                yield msgspec.structs.replace(inside, query=ruling)
            before, after = (old[0].value, old[0].value_nullable), (new[0].value, new[0].value_nullable)
            yield from _compare_slot(before, after, (*path, VALUE), by_id=by_id)
        case before_type, after_type if before_type != after_type:
            what = f"type changed: {format_type(before_type)} → {format_type(after_type)}"
            yield Difference(where, what, query=read_as(before_type, after_type))


def _order(
    old: tuple[Field, ...], new: tuple[Field, ...], matched: dict[str, str], path: tuple[str, ...]
) -> Iterator[Difference]:
    before = [field.name for field in old if field.name in matched.values()]
    after = [matched[field.name] for field in new if field.name in matched]
    if before != after:
        what = f"reordered: {', '.join(before)} → {', '.join(after)}"
        ruling = conditional("columns are read by name, but UNION and INSERT go by position and mix them up")
        yield Difference(format_path(path) if path else "(columns)", what, query=ruling)


def read_as(old: Type, new: Type) -> Ruling:
    """Say whether values stored under one type can be read under another, both being whole column types."""
    if _same(old, new):
        return safe("the type of the column stays the same")
    match old, new:
        case Primitive(name=before), Primitive(name=after) if {before, after} == _INTERCHANGED:
            return conditional(
                f"Spark reads the bytes of {before} as {after}, but functions and comparisons differ, "
                "mergeSchema fails, and a table cannot make this change"
            )
    if can_widen(old, new):
        return safe(
            f"every {format_type(old)} is also a {format_type(new)}, and reading in one schema widens it"
        )
    if can_widen(new, old):
        return unsafe(f"old rows hold {format_type(old)}, which {format_type(new)} cannot represent")
    return unsafe(f"old rows hold {_kind(old)}, and a query cannot read that as {_kind(new)}")


def _same(old: Type, new: Type) -> bool:
    return format_type(old).replace(" not null", "") == format_type(new).replace(" not null", "")


def _kind(type_: Type) -> str:
    match type_:
        case Struct():
            return "a struct"
        case List():
            return "an array"
        case Map():
            return "a map"
    return format_type(type_)
