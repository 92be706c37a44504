"""Writing rows of whatever kind: a Spark frame goes to executors, everything else is stored in process."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from instar.reporting import RunInput, RunOutput, reported
from instar.state import Appended
from instar.stream.stamp import dataset_name
from instar.table.housekeeping.upkeep import keep_up
from instar.table.write.create import create_with_rows
from instar.table.write.overwrite import overwrite_local
from instar.table.write.rows import append_rows
from instar.table.write.store import LocalRows
from instar.table.write.upsert import check_key, upsert_local

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.schema import Schema
    from instar.state import Created
    from instar.table import Committed, Services, TableLog
    from instar.table.write.evolving import Evolution
    from instar.table.write.rows import WriteOptions
    from instar.table.write.store import Rows

__all__ = [
    "Commit",
    "Data",
    "as_commit",
    "create_data",
    "inputs_of",
    "overwrite_data",
    "report_commit",
    "upsert_data",
    "write_data",
]

_LOG: Final = logging.getLogger("instar.reporting")

Data = Any
"""A Spark DataFrame, or what `instar.parts.open_stream` takes."""


class Commit(NamedTuple):
    """The result of a write: its version, its time, its schema, and how many updates it has.

    A delete, update, upsert, merge, overwrite or restore that changes no row writes nothing, and no listener
    wakes up. It returns 0 `rows`, and the version, time and schema that the table already has.
    """

    seqno: int
    """The version of the table that it made, or found if it has no rows to change."""
    ts: int
    """Its time: a snapshot as of it has the rows, and `listen(since=ts)` begins after them."""
    schema_id: int
    """The schema that it was written under."""
    rows: int
    """How many updates it holds, retractions included."""


def create_data(services: Services, name: str, step: Created, data: Data, *, replace: bool) -> TableLog:
    """Create a table that begins with rows, and return its log."""
    made: list[TableLog] = []

    def write() -> Committed:
        begun = create_with_rows(services, name, step, _rows_of(data, step.schema), replace=replace)
        made.append(begun.log)
        return begun.committed

    _report(services, name, "create", write, None, data)
    return made[0]


def write_data(services: Services, log: TableLog, data: Data, options: WriteOptions) -> Commit:
    """Store rows and commit them."""
    options.check()

    def write() -> Committed:
        return append_rows(services, log, _rows_of(data, log.load_known().history.latest), options)

    return report_commit(services, log, "apply" if options.updates else "append", write, options.token, data)


def upsert_data(services: Services, log: TableLog, data: Data, evolution: Evolution | None = None) -> Commit:
    """Replace the rows that have the same key."""
    state = log.load()
    check_key(state)

    def write() -> Committed:
        if is_spark_frame(data):
            from instar.spark import upsert_frame  # noqa: PLC0415 -- only then

            return upsert_frame(services, log, data, state, evolution)
        return upsert_local(services, log, data, evolution)

    return report_commit(services, log, "upsert", write, data=data)


def overwrite_data(services: Services, log: TableLog, data: Data, where: str | None) -> Commit:
    """Replace rows by others."""

    def write() -> Committed:
        if is_spark_frame(data):
            from instar.spark import overwrite_frame  # noqa: PLC0415 -- only then

            return overwrite_frame(services, log, data, where)
        return overwrite_local(services, log, data, where)

    return report_commit(services, log, "overwrite", write, data=data)


def report_commit(
    services: Services,
    log: TableLog,
    operation: str,
    write: Callable[[], Committed],
    token: str | None = None,
    data: Data = None,
) -> Commit:
    """Write, report it through OpenLineage if that is configured, and compact the table if it is time."""
    committed = _report(services, log.name, operation, write, token, data)
    if committed.entry is not None:
        keep_up(services, log, committed.state)
    return as_commit(committed, token)


def _report(
    services: Services,
    name: str,
    operation: str,
    write: Callable[[], Committed],
    token: str | None,
    data: Data,
) -> Committed:
    location = services.blob.url
    with reported(operation, location, name) as run:
        if run.wanted:
            run.inputs += inputs_of(data, by_name=operation != "merge")
        committed = write()
        if run.wanted:
            state, commit = committed[0], as_commit(committed, token)
            schema = state.history.schemas[commit.schema_id]
            is_new = committed.entry is not None or token is not None
            version = str(commit.seqno) if is_new else None  # others made the one that was found
            run.outputs.append(RunOutput(location, dataset_name(state), schema, version, commit.rows))
    return committed


def _rows_of(data: Data, schema: Schema) -> Rows:
    """Return rows for a table in the form in which they are stored: by Spark, or in process."""
    if is_spark_frame(data):
        from instar.spark import FrameRows  # noqa: PLC0415 -- only then

        return FrameRows(data)
    return LocalRows(data, schema)


def inputs_of(data: Data, *, by_name: bool = True) -> list[RunInput]:
    """Return the tables that a Spark frame is made from; `by_name`, its columns become those of the table."""
    if not is_spark_frame(data):
        return []
    from instar.spark import find_origins  # noqa: PLC0415 -- only who needs Spark loads it

    try:
        found = find_origins(data)
    except Exception:  # noqa: BLE001 -- reporting never fails a write; the write itself says what is wrong
        _LOG.debug("the plan of a frame could not be followed", exc_info=True)
        return []
    return [RunInput(one.namespace, one.name, columns=one.columns if by_name else ()) for one in found]


def as_commit(committed: Committed, token: str | None = None) -> Commit:
    """Return the result of a commit; for a repeated token, that of the first time.

    If there was nothing to do, it is the version that was found, with no rows.
    """
    state, entry = committed
    if entry is None:
        record = None if token is None else state.find_token(token)
        if record is None:
            return Commit(state.seqno, state.upper - 1, state.history.latest_id, 0)
        return Commit(record.seqno, record.ts, record.schema_id, record.rows)
    batch = next(step.batch for step in entry.commit.steps if isinstance(step, Appended))
    return Commit(entry.seqno, batch.upper - 1, batch.schema_id, batch.rows)


def is_spark_frame(data: object) -> bool:
    """Whether data is a Spark DataFrame, without importing Spark."""
    return type(data).__module__.startswith("pyspark.sql.") and hasattr(data, "mapInArrow")
