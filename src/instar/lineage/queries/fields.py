"""The fields of schema versions, and how they are shown: described and ordered as the latest event did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from instar.lineage.models import DatasetFieldRow, SchemaVersionFieldRow
from instar.lineage.queries.rows import Json, chunks
from instar.lineage.schema_content import FieldContent, decode_members

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from sqlalchemy import Connection

__all__ = ["fields_of", "show_fields"]


def fields_of(
    connection: Connection, schema_versions: Iterable[UUID | None]
) -> dict[UUID | None, list[FieldContent]]:
    """Return the fields of schema versions, by name."""
    found: dict[UUID | None, list[FieldContent]] = {}
    mapping = SchemaVersionFieldRow
    for some in chunks({uuid for uuid in schema_versions if uuid is not None}):
        rows = connection.execute(
            select(
                mapping.dataset_schema_version_uuid,
                DatasetFieldRow.name,
                DatasetFieldRow.type,
                DatasetFieldRow.members,
            )
            .join(DatasetFieldRow, DatasetFieldRow.uuid == mapping.dataset_field_uuid)
            .where(mapping.dataset_schema_version_uuid.in_(some))
        )
        for uuid, name, type_, text in rows:
            found.setdefault(uuid, []).append(FieldContent(name, type_, decode_members(text)))
    return {uuid: sorted(fields, key=FieldContent.encode) for uuid, fields in found.items()}


def show_fields(
    fields: Iterable[FieldContent], facet: Json | None, tags: dict[str, set[str]] | None = None
) -> list[Json]:
    """Show fields in the order and with the descriptions of a schema facet; the rest follows by name."""
    described = {
        field.get("name"): (position, field)
        for position, field in reversed(list(enumerate((facet or {}).get("fields") or [])))
    }

    def place(field: FieldContent) -> tuple[int, str]:
        return described.get(field.name, (len(described), {}))[0], field.encode()

    shown = []
    for field in sorted(fields, key=place):
        known = described.get(field.name, (0, {}))[1]
        one: Json = {"name": field.name, "type": field.type}
        if tags is not None:
            one["tags"] = sorted(tags.get(field.name, ()))
        one["description"] = known.get("description")
        if field.members:
            one["fields"] = show_fields(field.members, known)
        shown.append(one)
    return shown
