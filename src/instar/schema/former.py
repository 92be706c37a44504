"""Former names of columns: data that uses one may mean the column that had it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from instar.schema.algebra import slots
from instar.schema.paths import format_path
from instar.schema.schema import find_field
from instar.schema.types import Field, Struct, Type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.schema.history import History

__all__ = ["Former", "find_former"]

_Fields = tuple[Field, ...]
_Key = tuple[int | str, ...]  # the fields around a struct, by id, and what of them it is in


class Former(NamedTuple):
    """A column that had a name: its id, the last schema in which it did, and its current path, if any."""

    field_id: int
    schema_id: int
    now: str | None


def find_former(history: History, path: tuple[str, ...]) -> Former | None:
    """Find the column that was the last to have a name which the latest schema does not have."""
    *parent, name = path
    around = [step.lower() for step in parent]
    current = next(
        (
            (key, fields)
            for key, names, fields in _structs(history.latest.fields)
            if [it.lower() for it in names] == around
        ),
        None,
    )
    if current is None:
        return None
    for schema_id in range(history.latest_id - 1, -1, -1):
        siblings = {key: fields for key, _, fields in _structs(history.schemas[schema_id].fields)}
        found = find_field(siblings.get(current[0], ()), name)
        if found is not None:
            now = next((field.name for field in current[1] if field.id == found.id), None)
            return Former(found.id, schema_id, None if now is None else format_path((*parent, now)))
    return None


def _structs(
    fields: _Fields, key: _Key = (), path: tuple[str, ...] = ()
) -> Iterator[tuple[_Key, tuple[str, ...], _Fields]]:
    """Yield the columns of a table and the members of each struct, with where they are: by id and by name."""
    yield key, path, fields
    for field in fields:
        yield from _inside(field.type, (*key, field.id), (*path, field.name))


def _inside(type_: Type, key: _Key, path: tuple[str, ...]) -> Iterator[tuple[_Key, tuple[str, ...], _Fields]]:
    if isinstance(type_, Struct):
        yield from _structs(type_.fields, key, path)
        return
    for slot in slots(type_, keys=False):
        yield from _inside(slot.type, (*key, slot.name), (*path, slot.name))
