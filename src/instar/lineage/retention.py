"""Retention: delete what was superseded before a time, a few rows at a time, while the service runs.

The current version of a dataset always stays, and so does whatever was current at that time or is newer.
Schema versions go when no dataset version refers to them any more. Each kind of row is walked through once.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, delete, exists, literal, or_, select, tuple_
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
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from sqlalchemy import ColumnElement, Connection

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


@dataclass(frozen=True)
class _Kind:
    """Rows of one table that may go, and in which order they are looked at, which is that of an index."""

    name: str
    row: Any
    old: Sequence[ColumnElement[bool]]
    order: Sequence[Any]
    remove: Callable[[Connection, Sequence[Any]], None]
    locked: str | None = None  # the column that says what nobody may change meanwhile

    def select(self, *conditions: ColumnElement[bool]) -> Any:  # noqa: ANN401 -- a select of a whole table
        return select(self.row.__table__).where(*self.old, *conditions).order_by(*self.order)


def retire(
    database: Database,
    before: int,
    *,
    batch: int = BATCH,
    report: Callable[[Retired], object] = lambda _: None,
) -> Retired:
    """Delete what was superseded before a time, in transactions of a few rows; `report` gets the counts."""
    done = Retired()
    for kind in _kinds(before):
        after: tuple[Any, ...] | None = None
        while True:
            count, after = database.write(partial(_retire_some, kind=kind, after=after, batch=batch))
            setattr(done, kind.name, getattr(done, kind.name) + count)
            report(done)
            if after is None:
                break
    return done


def _retire_some(
    connection: Connection, kind: _Kind, after: tuple[Any, ...] | None, batch: int
) -> tuple[int, tuple[Any, ...] | None]:
    """Delete rows that follow one; return how many, and where to continue, or None."""
    following = [tuple_(*kind.order) > tuple_(*map(literal, after))] if after is not None else []
    found = connection.execute(kind.select(*following).limit(batch)).all()
    still = found
    if found and kind.locked is not None:
        lock(connection, {getattr(one, kind.locked) for one in found})
        # An event, or somebody else's retention, may have been faster.
        still = connection.execute(kind.select(kind.row.uuid.in_([one.uuid for one in found]))).all()
    if still:
        kind.remove(connection, still)
    end = tuple(getattr(found[-1], column.key) for column in kind.order) if len(found) == batch else None
    return len(still), end


def _kinds(before: int) -> list[_Kind]:
    """Return what goes, each before that to which it refers."""
    version, read, run = DatasetVersionRow, RunInputRow, RunRow
    event, facet = EventRow, FacetContentRow
    job, seen = JobVersionRow, ObservedSchemaRow
    return [
        _Kind(
            "dataset_versions",
            version,
            (
                version.created_at < before,
                or_(
                    version.current_at.is_(None),
                    and_(version.current_at < before, _superseded(version, version.current_at, before)),
                ),
            ),
            (version.created_at, version.uuid),
            _remove_versions,
            "dataset_uuid",
        ),
        # Reads of versions that stay still say how a schema was seen.
        _Kind(
            "reads",
            read,
            (read.at < before, _superseded(read, read.at, before)),
            (read.at, read.uuid),
            partial(_remove_owners, row=read),
            "dataset_uuid",
        ),
        _Kind(
            "runs",
            run,
            (run.updated_at < before, _unused(run, version.run_uuid), _unused(run, read.run_uuid)),
            (run.updated_at, run.uuid),
            partial(_remove_owners, row=run),
            "uuid",
        ),
        _Kind(
            "job_versions", job, (_unused(job, run.job_version_uuid),), (job.uuid,), partial(_remove, row=job)
        ),
        _Kind(
            "events",
            event,
            (event.event_time < before,),
            (event.event_time, event.uuid),
            partial(_remove, row=event),
        ),
        _Kind(
            "observed_schemas",
            seen,
            (_unused(seen, read.observed_uuid),),
            (seen.uuid,),
            partial(_remove, row=seen),
        ),
        _Kind(
            "facet_contents",
            facet,
            (_unused(facet, FacetRow.content_uuid),),
            (facet.uuid,),
            partial(_remove, row=facet),
        ),
    ]


def _superseded(row: Any, moment: Any, before: int) -> Any:  # noqa: ANN401 -- columns of either table
    """Say that another version was current after this one and before the time."""
    later = aliased(DatasetVersionRow)
    return exists().where(
        later.dataset_uuid == row.dataset_uuid, later.current_at > moment, later.current_at < before
    )


def _unused(row: Any, reference: Any) -> Any:  # noqa: ANN401 -- a table, and a column of another
    return ~exists().where(reference == row.uuid)


def _remove(connection: Connection, found: Sequence[Any], row: Any) -> None:  # noqa: ANN401 -- a table
    connection.execute(delete(row).where(row.uuid.in_([one.uuid for one in found])))


def _remove_owners(connection: Connection, found: Sequence[Any], row: Any) -> None:  # noqa: ANN401 -- a table
    """Delete rows and their facets."""
    connection.execute(delete(FacetRow).where(FacetRow.owner_uuid.in_([one.uuid for one in found])))
    _remove(connection, found, row)


def _remove_versions(connection: Connection, found: Sequence[Any]) -> None:
    """Delete versions, and the schemas that only they had."""
    _remove_owners(connection, found, DatasetVersionRow)
    counts: dict[UUID, int] = {}
    for one in found:
        counts[one.dataset_uuid] = counts.get(one.dataset_uuid, 0) - 1
    for dataset_uuid, count in sorted(counts.items()):
        count_versions(connection, dataset_uuid, count)
    schemas = {one.declared_schema_version_uuid for one in found}
    refresh_schema_versions(connection, schemas | {one.dataset_schema_version_uuid for one in found})
