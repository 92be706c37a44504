"""Store one event in one transaction: the raw event, everything that it names, and what follows from it.

Each row is merged with what is there: the earliest time of creation, the latest report of a value, the union
of edges. So a retry changes nothing, and events may come in any order.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from instar.lineage.database import add_one, lock
from instar.lineage.ids import namespace_id
from instar.lineage.ingest.edges import record_columns, record_edges
from instar.lineage.ingest.facets import record_facets
from instar.lineage.ingest.mentions import Mentions
from instar.lineage.ingest.names import record_datasets, record_jobs, record_namespaces, record_sources
from instar.lineage.ingest.runs import record_job_version, record_reads, record_run
from instar.lineage.ingest.symlinks import record_symlinks
from instar.lineage.ingest.timeline import Timeline
from instar.lineage.ingest.versions import record_versions
from instar.lineage.models import EventRow

if TYPE_CHECKING:
    from uuid import UUID

    from sqlalchemy import Connection

    from instar.lineage.database import Database
    from instar.lineage.events import OpenLineageEvent
    from instar.lineage.ingest.changes import DatasetChange

__all__ = ["ingest_event"]


def ingest_event(database: Database, event: OpenLineageEvent, *, received_at: int) -> bool:
    """Store an event; answer False if it was stored before."""
    mentions = Mentions(event)
    locks: set[UUID] = set()

    def record(connection: Connection) -> bool:
        return _record(connection, mentions, received_at, locks)

    while True:
        try:
            return database.write(record)
        except _NeedsMoreLocksError as more:
            locks |= more.keys


class _NeedsMoreLocksError(Exception):
    def __init__(self, keys: set[UUID]) -> None:
        self.keys = keys


def _record(connection: Connection, mentions: Mentions, received_at: int, locks: set[UUID]) -> bool:
    event = mentions.event
    _lock(connection, mentions, locks)
    if not add_one(connection, EventRow, _raw(mentions, received_at)):
        return False
    jobs = [job for job in (event.job, event.parent) if job is not None]
    spaces = {job.namespace for job in jobs} | {namespace for namespace, _ in mentions.names.values()}
    record_namespaces(connection, spaces, event.at)
    aged = record_datasets(connection, mentions.names, event.at)
    regrouped = record_symlinks(connection, mentions.symlinks(), aged)
    record_jobs(connection, event)
    run = record_run(connection, mentions)
    record_facets(connection, mentions)
    changes = [*record_versions(connection, mentions, run), *record_reads(connection, mentions)]
    record_edges(connection, mentions)
    record_columns(connection, mentions)
    record_job_version(connection, run)
    by_name: dict[UUID, list[DatasetChange]] = {}
    for change in changes:
        by_name.setdefault(change.dataset_uuid, []).append(change)
    for timeline in Timeline.load(connection, regrouped | by_name.keys()):
        mine = [change for member in timeline.members for change in by_name.get(member, ())]
        timeline.settle(mine, whole=not regrouped.isdisjoint(timeline.members))
    record_sources(connection, mentions)
    return True


def _lock(connection: Connection, mentions: Mentions, known: set[UUID]) -> None:
    """Keep everybody away from what this event changes, also from what its run named before.

    All locks are taken at once, in one order, so that nobody waits in a circle. If it turns out that more are
    needed, the transaction starts again with these.
    """
    if connection.dialect.name == "sqlite":
        return
    keys = {mentions.event.uuid, *mentions.names, *known}
    keys |= {key for key in (mentions.run_uuid, mentions.job_uuid, mentions.parent_uuid) if key is not None}
    lock(connection, keys)
    given = {"names": [*mentions.names, *known], "run": mentions.run_uuid}
    needed = set(connection.scalars(_NEIGHBOURS, given))
    if not needed <= keys:
        raise _NeedsMoreLocksError(needed)


# What an event names and what its run has read and written before, each under all its names. What an event
# leaves out its run has seldom named, so this is asked once, after locking.
_NEIGHBOURS: Final = text(
    "SELECT uuid FROM datasets WHERE root_uuid IN ("
    "SELECT root_uuid FROM datasets WHERE uuid = ANY(CAST(:names AS uuid[])) "
    "UNION SELECT d.root_uuid FROM dataset_versions v JOIN datasets d ON d.uuid = v.dataset_uuid "
    "WHERE v.run_uuid = CAST(:run AS uuid) "
    "UNION SELECT d.root_uuid FROM run_inputs i JOIN datasets d ON d.uuid = i.dataset_uuid "
    "WHERE i.run_uuid = CAST(:run AS uuid))"
)


def _raw(mentions: Mentions, received_at: int) -> dict[str, Any]:
    event = mentions.event
    owner = event.job or event.dataset
    assert owner is not None  # noqa: S101 -- every kind of event has one of them
    return {
        "uuid": event.uuid,
        "kind": event.kind.value,
        "event_type": event.event_type,
        "event_time": event.at,
        "received_at": received_at,
        "namespace_uuid": namespace_id(owner.namespace),
        "run_uuid": mentions.run_uuid,
        "payload": zlib.compress(event.payload, 1),
    }
