"""Prove, one batch at a time, that both layouts say the same of every dataset version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.lineage.old_layout.batches import (
    Stored,
    VersionBatch,
    contents_of,
    read_batch,
    schema_content,
    stored_of,
)

if TYPE_CHECKING:
    from uuid import UUID

    from sqlalchemy import Connection

    from instar.lineage.old_layout.batches import OldVersion
    from instar.lineage.old_layout.tables import MappingLayout
    from instar.lineage.schema_content import FieldContent

__all__ = ["verify_batch"]


def verify_batch(
    connection: Connection, layout: MappingLayout, after: UUID | None, size: int
) -> tuple[VersionBatch, list[str]]:
    """Compare the versions that follow one; return them, and what is wrong with any."""
    batch = read_batch(connection, after, size)
    pointed = {version.schema_version for version in batch.versions} - {None}
    stored = stored_of(connection, {uuid for uuid in pointed if uuid is not None}, layout)
    fields = {field for version in batch.versions for field in version.fields}
    fields |= {field for schema in stored.values() for field in schema.fields}
    contents = contents_of(connection, fields, layout)
    problems = [
        f"schema version {uuid} is not what its fingerprint says"
        for uuid, schema in sorted(stored.items())
        if not _is_genuine(schema, contents)
    ]
    for version in batch.versions:
        problem = _problem(version, stored, contents)
        if problem is not None:
            problems.append(f"dataset version {version.uuid} {problem}")
    return batch, problems


def _is_genuine(schema: Stored, contents: dict[UUID, FieldContent]) -> bool:
    if schema.fingerprint is None:  # Marquez keeps none
        return True
    return schema_content(schema.fields, contents).fingerprint == schema.fingerprint


def _problem(
    version: OldVersion, stored: dict[UUID, Stored], contents: dict[UUID, FieldContent]
) -> str | None:
    if version.schema_version is None:
        return "has fields in the old layout, and no schema version" if version.fields else None
    if version.schema_version not in stored:
        return f"points at schema version {version.schema_version}, which is not there"
    fields = stored[version.schema_version].fields
    if fields == version.fields:
        return None
    new, old = schema_content(fields, contents), schema_content(version.fields, contents)
    if new == old:
        return None
    lost = sorted({field.name for field in {*old.fields} ^ {*new.fields}})
    return f"has other fields in the old layout than in its schema version: {', '.join(lost)}"
