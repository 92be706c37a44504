"""What a change of a dataset's schema means: each difference, and who would be fenced by it.

Types are text that producers chose. Those that instar knows, in any usual spelling, are judged by the rules
of `instar.schema`; of all others it can only be said whether they are the same.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any, Final

from instar.errors import InvalidSchemaError
from instar.schema import (
    ChangeKind,
    Field,
    History,
    List,
    Map,
    Primitive,
    Schema,
    Struct,
    Type,
    check_reader,
    format_type,
    parse_type_ddl,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from instar.lineage.schema_content import FieldContent
    from instar.schema import Change

__all__ = ["POLICIES", "diff", "violations"]

POLICIES: Final = ("none", "backward", "full")
"""What a dataset promises to its readers: nothing; that old data stays readable; that nobody is fenced."""

_SYNONYMS: Final = {
    "varchar": "string", "char": "string", "character varying": "string", "text": "string",
    "nvarchar": "string", "str": "string", "uuid": "string", "json": "string", "jsonb": "string",
    "clob": "string",
    "int8": "bigint", "int64": "bigint", "long": "bigint", "bigserial": "bigint",
    "int4": "int", "int32": "int", "integer": "int", "serial": "int",
    "int2": "smallint", "int16": "smallint", "short": "smallint", "byte": "tinyint",
    "float4": "float", "float32": "float", "real": "float",
    "float8": "double", "float64": "double", "double precision": "double",
    "bool": "boolean", "bytea": "binary", "bytes": "binary", "blob": "binary", "varbinary": "binary",
    "timestamptz": "timestamp", "timestamp with time zone": "timestamp", "datetime": "timestamp_ntz",
    "timestamp without time zone": "timestamp_ntz", "numeric": "decimal",
}  # fmt: skip
_FENCED_BY: Final = {
    ChangeKind.DELETED: ChangeKind.RECREATED,
    ChangeKind.MADE_NULLABLE: ChangeKind.MADE_REQUIRED,
    ChangeKind.WIDENED: ChangeKind.NARROWED,
}
_LENGTH: Final = re.compile(r"\s*\(\s*\d+\s*\)$")


def diff(old: Sequence[FieldContent], new: Sequence[FieldContent]) -> dict[str, Any]:
    """Return every change between two schemas, whether the rules permit it, and who would be fenced."""
    numbering = _Numbering()
    try:
        before, after = numbering.schema(old, 0), numbering.schema(new, 1)
    except InvalidSchemaError as error:  # such as one that is nested too deeply
        return _unjudged(old, new, str(error))
    if before is None or after is None:
        return _without_fields(old, new)
    history = History.start(before)
    changes = history.compare(after)
    compatible = all(change.permitted for change in changes)
    fences = check_reader(history.evolve(after), before) if compatible else ()
    stopped = {(fence.kind, fence.ids) for fence in fences}
    return {
        "compatible": compatible,
        "changes": [_show(change, numbering, stopped if compatible else None) for change in changes],
        "fences": [str(fence) for fence in fences],
    }


def violations(policy: str, verdict: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the changes that a policy does not allow."""
    changes = verdict["changes"]
    if policy == "none":
        return []
    if policy == "backward":
        return [change for change in changes if not change["permitted"]]
    return [change for change in changes if not change["permitted"] or change["fencesReaders"]]


def _without_fields(old: Sequence[FieldContent], new: Sequence[FieldContent]) -> dict[str, Any]:
    """Compare with a schema that has no fields, which a table cannot have."""
    kind = ChangeKind.DELETED if old else ChangeKind.ADDED
    changes = [
        {
            "path": field.name, "kind": kind.value, "old": field.type if old else None,
            "new": None if old else field.type, "permitted": True, "fencesReaders": bool(old),
            "reason": "the schema has no fields on one side",
        }
        for field in (old or new)
    ]  # fmt: skip
    return {"compatible": True, "changes": changes, "fences": []}


def _unjudged(old: Sequence[FieldContent], new: Sequence[FieldContent], reason: str) -> dict[str, Any]:
    """Name the columns that differ between schemas which no table could have."""
    sides = [{field.name: field for field in fields} for fields in (old, new)]
    changes = []
    for name in sorted(sides[0].keys() | sides[1].keys()):
        one, two = (side.get(name) for side in sides)
        if one != two:
            kind = (
                ChangeKind.ADDED if one is None else ChangeKind.DELETED if two is None else ChangeKind.RETYPED
            )
            types = {"old": one.type if one else None, "new": two.type if two else None}
            changes.append(
                {
                    "path": name,
                    "kind": kind.value,
                    **types,
                    "permitted": False,
                    "fencesReaders": True,
                    "reason": reason,
                }
            )
    return {"compatible": not changes, "changes": changes, "fences": []}


def _show(
    change: Change, numbering: _Numbering, stopped: set[tuple[ChangeKind, tuple[int, ...]]] | None
) -> dict[str, Any]:
    """Return a change as JSON. Where the whole is refused, its kind alone says whether readers stop."""
    old, new = numbering.types(change.ids[-1])
    obstacle = _FENCED_BY.get(change.kind)
    fences = obstacle is not None and (stopped is None or (obstacle, change.ids) in stopped)
    known = change.kind is not ChangeKind.RETYPED or not numbering.is_unknown(change.ids[-1])
    return {
        "path": change.path,
        "kind": change.kind.value,
        "old": old,
        "new": new,
        "permitted": change.permitted,
        "fencesReaders": not change.permitted or fences,
        "reason": change.reason if known else f"whether {new} can hold every {old} is not known",
    }


class _Numbering:
    """Gives the fields of two schemas the same ids where they have the same names, at every level."""

    def __init__(self) -> None:
        self.ids: dict[tuple[str, ...], int] = {}
        self.texts: tuple[dict[int, str | None], dict[int, str | None]] = ({}, {})
        self.unknown: dict[int, list[str | None]] = {}
        self.names: dict[tuple[str, ...], str] = {}
        self.taken: dict[tuple[str, ...], set[str]] = {}

    def schema(self, fields: Sequence[FieldContent], side: int) -> Schema | None:
        """Return a schema for the old side, 0, or the new one, 1; None if there are no fields."""
        numbered = tuple(self._fields(fields, (), side))
        return Schema(numbered) if numbered else None

    def types(self, number: int) -> tuple[str | None, str | None]:
        """Return the type of a field before and after, as producers wrote it."""
        return self.texts[0].get(number), self.texts[1].get(number)

    def is_unknown(self, number: int) -> bool:
        """Whether a field has, before or after, a type that instar does not know."""
        return number in self.unknown

    def _fields(self, fields: Sequence[FieldContent], path: tuple[str, ...], side: int) -> Iterator[Field]:
        unique = {field.name: field for field in fields}
        for name in sorted(unique):
            inside = (*path, name)
            number = self.ids.setdefault(inside, len(self.ids) + 1)
            self.texts[side][number] = unique[name].type
            yield Field(number, self._name(inside), self._type(unique[name], inside, side))

    def _name(self, path: tuple[str, ...]) -> str:
        """Return a name that a column may have: others know `a` beside `A`, and what is not printed."""
        if path not in self.names:
            plain = path[-1] if path[-1].isprintable() else path[-1].encode("unicode_escape").decode()
            taken = self.taken.setdefault(path[:-1], set())
            spellings = itertools.chain([plain], (f"{plain} ({number})" for number in itertools.count(2)))
            self.names[path] = next(name for name in spellings if name.lower() not in taken)
            taken.add(self.names[path].lower())
        return self.names[path]

    def _type(self, field: FieldContent, path: tuple[str, ...], side: int) -> Type:
        text = " ".join((field.type or "").lower().split())
        if field.members:
            struct = Struct(tuple(self._fields(field.members, path, side)))
            return List(struct) if text.startswith(("array", "list")) else struct
        for spelling in (text, _LENGTH.sub("", text)):
            try:
                return self._renumber(parse_type_ddl(_SYNONYMS.get(spelling, spelling))[0], path, side)
            except InvalidSchemaError:
                continue
        # Two types that nothing is widened to, and that differ if the texts do.
        seen = self.unknown.setdefault(self.ids[path], [])
        if field.type not in seen:
            seen.append(field.type)
        return Primitive("interval day" if seen.index(field.type) == 0 else "interval year")

    def _renumber(self, type_: Type, path: tuple[str, ...], side: int) -> Type:
        """Give the members of a type that was written as text the ids of their paths."""
        match type_:
            case Struct(fields=fields):
                members = []
                for field in sorted(fields, key=lambda one: one.name):
                    inside = (*path, field.name)
                    number = self.ids.setdefault(inside, len(self.ids) + 1)
                    self.texts[side][number] = format_type(field.type)
                    members.append(Field(number, field.name, self._renumber(field.type, inside, side)))
                return Struct(tuple(members))
            case List(element=element):
                return List(self._renumber(element, (*path, "element"), side))
            case Map(key=key, value=value):
                inner = self._renumber(value, (*path, "value"), side)
                return Map(self._renumber(key, (*path, "key"), side), inner)
        return type_
