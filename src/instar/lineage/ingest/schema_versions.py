"""Schema versions: one row for each content of a dataset's schema, found again however old it is.

A row is as old as the oldest dataset version that refers to it, and goes when none does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import delete, exists, func, select, update

from instar.lineage.database import add_missing
from instar.lineage.ids import stable_id
from instar.lineage.models import DatasetFieldRow, DatasetVersionRow, SchemaVersionFieldRow, SchemaVersionRow
from instar.lineage.old_layout.both import unused_by_old_layout
from instar.lineage.schema_content import FieldContent, SchemaContent, decode_members

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from sqlalchemy import Connection

__all__ = ["ensure_schema_version", "load_content", "refresh_schema_versions"]


def ensure_schema_version(
    connection: Connection, dataset_uuid: UUID, content: SchemaContent, created_at: int
) -> UUID:
    """Return the id of the schema version with this content, which is stored if it is new."""
    fingerprint = content.fingerprint
    uuid = stable_id("schema version", dataset_uuid, fingerprint)
    row = {"uuid": uuid, "dataset_uuid": dataset_uuid, "fingerprint": fingerprint, "created_at": created_at}
    known = connection.scalar(select(SchemaVersionRow.created_at).where(SchemaVersionRow.uuid == uuid))
    if known is not None:
        if created_at < known:
            older = update(SchemaVersionRow).where(SchemaVersionRow.uuid == uuid)
            connection.execute(older.values(created_at=created_at))
        return uuid
    add_missing(connection, SchemaVersionRow, [row])
    fields = {stable_id("field", dataset_uuid, field.encode()): field for field in content.fields}
    add_missing(
        connection,
        DatasetFieldRow,
        [
            {
                "uuid": key,
                "dataset_uuid": dataset_uuid,
                "name": field.name,
                "type": field.type,
                "members": field.encode_members(),
            }
            for key, field in fields.items()
        ],
    )
    mapping = [{"dataset_schema_version_uuid": uuid, "dataset_field_uuid": key} for key in fields]
    add_missing(connection, SchemaVersionFieldRow, mapping)
    return uuid


def load_content(connection: Connection, uuid: UUID) -> SchemaContent:
    """Return the content of a schema version."""
    fields = connection.execute(
        select(DatasetFieldRow.name, DatasetFieldRow.type, DatasetFieldRow.members)
        .join(SchemaVersionFieldRow, SchemaVersionFieldRow.dataset_field_uuid == DatasetFieldRow.uuid)
        .where(SchemaVersionFieldRow.dataset_schema_version_uuid == uuid)
    )
    return SchemaContent.of([FieldContent(name, type_, decode_members(text)) for name, type_, text in fields])


def refresh_schema_versions(connection: Connection, uuids: Iterable[UUID | None]) -> None:
    """Compute the age of schema versions again after versions changed; delete those that are unused."""
    wanted = sorted({uuid for uuid in uuids if uuid is not None})
    for start in range(0, len(wanted), _CHUNK):
        found = select(SchemaVersionRow.uuid, SchemaVersionRow.created_at, _DECLARED, _SHOWN).where(
            SchemaVersionRow.uuid.in_(wanted[start : start + _CHUNK])
        )
        for uuid, created_at, *oldest in connection.execute(found).all():
            times = [at for at in oldest if at is not None]
            if not times:
                delete_schema_version(connection, uuid)
            elif min(times) != created_at:
                mine = update(SchemaVersionRow).where(SchemaVersionRow.uuid == uuid)
                connection.execute(mine.values(created_at=min(times)))


def _oldest(column: Any) -> Any:  # noqa: ANN401 -- a column, and what to select
    """Return the age of the oldest version that refers to a schema version: the first entry of an index."""
    oldest = select(func.min(DatasetVersionRow.created_at)).where(column == SchemaVersionRow.uuid)
    return oldest.correlate(SchemaVersionRow).scalar_subquery()


_CHUNK: Final = 400
_DECLARED: Final = _oldest(DatasetVersionRow.declared_schema_version_uuid)
_SHOWN: Final = _oldest(DatasetVersionRow.dataset_schema_version_uuid)


def delete_schema_version(connection: Connection, uuid: UUID) -> None:
    """Delete a schema version, and the fields that were only in it."""
    mapping = SchemaVersionFieldRow.dataset_field_uuid
    own = select(mapping).where(SchemaVersionFieldRow.dataset_schema_version_uuid == uuid)
    fields = list(connection.scalars(own))
    connection.execute(delete(SchemaVersionRow).where(SchemaVersionRow.uuid == uuid))
    connection.execute(
        delete(DatasetFieldRow).where(
            DatasetFieldRow.uuid.in_(fields),
            ~exists().where(mapping == DatasetFieldRow.uuid),
            *unused_by_old_layout(connection),
        )
    )
