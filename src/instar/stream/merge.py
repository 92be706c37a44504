"""One schema out of many versions: each column takes its definition from the highest version that has it.

A column that later versions lack stays, because tables hold its values. It may be null if a version lacks it
or allows nulls. Columns are in the order of their ids, so no merge ever reorders another.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from instar.errors import IncompatibleSchemaError
from instar.schema import Field, History, List, Map, Schema, Struct, Type
from instar.schema.matching import match_by_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["check_holds", "loosen", "merge_schemas", "number_schema", "sort_fields"]


def merge_schemas(schemas: Sequence[Schema]) -> Schema:
    """Merge the schemas of versions, the highest version first."""
    return Schema(_merge_fields([schema.fields for schema in schemas]))


def number_schema(given: Schema, known: Sequence[Schema], ids: Iterator[int]) -> Schema:
    """Give the columns of a new version the ids of those with the same names, and fresh ids to the rest.

    `known` are the schemas of the other versions, those first whose names count most.
    """
    if not known:
        return sort_fields(Schema(match_by_name((), given.fields, ids, renames=False)))
    named: dict[str, Field] = {}
    for field in chain.from_iterable(schema.fields for schema in known):
        named.setdefault(field.name.lower(), field)
    merged = {field.id: field for field in _merge_fields([schema.fields for schema in known])}
    elders = tuple(
        Field(field.id, field.name, merged[field.id].type, field.nullable) for field in named.values()
    )
    once = tuple({field.id: field for field in reversed(elders)}.values())
    return sort_fields(Schema(match_by_name(once, given.fields, ids, renames=False)))


def loosen(given: Schema, known: Schema) -> Schema:
    """Let the columns that data brings be null, except those that a stream knows as not null.

    Data says `not null` of whatever was computed so, such as a constant; that is no promise for later rows.
    """
    return Schema(_loosen_fields(given.fields, known.fields))


def sort_fields(schema: Schema) -> Schema:
    """Put the columns in the order of their ids, at every level."""
    return merge_schemas([schema])


def check_holds(stream: str, version: str, schema: Schema, merged: Schema) -> None:
    """Raise unless every row of a version fits the merged schema."""
    violations = History.start(schema).check(merged)
    if violations:
        raise IncompatibleSchemaError(f"{stream} at {version}", violations)


def _merge_fields(levels: Sequence[tuple[Field, ...]]) -> tuple[Field, ...]:
    """Merge siblings of several versions, highest first."""
    found: dict[int, list[Field]] = {}
    for level in levels:
        for field in level:
            found.setdefault(field.id, []).append(field)
    return tuple(
        Field(
            field_id,
            versions[0].name,
            _merge_types([field.type for field in versions]),
            any(field.nullable for field in versions) or len(versions) < len(levels),
        )
        for field_id, versions in sorted(found.items())
    )


def _merge_types(types: Sequence[Type]) -> Type:
    """Merge the types that one column has had, highest version first; what does not fit keeps the highest."""
    highest = types[0]
    match highest:
        case Struct():
            return Struct(_merge_fields([type_.fields for type_ in types if isinstance(type_, Struct)]))
        case List():
            lists = [type_ for type_ in types if isinstance(type_, List)]
            nullable = any(type_.element_nullable for type_ in lists)
            return List(_merge_types([type_.element for type_ in lists]), nullable)
        case Map(key=key):
            maps = [type_ for type_ in types if isinstance(type_, Map)]
            nullable = any(type_.value_nullable for type_ in maps)
            return Map(key, _merge_types([type_.value for type_ in maps]), nullable)
    return highest


def _loosen_fields(fields: tuple[Field, ...], known: tuple[Field, ...]) -> tuple[Field, ...]:
    named = {field.name.lower(): field for field in known}
    loosened = []
    for field in fields:
        elder = named.get(field.name.lower())
        type_ = _loosen_type(field.type, None if elder is None else elder.type)
        loosened.append(Field(field.id, field.name, type_, field.nullable or elder is None or elder.nullable))
    return tuple(loosened)


def _loosen_type(type_: Type, known: Type | None) -> Type:
    match type_:
        case Struct(fields=fields):
            return Struct(_loosen_fields(fields, known.fields if isinstance(known, Struct) else ()))
        case List(element=element, element_nullable=nullable):
            elder = known if isinstance(known, List) else None
            inside = _loosen_type(element, None if elder is None else elder.element)
            return List(inside, nullable or elder is None or elder.element_nullable)
        case Map(key=key, value=value, value_nullable=nullable):
            former = known if isinstance(known, Map) else None
            inside = _loosen_type(value, None if former is None else former.value)
            return Map(key, inside, nullable or former is None or former.value_nullable)
    return type_
