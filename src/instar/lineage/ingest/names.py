"""Rows for what events name: namespaces, sources, datasets and jobs."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import case, or_, select, update

from instar.lineage.database import add_missing, insert
from instar.lineage.ids import job_id, namespace_id, source_id
from instar.lineage.models import DatasetRow, JobRow, NamespaceRow, SourceRow

if TYPE_CHECKING:
    from uuid import UUID

    from sqlalchemy import Connection

    from instar.lineage.events import OpenLineageEvent
    from instar.lineage.ingest.mentions import Mentions

__all__ = [
    "DEFAULT_SOURCE",
    "NO_STAMP",
    "record_datasets",
    "record_jobs",
    "record_namespaces",
    "record_sources",
]

NO_STAMP: Final = ""
"""Sorts before every stamp."""

DEFAULT_SOURCE: Final = "default"
"""The source of datasets that do not say where they are."""


def record_namespaces(connection: Connection, names: set[str], at: int) -> None:
    """Add the namespaces that are missing; each is as old as the oldest event that names it."""
    ids = {namespace_id(name): name for name in sorted(names)}
    known = connection.execute(
        select(NamespaceRow.uuid, NamespaceRow.created_at, NamespaceRow.is_hidden).where(
            NamespaceRow.uuid.in_(list(ids))
        )
    ).all()
    for uuid, created_at, is_hidden in sorted(known):
        if at < created_at or is_hidden:
            connection.execute(
                update(NamespaceRow)
                .where(NamespaceRow.uuid == uuid)
                .values(created_at=_least(NamespaceRow.created_at, at), is_hidden=False)
            )
    missing = sorted(ids.keys() - {row.uuid for row in known})
    if missing:
        statement = insert(connection.dialect.name, NamespaceRow)
        statement = statement.on_conflict_do_update(
            index_elements=["uuid"],
            set_={"created_at": _least(NamespaceRow.created_at, statement.excluded.created_at)},
        )
        values = [{"uuid": uuid, "name": ids[uuid], "created_at": at, "is_hidden": False} for uuid in missing]
        connection.execute(statement, values)


def record_datasets(connection: Connection, names: dict[UUID, tuple[str, str]], at: int) -> set[UUID]:
    """Add the datasets that are missing, and let the others know that they were seen.

    Return those that turn out to be older than they seemed.
    """
    columns = (DatasetRow.uuid, DatasetRow.created_at, DatasetRow.updated_at, DatasetRow.is_hidden)
    known = connection.execute(select(*columns).where(DatasetRow.uuid.in_(list(names)))).all()
    for uuid, created_at, updated_at, is_hidden in known:
        if at < created_at or at > updated_at:
            connection.execute(
                update(DatasetRow)
                .where(DatasetRow.uuid == uuid)
                .values(created_at=min(at, created_at), updated_at=max(at, updated_at))
            )
        if is_hidden:  # and so are its other names
            root = select(DatasetRow.root_uuid).where(DatasetRow.uuid == uuid).scalar_subquery()
            connection.execute(update(DatasetRow).where(DatasetRow.root_uuid == root).values(is_hidden=False))
    missing = names.keys() - {row.uuid for row in known}
    add_missing(
        connection,
        DatasetRow,
        [
            {
                "uuid": uuid,
                "namespace_uuid": namespace_id(names[uuid][0]),
                "name": names[uuid][1],
                "type": "DB_TABLE",
                "physical_name": names[uuid][1],
                "root_uuid": uuid,
                "created_at": at,
                "updated_at": at,
                "is_hidden": False,
                "version_count": 0,
                "compatibility": "none",
            }
            for uuid in sorted(missing)
        ],
    )
    return {row.uuid for row in known if at < row.created_at}


def record_jobs(connection: Connection, event: OpenLineageEvent) -> None:
    """Add the job of an event and the job that started it; the latest event says which one that is."""
    if event.job is None:
        return
    parent_uuid = None
    if event.parent is not None:
        parent_uuid = job_id(event.parent.namespace, event.parent.name)
        _record_job(connection, event, parent_uuid, event.parent.namespace, event.parent.name, None)
    uuid = job_id(event.job.namespace, event.job.name)
    parent_uuid = None if parent_uuid == uuid else parent_uuid
    _record_job(connection, event, uuid, event.job.namespace, event.job.name, parent_uuid)


def _record_job(
    connection: Connection,
    event: OpenLineageEvent,
    uuid: UUID,
    namespace: str,
    name: str,
    parent_uuid: UUID | None,
) -> None:
    values = {
        "uuid": uuid,
        "namespace_uuid": namespace_id(namespace),
        "name": name,
        "parent_uuid": parent_uuid,
        "parent_stamp": event.stamp if parent_uuid else NO_STAMP,
        "created_at": event.at,
        "updated_at": event.at,
        "is_hidden": False,
    }
    connection.execute(_merge_job(connection.dialect.name), values)


@cache
def _merge_job(dialect: str) -> Any:  # noqa: ANN401 -- an INSERT of either dialect
    statement = insert(dialect, JobRow)
    given = statement.excluded
    newer = given.parent_stamp > JobRow.parent_stamp
    return statement.on_conflict_do_update(
        index_elements=["uuid"],
        set_={
            "parent_uuid": case((newer, given.parent_uuid), else_=JobRow.parent_uuid),
            "parent_stamp": case((newer, given.parent_stamp), else_=JobRow.parent_stamp),
            "created_at": _least(JobRow.created_at, given.created_at),
            "updated_at": _greatest(JobRow.updated_at, given.updated_at),
            "is_hidden": False,
        },
        where=or_(
            newer,
            given.created_at < JobRow.created_at,
            given.updated_at > JobRow.updated_at,
            JobRow.is_hidden,
        ),
    )


def record_sources(connection: Connection, mentions: Mentions) -> None:
    """Add the sources of datasets; the latest event says where each one is.

    This comes last: many events share a source, and wait for one another from here on.
    """
    event = mentions.event
    found: dict[str, str] = {}
    for mention in mentions.datasets:
        facet = (mention.dataset.facets or {}).get("dataSource") or {}
        name, url = facet.get("name"), facet.get("uri")
        if isinstance(name, str) and name and "\0" not in f"{name}{url}":
            found[name] = url if isinstance(url, str) else ""
    rows = [
        {
            "uuid": source_id(name),
            "name": name,
            "type": url.partition(":")[0].upper() or "UNKNOWN",
            "connection_url": url,
            "created_at": event.at,
            "updated_at": event.at,
            "stamp": event.stamp,
        }
        for name, url in sorted(found.items())
    ]
    if rows:
        connection.execute(_merge_source(connection.dialect.name), rows)


@cache
def _merge_source(dialect: str) -> Any:  # noqa: ANN401 -- an INSERT of either dialect
    statement = insert(dialect, SourceRow)
    given = statement.excluded
    newer = given.stamp > SourceRow.stamp
    keys = ("type", "connection_url", "updated_at", "stamp")
    settings: dict[str, Any] = {key: case((newer, given[key]), else_=getattr(SourceRow, key)) for key in keys}
    settings["created_at"] = _least(SourceRow.created_at, given.created_at)
    return statement.on_conflict_do_update(
        index_elements=["uuid"], set_=settings, where=or_(newer, given.created_at < SourceRow.created_at)
    )


def _least(mine: Any, other: Any) -> Any:  # noqa: ANN401 -- SQL has it under two names
    return case((mine <= other, mine), else_=other)


def _greatest(mine: Any, other: Any) -> Any:  # noqa: ANN401 -- see above
    return case((mine >= other, mine), else_=other)
