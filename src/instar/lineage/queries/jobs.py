"""Jobs and their versions, as the Marquez API shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy import func, select, union_all
from sqlalchemy.orm import aliased

from instar.errors import EntityNotFoundError
from instar.lineage.models import (
    DatasetRow,
    JobEdgeRow,
    JobRow,
    JobTagRow,
    JobVersionIoRow,
    JobVersionRow,
    NamespaceRow,
    RunRow,
)
from instar.lineage.queries.rows import Json, Page, chunks, facets_of, format_time
from instar.lineage.queries.runs import show_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import ColumnElement, Connection

__all__ = ["list_job_versions", "list_jobs", "show_job", "show_job_version", "show_jobs"]

_LATEST_RUNS = 10
_TYPES = {"STREAMING": "STREAM", "SERVICE": "SERVICE"}


def list_jobs(
    connection: Connection, namespace_uuid: UUID | None, page: Page, states: Iterable[str] = ()
) -> Json:
    """Return jobs by name, of one namespace or of all; only those whose last run is in one of the states."""
    wanted: list[ColumnElement[bool]] = [JobRow.is_hidden.is_(False)]
    if namespace_uuid is not None:
        wanted.append(JobRow.namespace_uuid == namespace_uuid)
    names = list(states)
    if names:
        last = (
            select(RunRow.state)
            .where(RunRow.job_uuid == JobRow.uuid)
            .order_by(RunRow.created_at.desc(), RunRow.uuid.desc())
            .limit(1)
            .correlate(JobRow)
            .scalar_subquery()
        )
        wanted.append(last.in_(names))
    statement = select(JobRow.uuid).where(*wanted).order_by(JobRow.name, JobRow.uuid)
    uuids = list(connection.scalars(statement.limit(page.limit).offset(page.offset)))
    shown = show_jobs(connection, uuids)
    total = connection.scalar(select(func.count()).select_from(JobRow).where(*wanted))
    return {"jobs": [shown[uuid] for uuid in uuids], "totalCount": total}


def show_job(connection: Connection, uuid: UUID) -> Json:
    """Return one job."""
    return show_jobs(connection, [uuid])[uuid]


def show_jobs(
    connection: Connection, uuids: Sequence[UUID], *, latest: int = _LATEST_RUNS
) -> dict[UUID, Json]:
    """Return jobs by id, each with its latest runs; inputs and outputs are the union over all runs."""
    rows: dict[UUID, Any] = {}
    parent = aliased(JobRow)
    for some in chunks(set(uuids)):
        found = connection.execute(
            select(JobRow.__table__, NamespaceRow.name.label("namespace"), parent.name.label("parent_name"))
            .join(NamespaceRow, NamespaceRow.uuid == JobRow.namespace_uuid)
            .join(parent, parent.uuid == JobRow.parent_uuid, isouter=True)
            .where(JobRow.uuid.in_(some))
        )
        rows |= {row.uuid: row for row in found}
    facets = facets_of(connection, rows, "job")
    io = _io(connection, rows)
    runs = _latest_runs(connection, rows, latest)
    tags = _tags(connection, rows)
    return {
        uuid: _show_job(row, facets.get(uuid, {}), io[uuid], runs.get(uuid, []), tags.get(uuid, []))
        for uuid, row in rows.items()
    }


def _show_job(
    row: Any,  # noqa: ANN401 -- a row
    facets: dict[str, Json],
    io: dict[str, list[Json]],
    runs: list[Json],
    tags: list[str],
) -> Json:
    kind = str((facets.get("jobType") or {}).get("processingType") or "").upper()
    prefix = f"{row.parent_name}." if row.parent_name else None
    version = next((run["jobVersion"]["version"] for run in runs if run["jobVersion"]), None)
    return {
        "id": {"namespace": row.namespace, "name": row.name},
        "type": _TYPES.get(kind, "BATCH"),
        "name": row.name,
        "simpleName": row.name.removeprefix(prefix) if prefix else row.name,
        "parentJobName": row.parent_name,
        "parentJobUuid": str(row.parent_uuid) if row.parent_uuid is not None else None,
        "createdAt": format_time(row.created_at),
        "updatedAt": format_time(row.updated_at),
        "namespace": row.namespace,
        "inputs": io["input"],
        "outputs": io["output"],
        "location": (facets.get("sourceCodeLocation") or {}).get("url"),
        "description": (facets.get("documentation") or {}).get("description"),
        "latestRun": runs[0] if runs else None,
        "latestRuns": runs,
        "facets": facets,
        "currentVersion": version,
        "labels": [],
        "tags": tags,
    }


def _io(connection: Connection, uuids: Iterable[UUID]) -> dict[UUID, dict[str, list[Json]]]:
    found: dict[UUID, dict[str, list[Json]]] = {uuid: {"input": [], "output": []} for uuid in uuids}
    root, alias = aliased(DatasetRow), DatasetRow
    for some in chunks(found):
        rows = connection.execute(
            select(JobEdgeRow.job_uuid, JobEdgeRow.io, NamespaceRow.name, root.name)
            .distinct()
            .join(alias, alias.uuid == JobEdgeRow.dataset_uuid)
            .join(root, root.uuid == alias.root_uuid)
            .join(NamespaceRow, NamespaceRow.uuid == root.namespace_uuid)
            .where(JobEdgeRow.job_uuid.in_(some))
            .order_by(NamespaceRow.name, root.name)
        )
        for job, io, namespace, name in rows:
            found[job][io].append({"namespace": namespace, "name": name})
    return found


def _latest_runs(connection: Connection, uuids: Iterable[UUID], count: int) -> dict[UUID, list[Json]]:
    order: dict[UUID, list[UUID]] = {}
    for some in chunks(uuids):
        newest = [
            select(
                select(RunRow.job_uuid, RunRow.uuid)
                .where(RunRow.job_uuid == uuid)
                .order_by(RunRow.created_at.desc(), RunRow.uuid.desc())
                .limit(count)
                .subquery()
            )
            for uuid in some
        ]
        for job, run in connection.execute(union_all(*newest)):
            order.setdefault(job, []).append(run)
    shown = show_runs(connection, [run for runs in order.values() for run in runs], io=False)
    return {
        job: sorted((shown[run] for run in runs), key=lambda run: (run["createdAt"], run["id"]), reverse=True)
        for job, runs in order.items()
    }


def _tags(connection: Connection, uuids: Iterable[UUID]) -> dict[UUID, list[str]]:
    found: dict[UUID, list[str]] = {}
    for some in chunks(uuids):
        wanted = select(JobTagRow.job_uuid, JobTagRow.tag_name).where(JobTagRow.job_uuid.in_(some))
        for job, tag in connection.execute(wanted.order_by(JobTagRow.tag_name)):
            found.setdefault(job, []).append(tag)
    return found


def list_job_versions(connection: Connection, job_uuid: UUID, page: Page) -> Json:
    """Return the versions of a job, the newest first: each set of inputs and outputs that it has had."""
    since = func.min(RunRow.ended_at).label("since")
    latest = func.max(RunRow.ended_at).label("latest")
    statement = (
        select(JobVersionRow.uuid, since, latest)
        .join(RunRow, RunRow.job_version_uuid == JobVersionRow.uuid)
        .where(JobVersionRow.job_uuid == job_uuid)
        .group_by(JobVersionRow.uuid)
        .order_by(latest.desc(), JobVersionRow.uuid)
    )
    rows = connection.execute(statement.limit(page.limit).offset(page.offset)).all()
    total = connection.scalar(
        select(func.count()).select_from(JobVersionRow).where(JobVersionRow.job_uuid == job_uuid)
    )
    job = show_job(connection, job_uuid)
    return {
        "versions": [_show_version(connection, job, row.uuid, row.since, row.latest) for row in rows],
        "totalCount": total,
    }


def show_job_version(connection: Connection, job_uuid: UUID, version: str) -> Json:
    """Return one version of a job, or raise."""
    try:
        uuid = UUID(version)
    except ValueError:
        raise EntityNotFoundError("job version", version) from None
    wanted = (
        select(func.min(RunRow.ended_at), func.max(RunRow.ended_at))
        .join(JobVersionRow, JobVersionRow.uuid == RunRow.job_version_uuid)
        .where(RunRow.job_version_uuid == uuid, JobVersionRow.job_uuid == job_uuid)
    )
    since, latest = connection.execute(wanted).one()
    if since is None:
        raise EntityNotFoundError("job version", version)
    return _show_version(connection, show_job(connection, job_uuid), uuid, since, latest)


def _show_version(
    connection: Connection, job: Json, uuid: UUID, since: int | None, latest: int | None
) -> Json:
    root, alias = aliased(DatasetRow), DatasetRow
    rows = connection.execute(
        select(JobVersionIoRow.io, NamespaceRow.name, root.name)
        .distinct()
        .join(alias, alias.uuid == JobVersionIoRow.dataset_uuid)
        .join(root, root.uuid == alias.root_uuid)
        .join(NamespaceRow, NamespaceRow.uuid == root.namespace_uuid)
        .where(JobVersionIoRow.job_version_uuid == uuid)
        .order_by(NamespaceRow.name, root.name)
    ).all()
    last = connection.scalar(
        select(RunRow.uuid)
        .where(RunRow.job_version_uuid == uuid)
        .order_by(RunRow.ended_at.desc(), RunRow.uuid)
        .limit(1)
    )
    io = {
        kind: [{"namespace": namespace, "name": name} for found, namespace, name in rows if found == kind]
        for kind in ("input", "output")
    }
    return {
        "id": {**job["id"], "version": str(uuid)},
        "name": job["name"],
        "namespace": job["namespace"],
        "version": str(uuid),
        "createdAt": format_time(since),
        "updatedAt": format_time(latest),
        "location": job["location"],
        "inputs": io["input"],
        "outputs": io["output"],
        "latestRun": show_runs(connection, [last])[last] if last is not None else None,
    }
