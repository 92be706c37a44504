"""Retention: what was superseded before a time goes, a few rows at a time, while the service goes on.

The current version of a dataset always stays, and so does whatever was current at that time or is newer.
Schema versions go when no dataset version refers to them any more.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, delete, exists, or_, select
from sqlalchemy.orm import aliased

from instar.lineage.database import lock
from instar.lineage.ingest.schema_versions import refresh_schema_versions
from instar.lineage.ingest.versions import count_versions
from instar.lineage.models import (
    DatasetVersionRow,
    EventRow,
    FacetContentRow,
    FacetRow,
    JobVersionRow,
    ObservedSchemaRow,
    RunInputRow,
    RunRow,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from sqlalchemy import Connection, Select

    from instar.lineage.database import Database

__all__ = ["Retired", "retire"]

BATCH = 200


@dataclass
class Retired:
    """How many rows of each kind have gone."""

    dataset_versions: int = 0
    reads: int = 0
    runs: int = 0
    job_versions: int = 0
    events: int = 0
    observed_schemas: int = 0
    facet_contents: int = 0

    def to_json(self) -> dict[str, int]:
        """Return the numbers by name."""
        return asdict(self)


def retire(
    database: Database,
    before: int,
    *,
    batch: int = BATCH,
    report: Callable[[Retired], object] = lambda _: None,
) -> Retired:
    """Delete what was superseded before a time, in transactions of a few rows; `report` hears of each."""
    done = Retired()
    steps: list[tuple[str, Callable[[Connection], int]]] = [
        ("dataset_versions", lambda connection: _retire_versions(connection, before, batch)),
        ("reads", lambda connection: _retire_reads(connection, before, batch)),
        ("runs", lambda connection: _retire_runs(connection, before, batch)),
        (
            "job_versions",
            lambda connection: _delete_unused(connection, _unused_job_versions(), JobVersionRow, batch),
        ),
        ("events", lambda connection: _delete_unused(connection, _old_events(before), EventRow, batch)),
        (
            "observed_schemas",
            lambda connection: _delete_unused(connection, _unseen(), ObservedSchemaRow, batch),
        ),
        (
            "facet_contents",
            lambda connection: _delete_unused(connection, _unused_facets(), FacetContentRow, batch),
        ),
    ]
    for name, step in steps:
        while True:
            count = database.write(step)
            setattr(done, name, getattr(done, name) + count)
            report(done)
            if count < batch:
                break
    return done


def _superseded(row: Any, moment: Any, before: int) -> Any:  # noqa: ANN401 -- columns of either table
    """Say that another version was current after this one and before the time."""
    later = aliased(DatasetVersionRow)
    return exists().where(
        later.dataset_uuid == row.dataset_uuid, later.current_at > moment, later.current_at < before
    )


def _retire_versions(connection: Connection, before: int, batch: int) -> int:
    row = DatasetVersionRow
    old = or_(
        row.current_at.is_(None),
        and_(row.current_at < before, _superseded(row, row.current_at, before)),
    )
    columns = (row.uuid, row.dataset_uuid, row.declared_schema_version_uuid, row.dataset_schema_version_uuid)
    wanted = select(*columns).where(row.created_at < before, old).order_by(row.created_at).limit(batch)
    found = connection.execute(wanted).all()
    lock(connection, {one.dataset_uuid for one in found})
    uuids = [one.uuid for one in found]
    connection.execute(delete(FacetRow).where(FacetRow.owner_uuid.in_(uuids)))
    connection.execute(delete(row).where(row.uuid.in_(uuids)))
    counts: dict[UUID, int] = {}
    for one in found:
        counts[one.dataset_uuid] = counts.get(one.dataset_uuid, 0) - 1
    for dataset_uuid, count in sorted(counts.items()):
        count_versions(connection, dataset_uuid, count)
    schemas = {uuid for one in found for uuid in one[2:]}
    refresh_schema_versions(connection, schemas)
    return len(uuids)


def _retire_reads(connection: Connection, before: int, batch: int) -> int:
    """Delete reads of versions that were superseded: those of the others still say how a schema was seen."""
    row = RunInputRow
    old = select(row.uuid, row.dataset_uuid).where(row.at < before, _superseded(row, row.at, before))
    found = connection.execute(old.order_by(row.at).limit(batch)).all()
    lock(connection, {one.dataset_uuid for one in found})
    uuids = [one.uuid for one in found]
    connection.execute(delete(FacetRow).where(FacetRow.owner_uuid.in_(uuids)))
    connection.execute(delete(row).where(row.uuid.in_(uuids)))
    return len(uuids)


def _retire_runs(connection: Connection, before: int, batch: int) -> int:
    """Delete runs that ended, and of which nothing is left."""
    row = RunRow
    unused = (
        ~exists().where(DatasetVersionRow.run_uuid == row.uuid),
        ~exists().where(RunInputRow.run_uuid == row.uuid),
    )
    old = select(row.uuid).where(row.updated_at < before, *unused).order_by(row.updated_at).limit(batch)
    uuids = list(connection.scalars(old))
    lock(connection, uuids)
    connection.execute(delete(FacetRow).where(FacetRow.owner_uuid.in_(uuids)))
    connection.execute(delete(row).where(row.uuid.in_(uuids), *unused))
    return len(uuids)


def _unused_job_versions() -> Select[Any]:
    return select(JobVersionRow.uuid).where(~exists().where(RunRow.job_version_uuid == JobVersionRow.uuid))


def _old_events(before: int) -> Select[Any]:
    return select(EventRow.uuid).where(EventRow.event_time < before)


def _unseen() -> Select[Any]:
    used = exists().where(RunInputRow.observed_uuid == ObservedSchemaRow.uuid)
    return select(ObservedSchemaRow.uuid).where(~used)


def _unused_facets() -> Select[Any]:
    used = exists().where(FacetRow.content_uuid == FacetContentRow.uuid)
    return select(FacetContentRow.uuid).where(~used)


def _delete_unused(connection: Connection, unused: Select[Any], row: Any, batch: int) -> int:  # noqa: ANN401 -- a table
    uuids = list(connection.scalars(unused.limit(batch)))
    connection.execute(delete(row).where(row.uuid.in_(uuids)))
    return len(uuids)
