"""Runs: their states, what they read, and the version of the job that their inputs and outputs make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import delete, literal, select, union, update

from instar.lineage.database import add_missing, add_one, insert
from instar.lineage.events import RunState
from instar.lineage.ids import stable_id
from instar.lineage.ingest.changes import DatasetChange
from instar.lineage.ingest.names import NO_STAMP
from instar.lineage.models import (
    DatasetVersionRow,
    JobVersionIoRow,
    JobVersionRow,
    ObservedSchemaRow,
    RunInputRow,
    RunRow,
)

if TYPE_CHECKING:
    from uuid import UUID

    from sqlalchemy import Connection

    from instar.lineage.ingest.mentions import Mentions

__all__ = ["RecordedRun", "record_job_version", "record_reads", "record_run"]


class RecordedRun(NamedTuple):
    """A run as it now is."""

    uuid: UUID
    job_uuid: UUID
    state: str
    is_streaming: bool
    ended_at: int | None
    job_version_uuid: UUID | None

    def current_at(self, version_created_at: int) -> int | None:
        """Say since when what the run wrote is current: when it completed, or at once if it never ends."""
        if self.state == RunState.COMPLETED.name:
            return self.ended_at
        return version_created_at if self.is_streaming else None


def record_run(connection: Connection, mentions: Mentions) -> RecordedRun | None:
    """Merge what an event says about its run into what is known about it."""
    event = mentions.event
    if mentions.run_uuid is None or mentions.job_uuid is None:
        return None
    old = (
        connection.execute(select(RunRow.__table__).where(RunRow.uuid == mentions.run_uuid))
        .mappings()
        .first()
    )
    new: dict[str, Any] = dict(old) if old is not None else _new_run(mentions)
    new["created_at"] = min(new["created_at"], event.at)
    new["updated_at"] = max(new["updated_at"], event.at)
    new["is_streaming"] = new["is_streaming"] or event.is_streaming
    if event.stamp > new["job_stamp"]:
        new["job_uuid"], new["job_stamp"] = mentions.job_uuid, event.stamp
    if event.event_type == "START":
        new["started_at"] = min(event.at, new["started_at"] if new["started_at"] is not None else event.at)
    if event.state is not None and event.state_stamp > new["state_stamp"]:
        new["state"], new["state_stamp"] = event.state.name, event.state_stamp
        new["ended_at"] = event.at if event.state.terminal else None
    if old is None:
        connection.execute(insert(connection.dialect.name, RunRow).values(**new))
    elif dict(old) != new:
        connection.execute(update(RunRow).where(RunRow.uuid == mentions.run_uuid).values(**new))
    return RecordedRun(
        new["uuid"],
        new["job_uuid"],
        new["state"],
        new["is_streaming"],
        new["ended_at"],
        new["job_version_uuid"],
    )


def _new_run(mentions: Mentions) -> dict[str, Any]:
    event = mentions.event
    return {
        "uuid": mentions.run_uuid,
        "run_id": event.run_id,
        "job_uuid": mentions.job_uuid,
        "job_stamp": NO_STAMP,
        "state": RunState.NEW.name,
        "state_stamp": NO_STAMP,
        "is_streaming": False,
        "created_at": event.at,
        "updated_at": event.at,
        "started_at": None,
        "ended_at": None,
        "job_version_uuid": None,
    }


def record_reads(connection: Connection, mentions: Mentions) -> list[DatasetChange]:
    """Store what the run of an event reads, and return what that changes."""
    reads = {mention.made: mention for mention in mentions.inputs if mention.made is not None}
    if not reads:
        return []
    columns = (RunInputRow.uuid, RunInputRow.at, RunInputRow.observed_uuid, RunInputRow.observed_stamp)
    known = {
        row.uuid: row for row in connection.execute(select(*columns).where(RunInputRow.uuid.in_(list(reads))))
    }
    event, changes = mentions.event, []
    added: list[dict[str, Any]] = []
    for uuid in sorted(reads):
        mention, old = reads[uuid], known.get(uuid)
        at = event.at if old is None else min(event.at, old.at)
        observed, stamp = (old.observed_uuid, old.observed_stamp) if old is not None else (None, NO_STAMP)
        if mention.schema is not None and event.stamp > stamp:
            content = mention.schema.encode()
            observed, stamp = stable_id("observed schema", mention.uuid, content), event.stamp
            row = {"uuid": observed, "dataset_uuid": mention.uuid, "content": content}
            add_missing(connection, ObservedSchemaRow, [row])
        values = {"at": at, "observed_uuid": observed, "observed_stamp": stamp}
        if old is None:
            key = {"uuid": uuid, "run_uuid": mentions.run_uuid, "job_uuid": mentions.job_uuid}
            added.append({**key, "dataset_uuid": mention.uuid, **values})
        elif (old.at, old.observed_uuid, old.observed_stamp) != (at, observed, stamp):
            connection.execute(update(RunInputRow).where(RunInputRow.uuid == uuid).values(**values))
        if old is None or (old.at, old.observed_uuid) != (at, observed):
            moments = {at} if old is None else {at, old.at}
            changes += [DatasetChange(mention.uuid, moment, mentions.run_uuid) for moment in moments]
        if old is not None and old.observed_uuid not in (None, observed):
            _release_observed(connection, old.observed_uuid)
    if added:
        connection.execute(insert(connection.dialect.name, RunInputRow), added)
    return changes


def _release_observed(connection: Connection, uuid: UUID) -> None:
    """Forget fields that nobody saw any more."""
    used = select(RunInputRow.uuid).where(RunInputRow.observed_uuid == uuid).limit(1)
    if connection.scalar(used) is None:
        connection.execute(delete(ObservedSchemaRow).where(ObservedSchemaRow.uuid == uuid))


def record_job_version(connection: Connection, run: RecordedRun | None) -> None:
    """Give a run that has ended the job version that its inputs and outputs make."""
    if run is None or not RunState[run.state].terminal:
        return
    read, written = RunInputRow, DatasetVersionRow
    everything = union(
        select(literal("input").label("io"), read.dataset_uuid).where(read.run_uuid == run.uuid),
        select(literal("output"), written.dataset_uuid).where(written.run_uuid == run.uuid),
    )
    io: list[tuple[str, UUID]] = sorted((kind, uuid) for kind, uuid in connection.execute(everything))
    inputs = [uuid for kind, uuid in io if kind == "input"]
    outputs = [uuid for kind, uuid in io if kind == "output"]
    version = stable_id("job version", run.job_uuid, *inputs, None, *outputs)
    if version == run.job_version_uuid:
        return
    if add_one(connection, JobVersionRow, {"uuid": version, "job_uuid": run.job_uuid}):
        rows = [{"job_version_uuid": version, "dataset_uuid": uuid, "io": kind} for kind, uuid in io]
        add_missing(connection, JobVersionIoRow, rows)
    connection.execute(update(RunRow).where(RunRow.uuid == run.uuid).values(job_version_uuid=version))
    if run.job_version_uuid is not None:
        used = select(RunRow.uuid).where(RunRow.job_version_uuid == run.job_version_uuid).limit(1)
        if connection.scalar(used) is None:
            connection.execute(delete(JobVersionRow).where(JobVersionRow.uuid == run.job_version_uuid))
