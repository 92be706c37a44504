"""Matching by name: which field of a table a column of an id-less schema means.

Same name, same place: same field. A name that vanished beside a name that appeared may be a rename
or a drop and an add; if the types allow both, only the caller can tell, and it is refused.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from instar.errors import AmbiguousEvolutionError
from instar.schema.paths import ELEMENT, VALUE, format_path
from instar.schema.rules import can_widen
from instar.schema.schema import index_fields, number_type
from instar.schema.types import Field, List, Map, Struct, Type

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["match_by_name"]


def match_by_name(
    old: tuple[Field, ...], new: tuple[Field, ...], ids: Iterator[int], *, renames: bool = True
) -> tuple[Field, ...]:
    """Give the new fields the ids of the old ones of the same name, and fresh ids to the rest.

    Without `renames`, a name that vanished never became another: nobody loses its values.
    """
    candidates: list[tuple[str, str]] = []
    matched = _match_fields(old, new, (), ids, candidates)
    if candidates and renames:
        raise AmbiguousEvolutionError(candidates)
    return matched


def _match_fields(
    old: tuple[Field, ...],
    new: tuple[Field, ...],
    path: tuple[str, ...],
    ids: Iterator[int],
    candidates: list[tuple[str, str]],
) -> tuple[Field, ...]:
    known, wanted = index_fields(old), index_fields(new)
    gone = [elder for elder in old if elder.name.lower() not in wanted]
    matched = []
    for field in new:
        elder = known.get(field.name.lower())
        where = (*path, field.name)
        if elder is None:
            candidates += [
                (format_path((*path, lost.name)), format_path(where))
                for lost in gone
                if _may_become(lost.type, field.type)
            ]
            matched.append(Field(next(ids), field.name, number_type(field.type, ids), field.nullable))
        else:
            type_ = _match_types(elder.type, field.type, where, ids, candidates)
            matched.append(Field(elder.id, field.name, type_, field.nullable))
    return tuple(matched)


def _match_types(
    old: Type, new: Type, path: tuple[str, ...], ids: Iterator[int], candidates: list[tuple[str, str]]
) -> Type:
    match old, new:
        case Struct(), Struct():
            return Struct(_match_fields(old.fields, new.fields, path, ids, candidates))
        case List(), List():
            element = _match_types(old.element, new.element, (*path, ELEMENT), ids, candidates)
            return List(element, new.element_nullable)
        case Map(), Map():
            key = old.key if _same_but_ids(old.key, new.key) else number_type(new.key, ids)
            value = _match_types(old.value, new.value, (*path, VALUE), ids, candidates)
            return Map(key, value, new.value_nullable)
    return number_type(new, ids)


def _may_become(old: Type, new: Type) -> bool:
    """Whether a rename with this change of type could be permitted."""
    match old, new:
        case Struct(), Struct():
            return True
        case List(), List():
            return _may_become(old.element, new.element)
        case Map(), Map():
            return _same_but_ids(old.key, new.key) and _may_become(old.value, new.value)
    return old == new or can_widen(old, new)


def _same_but_ids(old: Type, new: Type) -> bool:
    return number_type(old, count()) == number_type(new, count())
