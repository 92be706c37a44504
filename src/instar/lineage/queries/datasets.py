"""Datasets and their versions, as the Marquez API shows them: a fixed number of queries for a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy import func, select, union_all

from instar.errors import EntityNotFoundError
from instar.lineage.models import (
    DatasetFieldTagRow,
    DatasetRow,
    DatasetTagRow,
    DatasetVersionRow,
    NamespaceRow,
)
from instar.lineage.queries.fields import fields_of, show_fields
from instar.lineage.queries.rows import Json, Page, chunks, facets_of, format_time, stamped_facets
from instar.lineage.queries.runs import show_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection

__all__ = ["list_datasets", "list_versions", "members_of", "show_dataset", "show_datasets", "show_version"]


def members_of(connection: Connection, roots: Iterable[UUID]) -> dict[UUID, list[UUID]]:
    """Return all names of each dataset."""
    found: dict[UUID, list[UUID]] = {}
    for some in chunks(set(roots)):
        rows = select(DatasetRow.root_uuid, DatasetRow.uuid).where(DatasetRow.root_uuid.in_(some))
        for root, member in connection.execute(rows.order_by(DatasetRow.uuid)):
            found.setdefault(root, []).append(member)
    return found


def list_datasets(connection: Connection, namespace_uuid: UUID, page: Page) -> Json:
    """Return the datasets of a namespace by name; other names of the same dataset are not listed."""
    wanted = (
        DatasetRow.namespace_uuid == namespace_uuid,
        DatasetRow.uuid == DatasetRow.root_uuid,
        DatasetRow.is_hidden.is_(False),
    )
    statement = select(DatasetRow.uuid).where(*wanted).order_by(DatasetRow.name)
    roots = list(connection.scalars(statement.limit(page.limit).offset(page.offset)))
    shown = show_datasets(connection, roots)
    total = connection.scalar(select(func.count()).select_from(DatasetRow).where(*wanted))
    return {"datasets": [shown[root] for root in roots], "totalCount": total}


def show_dataset(connection: Connection, root: UUID) -> Json:
    """Return one dataset."""
    return show_datasets(connection, [root])[root]


def show_datasets(connection: Connection, roots: Sequence[UUID]) -> dict[UUID, Json]:
    """Return datasets by the id of their main name."""
    members = members_of(connection, roots)
    owners = {member: root for root, some in members.items() for member in some}
    rows = _dataset_rows(connection, roots)
    versions = _shown_versions(connection, rows, members)
    facets = _dataset_facets(connection, owners)
    fields = fields_of(connection, {version.dataset_schema_version_uuid for version in versions.values()})
    tags, field_tags = _tags(connection, owners)
    shown = {}
    for root, row in rows.items():
        version, own = versions.get(root), facets.get(root, {})
        schema = fields.get(version.dataset_schema_version_uuid, []) if version is not None else []
        described = show_fields(schema, own.get("schema"), field_tags.get(root, {}))
        shown[root] = _show_dataset(row, version, own, described, sorted(tags.get(root, ())))
    _mark_dropped(connection, shown, versions)
    return shown


def _dataset_rows(connection: Connection, roots: Sequence[UUID]) -> dict[UUID, Any]:
    found: dict[UUID, Any] = {}
    for some in chunks(roots):
        statement = select(DatasetRow.__table__, NamespaceRow.name.label("namespace")).join(
            NamespaceRow, NamespaceRow.uuid == DatasetRow.namespace_uuid
        )
        found |= {row.uuid: row for row in connection.execute(statement.where(DatasetRow.uuid.in_(some)))}
    return found


def _shown_versions(
    connection: Connection, rows: dict[UUID, Any], members: dict[UUID, list[UUID]]
) -> dict[UUID, Any]:
    """Return for each dataset its current version; of one that was never completed, the newest."""
    current = {row.current_version_uuid: root for root, row in rows.items() if row.current_version_uuid}
    found: dict[UUID, Any] = {}
    table = DatasetVersionRow.__table__
    for some in chunks(current):
        for row in connection.execute(select(table).where(table.c.uuid.in_(some))):
            found[current[row.uuid]] = row
    missing = [(root, member) for root in rows if root not in found for member in members[root]]
    owner = {member: root for root, member in missing}
    for pairs in chunks(missing):
        newest = [
            select(
                select(table)
                .where(table.c.dataset_uuid == member)
                .order_by(table.c.created_at.desc())
                .limit(1)
                .subquery()
            )
            for _, member in pairs
        ]
        for row in connection.execute(union_all(*newest)):
            root = owner[_as_uuid(row.dataset_uuid)]
            if root not in found or row.created_at > found[root].created_at:
                found[root] = row
    return found


def _as_uuid(value: UUID | str) -> UUID:
    return value if isinstance(value, UUID) else UUID(value)


def _dataset_facets(connection: Connection, owners: dict[UUID, UUID]) -> dict[UUID, dict[str, Json]]:
    """Return the latest facets of datasets, under whichever name they were reported."""
    merged: dict[UUID, dict[str, tuple[str, Json]]] = {}
    for member, facets in stamped_facets(connection, owners, "dataset").items():
        mine = merged.setdefault(owners[member], {})
        for name, (stamp, facet) in facets.items():
            if name not in mine or stamp > mine[name][0]:
                mine[name] = stamp, facet
    return {root: {name: facet for name, (_, facet) in some.items()} for root, some in merged.items()}


def _tags(
    connection: Connection, owners: dict[UUID, UUID]
) -> tuple[dict[UUID, set[str]], dict[UUID, dict[str, set[str]]]]:
    tags: dict[UUID, set[str]] = {}
    field_tags: dict[UUID, dict[str, set[str]]] = {}
    for some in chunks(owners):
        of_dataset = select(DatasetTagRow.dataset_uuid, DatasetTagRow.tag_name)
        for member, tag in connection.execute(of_dataset.where(DatasetTagRow.dataset_uuid.in_(some))):
            tags.setdefault(owners[member], set()).add(tag)
        row = DatasetFieldTagRow
        of_field = select(row.dataset_uuid, row.field_name, row.tag_name).where(row.dataset_uuid.in_(some))
        for member, field, tag in connection.execute(of_field):
            field_tags.setdefault(owners[member], {}).setdefault(field, set()).add(tag)
    return tags, field_tags


def _show_dataset(
    row: Any,  # noqa: ANN401 -- a row
    version: Any,  # noqa: ANN401 -- a row, or None
    facets: dict[str, Json],
    fields: list[Json],
    tags: list[str],
) -> Json:
    current = version is not None and version.current_at is not None
    return {
        "id": {"namespace": row.namespace, "name": row.name},
        "type": row.type,
        "name": row.name,
        "physicalName": row.physical_name,
        "createdAt": format_time(row.created_at),
        "updatedAt": format_time(row.updated_at),
        "namespace": row.namespace,
        "sourceName": source_name(facets),
        "fields": fields,
        "tags": tags,
        "lastModifiedAt": format_time(version.created_at) if version is not None else None,
        "lastLifecycleState": None,
        "description": (facets.get("documentation") or {}).get("description"),
        "currentVersion": str(version.uuid) if current else None,
        "currentSchemaVersion": _text(version.dataset_schema_version_uuid) if version is not None else None,
        "columnLineage": show_column_lineage(facets.get("columnLineage")),
        "facets": facets,
        "deleted": False,
        "compatibility": row.compatibility,
    }


def _mark_dropped(connection: Connection, shown: dict[UUID, Json], versions: dict[UUID, Any]) -> None:
    """Let the current version say whether its dataset was dropped: an event that failed does not."""
    current = {version.uuid: root for root, version in versions.items() if version.current_at is not None}
    facets = facets_of(connection, current, "version")
    for uuid, root in current.items():
        state = (facets.get(uuid, {}).get("lifecycleStateChange") or {}).get("lifecycleStateChange")
        shown[root]["lastLifecycleState"] = state
        shown[root]["deleted"] = state == "DROP"


def source_name(facets: dict[str, Json]) -> str:
    """Return the source that a dataset says it is in."""
    return str((facets.get("dataSource") or {}).get("name") or "default")


def show_column_lineage(facet: Json | None) -> list[Json]:
    """Return what the columns of a dataset are made from."""
    return [
        {
            "name": name,
            "inputFields": [
                {
                    "namespace": source.get("namespace"),
                    "dataset": source.get("name"),
                    "field": source.get("field"),
                    "transformations": source.get("transformations") or [],
                    "transformationDescription": made.get("transformationDescription"),
                    "transformationType": made.get("transformationType"),
                }
                for source in made.get("inputFields") or []
            ],
            "transformationDescription": made.get("transformationDescription"),
            "transformationType": made.get("transformationType"),
        }
        for name, made in ((facet or {}).get("fields") or {}).items()
    ]


def _text(value: UUID | None) -> str | None:
    return str(value) if value is not None else None


def list_versions(connection: Connection, root: UUID, page: Page) -> Json:
    """Return the versions of a dataset under all its names, the newest first."""
    members = members_of(connection, [root])[root]
    row = DatasetVersionRow
    mine = row.dataset_uuid == members[0] if len(members) == 1 else row.dataset_uuid.in_(members)
    statement = select(row.__table__).where(mine).order_by(row.created_at.desc(), row.uuid.desc())
    rows = connection.execute(statement.limit(page.limit).offset(page.offset)).all()
    counts = select(func.sum(DatasetRow.version_count)).where(DatasetRow.uuid.in_(members))
    total = int(connection.scalar(counts) or 0)
    return {"versions": _show_versions(connection, root, rows), "totalCount": total}


def show_version(connection: Connection, root: UUID, version: str) -> Json:
    """Return one version of a dataset, or raise."""
    members = members_of(connection, [root])[root]
    try:
        uuid = UUID(version)
    except ValueError:
        raise EntityNotFoundError("dataset version", version) from None
    table = DatasetVersionRow.__table__
    wanted = select(table).where(table.c.uuid == uuid, table.c.dataset_uuid.in_(members))
    rows = connection.execute(wanted).all()
    if not rows:
        raise EntityNotFoundError("dataset version", version)
    return _show_versions(connection, root, rows)[0]


def _show_versions(connection: Connection, root: UUID, rows: Sequence[Any]) -> list[Json]:
    members = members_of(connection, [root])[root]
    dataset = _dataset_rows(connection, [root])[root]
    latest = _dataset_facets(connection, dict.fromkeys(members, root)).get(root, {})
    facets = facets_of(connection, [row.uuid for row in rows], "version", "output")
    fields = fields_of(connection, {row.dataset_schema_version_uuid for row in rows})
    runs = show_runs(connection, [row.run_uuid for row in rows if row.run_uuid is not None], io=False)
    tags, field_tags = _tags(connection, dict.fromkeys(members, root))
    shown = []
    for row in rows:
        own = facets.get(row.uuid, {})
        schema = fields.get(row.dataset_schema_version_uuid, [])
        lifecycle = (own.get("lifecycleStateChange") or {}).get("lifecycleStateChange")
        documentation = own.get("documentation") or latest.get("documentation") or {}
        shown.append(
            {
                "id": {"namespace": dataset.namespace, "name": dataset.name},
                "type": dataset.type,
                "name": dataset.name,
                "physicalName": dataset.physical_name,
                "createdAt": format_time(row.created_at),
                "version": str(row.uuid),
                "namespace": dataset.namespace,
                "sourceName": source_name(own if "dataSource" in own else latest),
                "fields": show_fields(
                    schema, own.get("schema") or latest.get("schema"), field_tags.get(root, {})
                ),
                "tags": sorted(tags.get(root, ())),
                "lifecycleState": lifecycle,
                "description": documentation.get("description"),
                "currentSchemaVersion": _text(row.dataset_schema_version_uuid),
                "currentSince": format_time(row.current_at),
                "createdByRun": runs.get(row.run_uuid),
                "facets": own,
            }
        )
    return shown
