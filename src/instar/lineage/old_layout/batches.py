"""Dataset versions a thousand at a time, each with the shape that the old layout gives it.

A *shape* is a text that represents a set of fields. Equal shapes are equal sets of fields, so the fields
themselves are fetched once for each shape and not for each version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import LargeBinary, Text, cast, func, literal, literal_column, select, tuple_
from sqlalchemy.dialects.postgresql import aggregate_order_by

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
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from sqlalchemy import Column, ColumnElement, Connection, ScalarSelect

__all__ = [
    "Cursor",
    "OldVersion",
    "SchemaShape",
    "VersionBatch",
    "contents_of",
    "datasets_of_batch",
    "fields_of",
    "load_schemas",
    "old_fields",
    "read_batch",
    "schema_content",
]

_CHUNK = 400


class Cursor(NamedTuple):
    """The version up to which everything was looked at; in Marquez, its id says enough."""

    dataset_uuid: UUID | None
    created_at: int | None
    uuid: UUID


class OldVersion(NamedTuple):
    """A dataset version; `shape` represents its fields in the old layout, None if it has none there."""

    uuid: UUID
    dataset_uuid: UUID
    created_at: Any
    schema_version: UUID | None
    shape: str | None


class VersionBatch(NamedTuple):
    """Some versions in order; `cursor` is the last one, or None after the last batch."""

    versions: list[OldVersion]
    cursor: Cursor | None

    @property
    def rows(self) -> int:
        """How many rows of the old layout there are."""
        return sum(_count(version.shape) for version in self.versions)


class SchemaShape(NamedTuple):
    """A schema version as it is stored; Marquez keeps no fingerprint."""

    shape: str | None
    fingerprint: str | None


def _order(layout: MappingLayout) -> list[Column[Any]]:
    """Say in which order versions are looked at, which has to be the order of an index.

    In a database of instar, this is dataset by dataset, so that only events about one of them wait for a
    batch.
    """
    v = VERSIONS.c
    return [v.dataset_uuid, v.created_at, v.uuid] if layout is MappingLayout.INSTAR else [v.uuid]


def _next(layout: MappingLayout, after: Cursor | None, size: int) -> Any:  # noqa: ANN401 -- a subquery
    v, order = VERSIONS.c, _order(layout)
    statement = select(v.uuid, v.dataset_uuid, v.created_at, v.dataset_schema_version_uuid)
    if after is not None:
        values = after if layout is MappingLayout.INSTAR else after[-1:]
        statement = statement.where(tuple_(*order) > tuple_(*map(literal, values)))
    return statement.order_by(*order).limit(size).subquery()


def datasets_of_batch(
    connection: Connection, layout: MappingLayout, after: Cursor | None, size: int
) -> set[UUID]:
    """Return the datasets that the versions which follow one belong to."""
    return set(connection.scalars(select(_next(layout, after, size).c.dataset_uuid).distinct()))


def read_batch(
    connection: Connection, layout: MappingLayout, after: Cursor | None, size: int
) -> VersionBatch:
    """Return the versions that follow one, at most so many."""
    found = _next(layout, after, size)
    mapping = OLD_MAPPING.c
    shape = _shape(connection, mapping.dataset_version_uuid, mapping.dataset_field_uuid, found.c.uuid)
    order = [found.c[column.name] for column in _order(layout)]
    versions = [OldVersion(*row) for row in connection.execute(select(found, shape).order_by(*order))]
    if not versions:
        return VersionBatch([], None)
    last = versions[-1]
    if layout is MappingLayout.MARQUEZ:
        return VersionBatch(versions, Cursor(None, None, last.uuid))
    return VersionBatch(versions, Cursor(last.dataset_uuid, last.created_at, last.uuid))


def _shape(
    connection: Connection, owner: Column[Any], field: Column[Any], mine: ColumnElement[Any]
) -> ScalarSelect[Any]:
    """Return the shape of what a mapping gives an owner: the number of fields, and what stands for them."""
    if connection.dialect.name == "sqlite":
        shape = cast(func.count(), Text) + ":" + func.group_concat(field, type_=Text)
    else:
        empty = literal_column("''::bytea", LargeBinary)
        joined = func.string_agg(func.uuid_send(field), aggregate_order_by(empty, field))
        shape = cast(func.count(), Text) + ":" + func.encode(func.sha256(joined), "hex", type_=Text)
    return select(shape).where(owner == mine).scalar_subquery()


def _count(shape: str | None) -> int:
    return int(shape.partition(":")[0]) if shape is not None else 0


def old_fields(connection: Connection, versions: Iterable[UUID]) -> dict[UUID, tuple[UUID, ...]]:
    """Return the ids of the fields that the old layout gives versions."""
    return _mapped(connection, OLD_MAPPING.c.dataset_version_uuid, versions)


def fields_of(connection: Connection, schema_versions: Iterable[UUID]) -> dict[UUID, tuple[UUID, ...]]:
    """Return the ids of the fields of schema versions."""
    return _mapped(connection, SCHEMA_MAPPING.c.dataset_schema_version_uuid, schema_versions)


def _mapped(
    connection: Connection, owner: Column[Any], wanted: Iterable[UUID]
) -> dict[UUID, tuple[UUID, ...]]:
    found: dict[UUID, list[UUID]] = {}
    for some in _chunks(wanted):
        rows = select(owner, owner.table.c.dataset_field_uuid).where(owner.in_(some))
        for uuid, field in connection.execute(rows):
            found.setdefault(uuid, []).append(field)
    return {uuid: tuple(sorted(fields)) for uuid, fields in found.items()}


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


def load_schemas(
    connection: Connection, schema_versions: Iterable[UUID], layout: MappingLayout
) -> dict[UUID, SchemaShape]:
    """Return the schema versions that exist, by their ids."""
    s, m = SCHEMA_VERSIONS.c, SCHEMA_MAPPING.c
    shape = _shape(connection, m.dataset_schema_version_uuid, m.dataset_field_uuid, s.uuid)
    fingerprint = s.fingerprint if layout is MappingLayout.INSTAR else literal(None)
    found: dict[UUID, SchemaShape] = {}
    for some in _chunks(schema_versions):
        for uuid, *rest in connection.execute(select(s.uuid, shape, fingerprint).where(s.uuid.in_(some))):
            found[uuid] = SchemaShape(*rest)
    return found


def schema_content(fields: Iterable[UUID], contents: dict[UUID, FieldContent]) -> SchemaContent:
    """Return the content of a schema with these fields."""
    return SchemaContent.of([contents[field] for field in fields])


def _chunks(values: Iterable[UUID]) -> Iterator[list[UUID]]:
    found = sorted(set(values))
    return (found[start : start + _CHUNK] for start in range(0, len(found), _CHUNK))
