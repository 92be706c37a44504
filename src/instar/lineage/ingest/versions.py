"""Dataset versions that an event makes: one for each run and output, whichever event comes first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import or_, select, update

from instar.lineage.database import insert
from instar.lineage.ingest.changes import DatasetChange
from instar.lineage.ingest.names import NO_STAMP
from instar.lineage.ingest.schema_versions import ensure_schema_version, refresh_schema_versions
from instar.lineage.models import DatasetRow, DatasetVersionRow
from instar.lineage.old_layout.both import write_old_layout

if TYPE_CHECKING:
    from uuid import UUID

    from sqlalchemy import ColumnElement, Connection

    from instar.lineage.ingest.mentions import Mention, Mentions
    from instar.lineage.ingest.runs import RecordedRun

__all__ = ["count_versions", "record_versions"]


def record_versions(
    connection: Connection, mentions: Mentions, run: RecordedRun | None
) -> list[DatasetChange]:
    """Store the versions of the outputs of an event, and what its run's state means for all its outputs."""
    outputs = {mention.made: mention for mention in mentions.outputs if mention.made is not None}
    wanted: list[ColumnElement[bool]] = [DatasetVersionRow.uuid.in_(list(outputs))]
    if run is not None:
        wanted.append(DatasetVersionRow.run_uuid == run.uuid)
    table = DatasetVersionRow.__table__
    rows = connection.execute(select(table).where(or_(*wanted))).mappings()
    known = {row["uuid"]: dict(row) for row in rows}
    changes: list[DatasetChange] = []
    added: list[dict[str, Any]] = []
    for uuid in sorted(known.keys() | outputs.keys()):
        new, some = _record(connection, mentions, run, known.get(uuid), outputs.get(uuid))
        changes += some
        added += [new] if uuid not in known else []
    _add(connection, added)
    return changes


def _add(connection: Connection, rows: list[dict[str, Any]]) -> None:
    """Store new versions, all at once: an event may have thousands of outputs."""
    if not rows:
        return
    connection.execute(insert(connection.dialect.name, DatasetVersionRow), rows)
    counted = update(DatasetRow).where(DatasetRow.uuid.in_([row["dataset_uuid"] for row in rows]))
    connection.execute(counted.values(version_count=DatasetRow.version_count + 1))
    for row in rows:
        if row["dataset_schema_version_uuid"] is not None:
            write_old_layout(connection, row["uuid"], row["dataset_schema_version_uuid"])


def _record(
    connection: Connection,
    mentions: Mentions,
    run: RecordedRun | None,
    old: dict[str, Any] | None,
    mention: Mention | None,
) -> tuple[dict[str, Any], list[DatasetChange]]:
    """Return a version as it now is, and what that changes; one that is new is not stored yet."""
    event = mentions.event
    new = dict(old) if old is not None else _new_version(mentions, mention)
    if mention is not None:
        new["created_at"] = min(new["created_at"], event.at)
        if mention.schema is not None and event.stamp > new["declared_stamp"]:
            new["declared_stamp"] = event.stamp
            schema = ensure_schema_version(connection, mention.uuid, mention.schema, new["created_at"])
            if new["dataset_schema_version_uuid"] == new["declared_schema_version_uuid"]:
                new["dataset_schema_version_uuid"] = schema  # until the timeline knows better
            new["declared_schema_version_uuid"] = schema
    new["current_at"] = run.current_at(new["created_at"]) if run is not None else new["created_at"]
    if old == new:
        return new, []
    moments = {moment["current_at"] for moment in (old, new) if moment is not None} - {None}
    moments |= set() if moments else {new["created_at"]}
    if old is not None:
        connection.execute(
            update(DatasetVersionRow).where(DatasetVersionRow.uuid == new["uuid"]).values(**new)
        )
        if new["dataset_schema_version_uuid"] != old["dataset_schema_version_uuid"]:
            write_old_layout(connection, new["uuid"], new["dataset_schema_version_uuid"])
        columns = ("declared_schema_version_uuid", "dataset_schema_version_uuid")
        changed = old["created_at"] != new["created_at"] or any(old[key] != new[key] for key in columns)
        both = {row[key] for row in (old, new) for key in columns}
        refresh_schema_versions(connection, both if changed else ())
    declared = new["declared_schema_version_uuid"]
    # A version without a schema that was there before may have one in the old layout.
    settled = declared == new["dataset_schema_version_uuid"] and (declared is not None or old is None)
    is_current = new["current_at"] is not None
    return new, [
        DatasetChange(new["dataset_uuid"], at, new["run_uuid"], new["uuid"], settled, is_current)
        for at in sorted(moments)
    ]


def count_versions(connection: Connection, dataset_uuid: UUID, added: int) -> None:
    """Keep the number of versions of a dataset's name up to date."""
    statement = update(DatasetRow).where(DatasetRow.uuid == dataset_uuid)
    connection.execute(statement.values(version_count=DatasetRow.version_count + added))


def _new_version(mentions: Mentions, mention: Mention | None) -> dict[str, Any]:
    assert mention is not None  # noqa: S101 -- what is not known is mentioned
    return {
        "uuid": mention.made,
        "dataset_uuid": mention.uuid,
        "run_uuid": mentions.run_uuid,
        "created_at": mentions.event.at,
        "current_at": None,
        "declared_schema_version_uuid": None,
        "declared_stamp": NO_STAMP,
        "dataset_schema_version_uuid": None,
    }
