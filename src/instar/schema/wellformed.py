"""What makes a set of fields a schema at all, before any question of evolution.

Unique ids, names that Spark can tell apart at each level, no empty struct, no reserved name,
map keys that can be compared, and nesting that has an end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from instar.schema.algebra import walk_types
from instar.schema.paths import ELEMENT, KEY, VALUE, format_path
from instar.schema.types import Field, List, Map, Struct, Type

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MAX_DEPTH", "RESERVED_NAMES", "TOO_DEEP", "Problem", "find_problem"]

RESERVED_NAMES: Final = frozenset({"_ts", "_diff"})
"""Columns that every part carries beside the table's own."""

MAX_DEPTH: Final = 64
"""Deeper nesting is refused: it is a mistake or an attack, and recursion has limits."""

TOO_DEEP: Final = f"fields are nested more than {MAX_DEPTH} levels deep"


class Problem(NamedTuple):
    """Why fields do not make a schema, and the field to blame (None: all of them)."""

    field: Field | None
    message: str


def find_problem(fields: tuple[Field, ...]) -> Problem | None:
    """Find the first reason why these fields cannot be a schema."""
    return next(_problems(fields), None)


def _problems(fields: tuple[Field, ...]) -> Iterator[Problem]:
    if not fields:
        yield Problem(None, "a schema needs at least one column")
    for field in fields:
        if field.name.lower() in RESERVED_NAMES:
            yield Problem(
                field, f"column name `{field.name}` is reserved: every part has a column of that name"
            )
    yield from _struct_problems(fields, (), set())


def _struct_problems(fields: tuple[Field, ...], path: tuple[str, ...], ids: set[int]) -> Iterator[Problem]:
    inside = f" in `{format_path(path)}`" if path else ""
    names: dict[str, str] = {}
    for field in fields:
        if not field.name:
            yield Problem(field, f"a column name is empty{inside}")
        if not field.name.isprintable():
            yield Problem(field, f"column name {field.name!r}{inside} has characters that cannot be printed")
        folded = field.name.lower()
        if folded in names:
            differing = (
                ""
                if names[folded] == field.name
                else f" (as `{names[folded]}`; case does not tell them apart)"
            )
            yield Problem(field, f"column `{field.name}` appears twice{inside}{differing}")
        names[folded] = field.name
        if field.id < 0:
            yield Problem(field, f"field id {field.id} of `{field.name}` is negative")
        if field.id in ids:
            yield Problem(
                field, f"field id {field.id} of `{field.name}` is used twice: every field has its own"
            )
        ids.add(field.id)
        yield from _type_problems(field, field.type, (*path, field.name), ids)


def _type_problems(field: Field, type_: Type, path: tuple[str, ...], ids: set[int]) -> Iterator[Problem]:
    if len(path) > MAX_DEPTH:
        yield Problem(field, TOO_DEEP)
        return
    match type_:
        case Struct(fields=members):
            if not members:
                yield Problem(
                    field, f"struct `{format_path(path)}` has no members: a struct needs at least one"
                )
            yield from _struct_problems(members, path, ids)
        case List(element=element):
            yield from _type_problems(field, element, (*path, ELEMENT), ids)
        case Map(key=key, value=value):
            if any(isinstance(inside, Map) for inside in walk_types(key)):
                yield Problem(
                    field, f"the key of map `{format_path(path)}` holds a map, and maps have no order"
                )
            yield from _type_problems(field, key, (*path, KEY), ids)
            yield from _type_problems(field, value, (*path, VALUE), ids)
