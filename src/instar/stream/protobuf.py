"""Versions of a stream that come as protobuf: their descriptors are kept beside their schemas.

A field's number is its identity inside its message, so a field that is renamed stays the same column.
Decoding is in `instar.compat.protobuf`; writing what was decoded is in `instar.api.protobuf`.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

import msgspec

from instar.compat.protobuf import columns
from instar.compat.protobuf.model import Encoding
from instar.errors import StreamNotFoundError, UsageError, VersionConflictError
from instar.schema import Field, List, Map, Schema, Struct, Type
from instar.schema.schema import number_fields
from instar.stream.commands import add_version, set_setting
from instar.stream.version import as_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from instar.stream.catalog import Catalog, CatalogChange
    from instar.stream.handle import StreamHandle

__all__ = [
    "QUARANTINE",
    "add_protobuf",
    "load_stored_encoding",
    "number_by_path",
    "quarantine_name",
    "stored_encodings",
]

QUARANTINE: Final = "record binary, version string, reason string, stored boolean, at timestamp"
"""The columns of the table beside a stream that keeps records which the stream could not take whole."""

_SETTING: Final = "protobuf."

Path = tuple[int, ...]


def quarantine_name(stream: str) -> str:
    """Return the name of the table that keeps what a stream could not take."""
    return f"{stream}-quarantine"


def add_protobuf(handle: StreamHandle, version: str, encoding: Encoding) -> Catalog:
    """Make a version known to everybody, with its descriptors, in one commit."""

    def decide(catalog: Catalog | None) -> Sequence[CatalogChange]:
        if catalog is None:
            raise StreamNotFoundError(handle.name)
        return plan_protobuf(catalog, version, encoding)

    found = handle.journal.commit(decide)
    if found is None:
        raise StreamNotFoundError(handle.name)
    return found


def plan_protobuf(catalog: Catalog, version: str, encoding: Encoding) -> Sequence[CatalogChange]:
    """Decide what a version given as protobuf changes; the same again changes nothing."""
    from instar.compat.protobuf.compile import describe_encoding  # noqa: PLC0415 -- an extra

    wanted = str(as_version(version))
    given = describe_encoding(encoding)
    stored = stored_encodings(catalog)
    if wanted in stored:
        known = describe_encoding(stored[wanted])
        if known.fingerprint == given.fingerprint:
            return ()
        said = f"{encoding.message} in other words"
        raise VersionConflictError(catalog.name, wanted, known=stored[wanted].message, given=said)
    fields = columns(given, encoding.message)
    others = [
        (columns(described, described.roots[0]), catalog.versions[as_version(number)].schema)
        for number, described in ((number, describe_encoding(it)) for number, it in stored.items())
    ]
    if others:
        schema = number_by_path(fields, others, count(catalog.history.next_field_id))
        changes = add_version(catalog, wanted, schema, by_id=True)
    else:
        changes = add_version(catalog, wanted, Schema(number_fields(fields)))
    text = msgspec.json.encode(encoding).decode()
    return (*changes, *set_setting(catalog, _SETTING + wanted, text))


def load_stored_encoding(catalog: Catalog, version: str) -> Encoding:
    """Return how records of a version are encoded, or say that nobody has told."""
    wanted = str(as_version(version))
    stored = stored_encodings(catalog)
    if wanted not in stored:
        known = ", ".join(stored) or "none"
        raise UsageError(
            f"stream `{catalog.name}` has no descriptors for {wanted}, only for: {known}. "
            "Declare it with stream.evolve_protobuf(file, version=…)"
        )
    return stored[wanted]


def stored_encodings(catalog: Catalog) -> dict[str, Encoding]:
    """Return the encodings that are known, by version."""
    return {
        name.removeprefix(_SETTING): msgspec.json.decode(value, type=Encoding)
        for name, value in catalog.settings.items()
        if name.startswith(_SETTING)
    }


def number_by_path(
    fields: tuple[Field, ...],
    known: Sequence[tuple[tuple[Field, ...], Schema]],
    fresh: Iterator[int],
) -> Schema:
    """Give each column the id of the column with the same path of field numbers, and fresh ids to the rest.

    `fields` have field numbers for ids. `known` are the columns of other versions, with field numbers too,
    and the schemas under which the stream knows them.
    """
    ids: dict[Path, int] = {}
    for numbered, schema in known:
        _collect(numbered, schema.fields, (), ids)
    return Schema(_number(fields, (), ids, fresh))


def _collect(
    numbered: tuple[Field, ...], stored: tuple[Field, ...], above: Path, ids: dict[Path, int]
) -> None:
    names = {field.name: field for field in stored}
    for field in numbered:
        same = names.get(field.name)
        if same is not None:
            path = (*above, field.id)
            ids.setdefault(path, same.id)
            _collect(_inside(field.type), _inside(same.type), path, ids)


def _number(
    fields: tuple[Field, ...], above: Path, ids: dict[Path, int], fresh: Iterator[int]
) -> tuple[Field, ...]:
    found = []
    for field in fields:
        path = (*above, field.id)
        if path not in ids:
            ids[path] = next(fresh)
        found.append(Field(ids[path], field.name, _number_type(field.type, path, ids, fresh), field.nullable))
    return tuple(found)


def _number_type(type_: Type, path: Path, ids: dict[Path, int], fresh: Iterator[int]) -> Type:
    match type_:
        case Struct(fields=members):
            return Struct(_number(members, path, ids, fresh))
        case List(element=element, element_nullable=nullable):
            return List(_number_type(element, path, ids, fresh), nullable)
        case Map(key=key, value=value, value_nullable=nullable):
            return Map(key, _number_type(value, path, ids, fresh), nullable)
    return type_


def _inside(type_: Type) -> tuple[Field, ...]:
    """Return the members of a struct, also if it is in a list or is the value of a map."""
    match type_:
        case Struct(fields=members):
            return members
        case List(element=element):
            return _inside(element)
        case Map(value=value):
            return _inside(value)
    return ()
