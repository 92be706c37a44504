"""Prove, one batch at a time, that both layouts agree about every dataset version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.lineage.old_layout.batches import (
    VersionBatch,
    contents_of,
    fields_of,
    load_schemas,
    old_fields,
    read_batch,
    schema_content,
)

if TYPE_CHECKING:
    from uuid import UUID

    from sqlalchemy import Connection

    from instar.lineage.old_layout.batches import Cursor, OldVersion, SchemaShape
    from instar.lineage.old_layout.tables import MappingLayout

__all__ = ["verify_batch"]


def verify_batch(
    connection: Connection, layout: MappingLayout, after: Cursor | None, size: int
) -> tuple[VersionBatch, list[str]]:
    """Compare the versions that follow one; return them, and what is wrong with any.

    The connection must see one state of the database, or events that come in meanwhile look like damage.
    """
    batch = read_batch(connection, layout, after, size)
    pointed = {version.schema_version for version in batch.versions} - {None}
    stored = load_schemas(connection, {uuid for uuid in pointed if uuid is not None}, layout)
    problems = [
        f"schema version {uuid} is not what its fingerprint says"
        for uuid in _forged(connection, layout, stored)
    ]
    doubtful: list[OldVersion] = []
    for version in batch.versions:
        problem = _missing(version, stored)
        if problem is not None:
            problems.append(f"dataset version {version.uuid} {problem}")
        elif version.schema_version is not None and stored[version.schema_version].shape != version.shape:
            doubtful.append(version)
    return batch, problems + _compare(connection, layout, doubtful)


def _forged(connection: Connection, layout: MappingLayout, stored: dict[UUID, SchemaShape]) -> list[UUID]:
    """Return the schema versions whose fields are not those of their fingerprint, where there is one."""
    kept = {uuid: schema.fingerprint for uuid, schema in stored.items() if schema.fingerprint is not None}
    fields = fields_of(connection, kept)
    contents = contents_of(connection, {one for some in fields.values() for one in some}, layout)
    return [
        uuid
        for uuid in sorted(kept)
        if schema_content(fields.get(uuid, ()), contents).fingerprint != kept[uuid]
    ]


def _missing(version: OldVersion, stored: dict[UUID, SchemaShape]) -> str | None:
    if version.schema_version is None:
        return "has fields in the old layout, and no schema version" if version.shape else None
    if version.schema_version not in stored:
        return f"points at schema version {version.schema_version}, which is not there"
    return None


def _compare(connection: Connection, layout: MappingLayout, versions: list[OldVersion]) -> list[str]:
    """Compare what the fields say: Marquez may have several rows for the same field."""
    if not versions:
        return []
    old = old_fields(connection, [version.uuid for version in versions])
    new = fields_of(connection, {one.schema_version for one in versions if one.schema_version is not None})
    everything = {field for some in (*old.values(), *new.values()) for field in some}
    contents = contents_of(connection, everything, layout)
    problems = []
    for version in versions:
        before = schema_content(old.get(version.uuid, ()), contents)
        assert version.schema_version is not None  # noqa: S101 -- it was found
        after = schema_content(new.get(version.schema_version, ()), contents)
        if before != after:
            lost = ", ".join(sorted({field.name for field in {*before.fields} ^ {*after.fields}}))
            problems.append(
                f"dataset version {version.uuid} has other fields in the old layout than in its schema "
                f"version: {lost}"
            )
    return problems
