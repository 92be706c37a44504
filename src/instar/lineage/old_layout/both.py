"""Phase 1: what is ingested goes into the old layout too, as long as a database has it.

A database without the old table never pays for this: the engine says once whether there is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, exists, select

from instar.lineage.models import DatasetFieldRow, SchemaVersionFieldRow
from instar.lineage.old_layout.tables import OLD_MAPPING, has_old_table
from instar.lineage.schema_content import FieldContent, SchemaContent, decode_members

if TYPE_CHECKING:
    from uuid import UUID

    from sqlalchemy import ColumnElement, Connection

__all__ = ["OLD_LAYOUT_OPTION", "load_old_content", "unused_by_old_layout", "write_old_layout"]

OLD_LAYOUT_OPTION: Final = "instar_old_layout"
"""The option of an engine whose database had the old table when it was opened."""


def _is_there(connection: Connection) -> bool:
    """Say whether to write both: the clean-up may have dropped the table since the database was opened."""
    return bool(connection.get_execution_options().get(OLD_LAYOUT_OPTION)) and has_old_table(connection)


def write_old_layout(connection: Connection, version: UUID, schema_version: UUID | None) -> None:
    """Give a version the fields of its schema version in the old layout."""
    if not _is_there(connection):
        return
    connection.execute(delete(OLD_MAPPING).where(OLD_MAPPING.c.dataset_version_uuid == version))
    mapping = SchemaVersionFieldRow
    fields = select(mapping.dataset_field_uuid).where(mapping.dataset_schema_version_uuid == schema_version)
    rows = [
        {"dataset_version_uuid": version, "dataset_field_uuid": field} for field in connection.scalars(fields)
    ]
    if rows:
        connection.execute(OLD_MAPPING.insert(), rows)


def load_old_content(connection: Connection, version: UUID) -> SchemaContent | None:
    """Return the schema that the old layout gives a version, or None if it gives none."""
    if not _is_there(connection):
        return None
    rows = connection.execute(
        select(DatasetFieldRow.name, DatasetFieldRow.type, DatasetFieldRow.members)
        .join(OLD_MAPPING, OLD_MAPPING.c.dataset_field_uuid == DatasetFieldRow.uuid)
        .where(OLD_MAPPING.c.dataset_version_uuid == version)
    ).all()
    fields = [FieldContent(name, type_, decode_members(text)) for name, type_, text in rows]
    return SchemaContent.of(fields) if fields else None


def unused_by_old_layout(connection: Connection) -> list[ColumnElement[bool]]:
    """Return a condition on fields: the old layout does not need them."""
    if not _is_there(connection):
        return []
    return [~exists().where(OLD_MAPPING.c.dataset_field_uuid == DatasetFieldRow.uuid)]
