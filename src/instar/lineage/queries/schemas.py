"""The schemas that a dataset has had: their history, and what changed between two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy import func, select

from instar.errors import EntityNotFoundError
from instar.lineage.models import SchemaVersionRow
from instar.lineage.queries.datasets import members_of
from instar.lineage.queries.fields import fields_of, show_fields
from instar.lineage.queries.rows import Json, Page, format_time, stamped_facets
from instar.lineage.verdicts import diff

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["diff_schema_versions", "list_schema_versions", "show_schema_version"]


def list_schema_versions(connection: Connection, root: UUID, page: Page) -> Json:
    """Return the schema versions of a dataset, the newest first; equal ones under two names are one."""
    members = members_of(connection, [root])[root]
    row = SchemaVersionRow
    mine = row.dataset_uuid.in_(members)
    first = func.min(row.created_at).label("created_at")
    statement = (
        select(row.fingerprint, first)
        .where(mine)
        .group_by(row.fingerprint)
        .order_by(first.desc(), row.fingerprint)
        .limit(page.limit)
        .offset(page.offset)
    )
    found = connection.execute(statement).all()
    total = connection.scalar(select(func.count(row.fingerprint.distinct())).where(mine))
    ids = _ids(connection, root, members, [one.fingerprint for one in found])
    fields = fields_of(connection, ids.values())
    facet = _schema_facet(connection, members)
    return {
        "schemaVersions": [
            {
                "version": str(ids[one.fingerprint]),
                "createdAt": format_time(one.created_at),
                "fields": show_fields(fields.get(ids[one.fingerprint], []), facet),
            }
            for one in found
        ],
        "totalCount": total,
    }


def show_schema_version(connection: Connection, root: UUID, version: str) -> Json:
    """Return one schema version of a dataset, or raise."""
    members = members_of(connection, [root])[root]
    row = _load(connection, members, version)
    fields = fields_of(connection, [row.uuid]).get(row.uuid, [])
    return {
        "version": str(row.uuid),
        "createdAt": format_time(row.created_at),
        "fields": show_fields(fields, _schema_facet(connection, members)),
    }


def diff_schema_versions(connection: Connection, root: UUID, old: str, new: str) -> Json:
    """Return what changed between two schema versions of a dataset, and who would be fenced."""
    members = members_of(connection, [root])[root]
    before, after = _load(connection, members, old), _load(connection, members, new)
    fields = fields_of(connection, [before.uuid, after.uuid])
    verdict = diff(fields.get(before.uuid, []), fields.get(after.uuid, []))
    return {"from": str(before.uuid), "to": str(after.uuid), **verdict}


def _ids(connection: Connection, root: UUID, members: list[UUID], fingerprints: list[str]) -> dict[str, UUID]:
    """Return the id under which each content is shown: that of the dataset's main name."""
    row = SchemaVersionRow
    rows = connection.execute(
        select(row.fingerprint, row.dataset_uuid, row.uuid).where(
            row.dataset_uuid.in_(members), row.fingerprint.in_(fingerprints)
        )
    ).all()
    preferred = sorted(rows, key=lambda one: (one.dataset_uuid == root, one.uuid))
    return {one.fingerprint: one.uuid for one in preferred}


def _load(connection: Connection, members: list[UUID], version: str) -> Any:  # noqa: ANN401 -- a row
    try:
        uuid = UUID(version)
    except ValueError:
        raise EntityNotFoundError("schema version", version) from None
    row = SchemaVersionRow
    wanted = select(row.uuid, row.created_at).where(row.uuid == uuid, row.dataset_uuid.in_(members))
    found = connection.execute(wanted).first()
    if found is None:
        raise EntityNotFoundError("schema version", version)
    return found


def _schema_facet(connection: Connection, members: list[UUID]) -> Json | None:
    """Return the latest schema facet under any name: it has the order and the descriptions of fields."""
    facets = stamped_facets(connection, members, "dataset")
    found = [some["schema"] for some in facets.values() if "schema" in some]
    return max(found, key=lambda one: one[0])[1] if found else None
