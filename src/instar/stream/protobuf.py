"""Versions of a stream that come as protobuf: their descriptors are kept beside their schemas.

A field's number is its identity inside its message, so a field that is renamed stays the same column.
Decoding is in `instar.compat.protobuf`; writing what was decoded is in `instar.api.protobuf`.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from instar.compat.protobuf import columns
from instar.compat.protobuf.model import Encoding
from instar.errors import UsageError, VersionConflictError
from instar.schema import Field, List, Map, Schema, Struct, Type
from instar.schema.algebra import member_fields
from instar.schema.schema import number_fields
from instar.stream.commands import add_version, set_setting
from instar.stream.kinds import QUARANTINE_SUFFIX
from instar.stream.version import as_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from instar.stream.catalog import Catalog, CatalogChange
    from instar.stream.handle import StreamHandle

__all__ = [
    "QUARANTINE",
    "RETRY",
    "add_protobuf",
    "load_stored_encoding",
    "number_by_message",
    "quarantine_name",
    "stored_encodings",
]

RETRY: Final = "retry"
QUARANTINE: Final = (
    f"record binary, version string, reason string, stored boolean, at timestamp, {RETRY} string"
)
"""The columns of the table beside a stream that keeps records which the stream could not take whole.

`retry` marks those that are being tried again.
"""

_SETTING: Final = "protobuf."


def quarantine_name(stream: str) -> str:
    """Return the name of the table that keeps what a stream could not take."""
    return stream + QUARANTINE_SUFFIX


def add_protobuf(handle: StreamHandle, version: str, encoding: Encoding) -> Catalog:
    """Make a version known to everybody, with its descriptors, in one commit."""
    return handle.commit(lambda catalog: plan_protobuf(catalog, version, encoding))


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
        for number, described in (
            (it, describe_encoding(stored[it])) for it in sorted(stored, key=as_version, reverse=True)
        )
    ]
    if others:
        schema = number_by_message(fields, others, count(catalog.history.next_field_id))
        changes = add_version(catalog, wanted, schema, by_id=True)
    else:
        changes = add_version(catalog, wanted, Schema(number_fields(fields)))
    text = msgspec.json.encode(encoding).decode()
    return (*changes, *set_setting(catalog, _SETTING + wanted, text))


def load_stored_encoding(catalog: Catalog, version: str) -> Encoding:
    """Return how records of a version are encoded, or raise if that was never declared."""
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


def number_by_message(
    fields: tuple[Field, ...],
    known: Sequence[tuple[tuple[Field, ...], Schema]],
    fresh: Iterator[int],
) -> Schema:
    """Give each column the id of the field with its number in the same message, and fresh ids to the rest.

    `fields` have field numbers for ids. `known` are the columns of other versions, with field numbers too,
    and the schemas under which the stream knows them, the highest version first. A field that only changed
    its number keeps its column: each record is decoded by its own version.
    """
    columns_known = _KnownColumns({}, {})
    for numbered, schema in known:
        columns_known.collect(numbered, schema.fields, 0)
    return Schema(columns_known.number(fields, 0, fresh))


class _KnownColumns(NamedTuple):
    """The ids of columns, by the id of the column around them and their number or name in it."""

    numbers: dict[tuple[int, int], int]
    names: dict[tuple[int, str], int]

    def collect(self, numbered: tuple[Field, ...], stored: tuple[Field, ...], parent: int) -> None:
        names = {field.name: field for field in stored}
        for field in numbered:
            same = names.get(field.name)
            if same is not None:
                self.numbers.setdefault((parent, field.id), same.id)
                self.names.setdefault((parent, field.name.lower()), same.id)
                new, old = (tuple(member_fields(it.type, keys=False)) for it in (field, same))
                self.collect(new, old, same.id)

    def number(self, fields: tuple[Field, ...], parent: int, fresh: Iterator[int]) -> tuple[Field, ...]:
        claimed = {self.numbers.get((parent, field.id)) for field in fields}
        found = []
        for field in fields:
            given = self.numbers.get((parent, field.id))
            if given is None:
                given = self.names.get((parent, field.name.lower()))
                given = next(fresh) if given is None or given in claimed else given
            found.append(Field(given, field.name, self.number_type(field.type, given, fresh), field.nullable))
        return tuple(found)

    def number_type(self, type_: Type, parent: int, fresh: Iterator[int]) -> Type:
        match type_:
            case Struct(fields=members):
                return Struct(self.number(members, parent, fresh))
            case List(element=element, element_nullable=nullable):
                return List(self.number_type(element, parent, fresh), nullable)
            case Map(key=key, value=value, value_nullable=nullable):
                return Map(key, self.number_type(value, parent, fresh), nullable)
        return type_
