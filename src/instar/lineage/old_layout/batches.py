"""Dataset versions a few hundred at a time, each with the fields that the old layout gives it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from sqlalchemy import Text, cast, func, select

from instar.lineage.old_layout.tables import (
    FIELDS,
    OLD_MAPPING,
    SCHEMA_MAPPING,
    SCHEMA_VERSIONS,
    VERSIONS,
    MappingLayout,
)
from instar.lineage.schema_content import FieldContent, SchemaContent, decode_members

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from sqlalchemy import Connection

__all__ = ["OldVersion", "Stored", "VersionBatch", "contents_of", "read_batch", "schema_content", "stored_of"]

_CHUNK = 400


class OldVersion(NamedTuple):
    """A dataset version: `fields` are the ids of its fields in the old layout, sorted."""

    uuid: UUID
    dataset_uuid: UUID
    created_at: Any
    schema_version: UUID | None
    fields: tuple[UUID, ...]


class VersionBatch(NamedTuple):
    """Some versions in the order of their ids; `cursor` is the last id, or None after the last batch."""

    versions: list[OldVersion]
    cursor: UUID | None

    @property
    def rows(self) -> int:
        """How many rows of the old layout there are."""
        return sum(len(version.fields) for version in self.versions)


class Stored(NamedTuple):
    """A schema version as it is stored."""

    fields: tuple[UUID, ...]
    fingerprint: str | None


def read_batch(connection: Connection, after: UUID | None, size: int) -> VersionBatch:
    """Return the versions that follow one, at most so many."""
    v = VERSIONS.c
    statement = select(v.uuid, v.dataset_uuid, v.created_at, v.dataset_schema_version_uuid)
    if after is not None:
        statement = statement.where(v.uuid > after)
    rows = connection.execute(statement.order_by(v.uuid).limit(size)).all()
    if not rows:
        return VersionBatch([], None)
    fields = _old_fields(connection, after, rows[-1].uuid)
    return VersionBatch([OldVersion(*row, fields.get(row.uuid, ())) for row in rows], rows[-1].uuid)


def _old_fields(connection: Connection, after: UUID | None, last: UUID) -> dict[UUID, tuple[UUID, ...]]:
    """Return the fields of all versions in a range: one row for each version, as text, is quickest."""
    version, field = OLD_MAPPING.c.dataset_version_uuid, OLD_MAPPING.c.dataset_field_uuid
    if connection.dialect.name == "sqlite":
        joined = func.group_concat(field, type_=Text)
    else:
        joined = func.string_agg(cast(field, Text), ",", type_=Text)
    statement = select(version, joined).where(version <= last).group_by(version)
    if after is not None:
        statement = statement.where(version > after)
    return {uuid: _split(text) for uuid, text in connection.execute(statement)}


@lru_cache(maxsize=4096)
def _split(text: str) -> tuple[UUID, ...]:
    return tuple(sorted(UUID(one) for one in text.split(",")))


def contents_of(
    connection: Connection, fields: Iterable[UUID], layout: MappingLayout
) -> dict[UUID, FieldContent]:
    """Return what fields are, by their ids."""
    nested = [FIELDS.c.members] if layout is MappingLayout.INSTAR else []
    found = {}
    for some in _chunks(fields):
        columns = (FIELDS.c.uuid, FIELDS.c.name, FIELDS.c.type, *nested)
        for row in connection.execute(select(*columns).where(FIELDS.c.uuid.in_(some))):
            members = decode_members(row[3]) if nested else ()
            found[row[0]] = FieldContent(row[1], row[2], members)
    return found


def stored_of(
    connection: Connection, schema_versions: Iterable[UUID], layout: MappingLayout
) -> dict[UUID, Stored]:
    """Return the schema versions that exist, by their ids."""
    found: dict[UUID, Stored] = {}
    s, m = SCHEMA_VERSIONS.c, SCHEMA_MAPPING.c
    for some in _chunks(schema_versions):
        fingerprint = [s.fingerprint] if layout is MappingLayout.INSTAR else []
        prints = {
            row[0]: row[1] if fingerprint else None
            for row in connection.execute(select(s.uuid, *fingerprint).where(s.uuid.in_(some)))
        }
        fields: dict[UUID, list[UUID]] = {}
        mapped = select(m.dataset_schema_version_uuid, m.dataset_field_uuid)
        for uuid, field in connection.execute(mapped.where(m.dataset_schema_version_uuid.in_(some))):
            fields.setdefault(uuid, []).append(field)
        for uuid, text in prints.items():
            found[uuid] = Stored(tuple(sorted(fields.get(uuid, ()))), text)
    return found


def schema_content(fields: Iterable[UUID], contents: dict[UUID, FieldContent]) -> SchemaContent:
    """Return the content of a schema with these fields."""
    return SchemaContent.of([contents[field] for field in fields])


def _chunks(values: Iterable[UUID]) -> Iterable[list[UUID]]:
    found = sorted(set(values))
    return (found[start : start + _CHUNK] for start in range(0, len(found), _CHUNK))
