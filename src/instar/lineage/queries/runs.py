"""Runs as the Marquez API shows them, with the dataset versions that they read and wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import or_, select
from sqlalchemy.orm import aliased

from instar.lineage.ingest.timeline import Timeline
from instar.lineage.models import (
    DatasetRow,
    DatasetVersionRow,
    JobRow,
    NamespaceRow,
    RunInputRow,
    RunRow,
)
from instar.lineage.queries.rows import Json, Page, chunks, count_rows, facets_of, format_time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from sqlalchemy import Connection

__all__ = ["list_runs", "show_run", "show_runs"]


def list_runs(connection: Connection, job_uuid: UUID, page: Page) -> Json:
    """Return the runs of a job, the newest first."""
    mine = RunRow.job_uuid == job_uuid
    statement = select(RunRow.uuid).where(mine).order_by(RunRow.created_at.desc(), RunRow.uuid.desc())
    uuids = list(connection.scalars(statement.limit(page.limit).offset(page.offset)))
    shown = show_runs(connection, uuids)
    total = count_rows(connection, RunRow, page, mine)
    return {"runs": [shown[uuid] for uuid in uuids], "totalCount": total}


def show_run(connection: Connection, uuid: UUID) -> Json:
    """Return one run."""
    return show_runs(connection, [uuid])[uuid]


def show_runs(connection: Connection, uuids: Sequence[UUID], *, io: bool = True) -> dict[UUID, Json]:
    """Return runs by id; without `io`, what they read and wrote is left out."""
    shown: dict[UUID, Json] = {}
    facets = facets_of(connection, uuids, "run")
    for some in chunks(set(uuids)):
        rows = connection.execute(
            select(RunRow.__table__, JobRow.name.label("job"), NamespaceRow.name.label("namespace"))
            .join(JobRow, JobRow.uuid == RunRow.job_uuid)
            .join(NamespaceRow, NamespaceRow.uuid == JobRow.namespace_uuid)
            .where(RunRow.uuid.in_(some))
        )
        shown |= {row.uuid: _show_run(row, facets.get(row.uuid, {})) for row in rows}
    if io and shown:
        _add_inputs(connection, shown)
        _add_outputs(connection, shown)
    return shown


def _show_run(row: Any, facets: dict[str, Json]) -> Json:  # noqa: ANN401 -- a row
    nominal = facets.get("nominalTime") or {}
    started, ended = row.started_at, row.ended_at
    version = {"namespace": row.namespace, "name": row.job, "version": str(row.job_version_uuid)}
    return {
        "id": str(row.uuid),
        "externalId": row.run_id,
        "createdAt": format_time(row.created_at),
        "updatedAt": format_time(row.updated_at),
        "nominalStartTime": nominal.get("nominalStartTime"),
        "nominalEndTime": nominal.get("nominalEndTime"),
        "state": row.state,
        "startedAt": format_time(started),
        "endedAt": format_time(ended),
        "durationMs": (ended - started) // 1000 if started is not None and ended is not None else None,
        "args": (facets.get("marquez_args") or {}).get("args") or {},
        "job": {"namespace": row.namespace, "name": row.job},
        "jobVersion": version if row.job_version_uuid is not None else None,
        "inputDatasetVersions": [],
        "outputDatasetVersions": [],
        "facets": facets,
    }


def _add_inputs(connection: Connection, shown: dict[UUID, Json]) -> None:
    """Add what was read, at the moment when each run first named it."""
    version = DatasetVersionRow
    found = (
        select(version.uuid)
        .where(
            version.dataset_uuid == RunInputRow.dataset_uuid,
            version.current_at <= RunInputRow.at,
            or_(version.run_uuid.is_(None), version.run_uuid != RunInputRow.run_uuid),
        )
        .order_by(version.current_at.desc(), version.uuid.desc())
        .limit(1)
        .correlate(RunInputRow)
        .scalar_subquery()
    )
    root, alias, other = aliased(DatasetRow), DatasetRow, aliased(DatasetRow)
    grouped = select(other.uuid).where(other.root_uuid == root.uuid, other.uuid != root.uuid).exists()
    for some in chunks(shown):
        rows = connection.execute(
            select(
                RunInputRow.uuid,
                RunInputRow.run_uuid,
                RunInputRow.at,
                root.uuid.label("root"),
                root.name,
                NamespaceRow.name.label("namespace"),
                found.label("version"),
                grouped.label("grouped"),
            )
            .join(alias, alias.uuid == RunInputRow.dataset_uuid)
            .join(root, root.uuid == alias.root_uuid)
            .join(NamespaceRow, NamespaceRow.uuid == root.namespace_uuid)
            .where(RunInputRow.run_uuid.in_(some))
            .order_by(NamespaceRow.name, root.name)
        ).all()
        facets = facets_of(connection, [row.uuid for row in rows], "input")
        for row in rows:
            uuid = row.version
            if row.grouped:  # a version that was written under another name of the same dataset
                timeline = next(Timeline.load(connection, [row.root]))
                held = timeline.read_by(row.at, row.run_uuid)
                uuid = held.uuid if held is not None else None
            shown[row.run_uuid]["inputDatasetVersions"].append(
                _show_io(row.namespace, row.name, uuid, facets.get(row.uuid, {}))
            )


def _add_outputs(connection: Connection, shown: dict[UUID, Json]) -> None:
    root, alias = aliased(DatasetRow), DatasetRow
    for some in chunks(shown):
        rows = connection.execute(
            select(
                DatasetVersionRow.uuid,
                DatasetVersionRow.run_uuid,
                root.name,
                NamespaceRow.name.label("namespace"),
            )
            .join(alias, alias.uuid == DatasetVersionRow.dataset_uuid)
            .join(root, root.uuid == alias.root_uuid)
            .join(NamespaceRow, NamespaceRow.uuid == root.namespace_uuid)
            .where(DatasetVersionRow.run_uuid.in_(some))
            .order_by(NamespaceRow.name, root.name)
        ).all()
        facets = facets_of(connection, [row.uuid for row in rows], "output")
        for row in rows:
            shown[row.run_uuid]["outputDatasetVersions"].append(
                _show_io(row.namespace, row.name, row.uuid, facets.get(row.uuid, {}))
            )


def _show_io(namespace: str, name: str, version: UUID | None, facets: dict[str, Json]) -> Json:
    return {
        "datasetVersionId": {
            "namespace": namespace,
            "name": name,
            "version": str(version) if version is not None else None,
        },
        "facets": facets,
    }
