"""Phase 2, one batch: give versions that only the old layout describes their schema version.

In a database of Marquez, ids are made as Marquez makes them, so that it finds them again. Where Marquez would
give two different schemas one id, the second gets an id of instar.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy import bindparam, select, text, update
from sqlalchemy.dialects import postgresql

from instar.lineage.database import lock
from instar.lineage.ids import stable_id
from instar.lineage.ingest.schema_versions import ensure_schema_version, refresh_schema_versions
from instar.lineage.old_layout.batches import (
    Cursor,
    VersionBatch,
    contents_of,
    datasets_of_batch,
    fields_of,
    load_schemas,
    old_fields,
    read_batch,
    schema_content,
)
from instar.lineage.old_layout.tables import (
    DATASETS,
    SCHEMA_MAPPING,
    SCHEMA_VERSIONS,
    VERSIONS,
    MappingLayout,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from instar.lineage.old_layout.batches import OldVersion
    from instar.lineage.schema_content import FieldContent, SchemaContent

__all__ = ["Converter", "marquez_id"]

_REMEMBERED = 50_000

DatasetShape = tuple[UUID, str]  # a dataset, and the shape of some of its versions


class Converter:
    """Converts batches, and remembers the shapes that it has met."""

    def __init__(self, layout: MappingLayout) -> None:
        self.layout = layout
        self._known: dict[DatasetShape, UUID] = {}

    def convert(self, connection: Connection, after: Cursor | None, size: int) -> tuple[VersionBatch, int]:
        """Convert the versions that follow one; return them, and how many were changed."""
        if self.layout is MappingLayout.INSTAR and connection.dialect.name != "sqlite":
            # The same locks as events take: nobody changes these versions meanwhile.
            lock(connection, datasets_of_batch(connection, self.layout, after, size))
        batch = read_batch(connection, self.layout, after, size)
        due = {
            version: (version.dataset_uuid, version.shape)
            for version in batch.versions
            if version.shape is not None and self._is_due(version)
        }
        schemas = self._schemas(connection, due)
        changes = [
            (version.uuid, schemas[shape])
            for version, shape in due.items()
            if schemas[shape] != version.schema_version
        ]
        if changes:
            self._point(connection, changes)
        if self.layout is MappingLayout.INSTAR:
            refresh_schema_versions(connection, {schema for _, schema in changes})
        return batch, len(changes)

    def _is_due(self, version: OldVersion) -> bool:
        """Marquez adds what readers saw to the old layout alone, so there every version is looked at."""
        return version.schema_version is None or self.layout is MappingLayout.MARQUEZ

    def _point(self, connection: Connection, changes: list[tuple[UUID, UUID]]) -> None:
        columns = ["dataset_schema_version_uuid"]
        columns += ["declared_schema_version_uuid"] if self.layout is MappingLayout.INSTAR else []
        if connection.dialect.name == "sqlite":
            values: dict[str, Any] = {column: bindparam("schema") for column in columns}
            statement = update(VERSIONS).where(VERSIONS.c.uuid == bindparam("key")).values(values)
            connection.execute(statement, [{"key": key, "schema": schema} for key, schema in changes])
            return
        settings = ", ".join(f"{column} = c.schema" for column in columns)
        pairs = "unnest(CAST(:keys AS uuid[]), CAST(:schemas AS uuid[])) AS c(key, schema)"
        keys, schemas = zip(*changes, strict=True)
        connection.execute(
            text(f"UPDATE {VERSIONS.name} AS v SET {settings} FROM {pairs} WHERE v.uuid = c.key"),  # noqa: S608 -- our own names
            {"keys": list(keys), "schemas": list(schemas)},
        )

    def _schemas(
        self, connection: Connection, due: dict[OldVersion, DatasetShape]
    ) -> dict[DatasetShape, UUID]:
        """Return the schema version of each shape, which is stored if it is new."""
        oldest: dict[DatasetShape, OldVersion] = {}
        for version in sorted(due, key=lambda version: version.created_at, reverse=True):
            oldest[due[version]] = version
        found = {shape: self._known[shape] for shape in oldest if shape in self._known}
        # Retention may have removed a schema version that was met earlier.
        stored = load_schemas(connection, found.values(), self.layout)
        found = {shape: uuid for shape, uuid in found.items() if uuid in stored}
        new = {shape: version for shape, version in oldest.items() if shape not in found}
        if new:
            fields = old_fields(connection, [version.uuid for version in new.values()])
            contents = contents_of(connection, {one for some in fields.values() for one in some}, self.layout)
            names = self._names(connection, {dataset for dataset, _ in new})
            for shape in sorted(new):
                version = new[shape]
                found[shape] = self._ensure(connection, version, fields[version.uuid], contents, names)
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        self._known.update(found)
        return found

    def _names(self, connection: Connection, datasets: set[UUID]) -> dict[UUID, tuple[str, str]]:
        if self.layout is MappingLayout.INSTAR:
            return {}
        d = DATASETS.c
        rows = connection.execute(
            select(d.uuid, d.namespace_name, d.name).where(d.uuid.in_(sorted(datasets)))
        )
        return {row[0]: (row[1], row[2]) for row in rows}

    def _ensure(
        self,
        connection: Connection,
        version: OldVersion,
        fields: tuple[UUID, ...],
        contents: dict[UUID, FieldContent],
        names: dict[UUID, tuple[str, str]],
    ) -> UUID:
        dataset, content = version.dataset_uuid, schema_content(fields, contents)
        if self.layout is MappingLayout.INSTAR:
            return ensure_schema_version(connection, dataset, content, version.created_at)
        ids = [
            marquez_id(*names[dataset], content),
            stable_id("schema version", dataset, content.fingerprint),
        ]
        for uuid in ids:
            self._add(connection, uuid, version, fields)
            stored = fields_of(connection, [uuid]).get(uuid, ())
            if schema_content(stored, contents_of(connection, stored, self.layout)) == content:
                return uuid
        raise AssertionError(contents)  # an id of ours has one content

    def _add(self, connection: Connection, uuid: UUID, version: OldVersion, fields: tuple[UUID, ...]) -> None:
        row = {"uuid": uuid, "dataset_uuid": version.dataset_uuid, "created_at": version.created_at}
        statement = postgresql.insert(SCHEMA_VERSIONS).values(**row).on_conflict_do_nothing()
        if connection.scalar(statement.returning(SCHEMA_VERSIONS.c.uuid)) is not None:
            mapping = [{"dataset_schema_version_uuid": uuid, "dataset_field_uuid": field} for field in fields]
            connection.execute(postgresql.insert(SCHEMA_MAPPING).on_conflict_do_nothing(), mapping)


def marquez_id(namespace: str, dataset: str, content: SchemaContent) -> UUID:
    """Return the id that Marquez gives a schema version: MD5 over names and types, with colons between."""
    pairs = [(field.name, field.type) for field in _sorted(content)]
    fields = [":".join(word for word in pair if word is not None) for pair in pairs]
    words = [namespace, dataset, ":".join(fields)]
    digest = hashlib.md5(":".join(words).encode(), usedforsecurity=False).digest()
    return UUID(bytes=digest, version=3)


def _sorted(content: SchemaContent) -> list[FieldContent]:
    """Sort as Java does: by units of UTF-16, what is missing first."""
    return sorted(
        content.fields,
        key=lambda field: (field.name.encode("utf-16-be"), (field.type or "").encode("utf-16-be")),
    )
