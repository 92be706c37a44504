"""`df.write` and `df.writeStream` with `format("instar")`: tasks store parts, and the driver commits once.

A micro-batch is committed under the id of its query, which the checkpoint keeps, and its number. Whatever
is repeated after a crash finds that it has been done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from instar.errors import DataMismatchError, UsageError
from instar.parts import TS, PartLimits
from instar.reporting import RunOutput, reported
from instar.spark.workers import check_version, own_version
from instar.spark.write.incoming import has_months, incoming_schema
from instar.spark.write.store import conformed
from instar.stream.stamp import dataset_name
from instar.table.write.append import resume_write
from instar.table.write.evolving import Evolution, resolve_writer
from instar.table.write.store import StoredPart, plan_storing, store_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from instar.schema import Schema
    from instar.spark.source.table_options import TableOptions
    from instar.table import Lease, Services, TableLog
    from instar.table.write.store import StoringPlan

__all__ = ["BatchSink", "BegunWrite", "StreamSink", "begin_sink"]

SINK_LEASE_MS: Final = 6 * 60 * 60 * 1000
"""How long what a write has stored is safe from a vacuum without having been committed."""
_QUERY: Final = "sql.streaming.queryId"


class BegunWrite(NamedTuple):
    """What a write is about: made by the driver, and brought back by every task."""

    storing: StoringPlan
    schema_id: int
    evolved: Schema | None
    updates: bool
    lease: Lease
    planned_by: str


@dataclass
class _Stored(WriterCommitMessage):
    """What a task has stored: encoded parts, or the row that did not fit."""

    begun: BegunWrite
    query: str | None
    parts: list[bytes]
    misfit: DataMismatchError | None = None


def begin_sink(options: TableOptions, schema: StructType) -> BegunWrite:
    """Look at the table as it is, check what types alone can tell, and keep a vacuum away for some hours."""
    _check_months(schema)
    updates = options.apply
    incoming = _without_times(incoming_schema(schema), updates=updates)
    with options.open() as (services, log):
        state = log.load()
        evolution = Evolution() if options.evolve else None
        writer = resolve_writer(state, incoming, evolution=evolution, updates=updates)
        lease = services.leases.grant(state.table_id, state.base.seqno, services.new_id(), SINK_LEASE_MS)
        storing = plan_storing(services.blob, state, lease.write_id or "", writer.schema, PartLimits())
    evolved = writer.schema if writer.is_new else None
    return BegunWrite(storing, writer.schema_id, evolved, updates, lease, own_version())


class _Sink:
    """What writing a frame and writing a stream have in common: tasks store, and one process commits.

    A sink that only commits has begun nothing: each message has the write that it belongs to.
    """

    def __init__(self, options: TableOptions, begun: BegunWrite | None = None) -> None:
        self._options = options
        self._begun = begun

    def store(self, batches: Iterable[pa.RecordBatch]) -> _Stored:
        """Store the rows of one task, on an executor; a row that does not fit is an answer."""
        context = TaskContext.get()
        task, query = "0", None
        if context is not None:
            task = f"{context.partitionId()}-{context.taskAttemptId()}"
            query = context.getLocalProperty(_QUERY)
        begun = self._begun
        if begun is None:
            raise UsageError("this sink commits what others have stored, and has begun no write of its own")
        check_version(begun.planned_by)
        stored = _Stored(begun, query, [])
        rows = (_drop_times(batch, updates=begun.updates) for batch in batches)
        try:
            for part in store_parts(
                begun.storing, conformed(begun.storing, rows, updates=begun.updates), task
            ):
                stored.parts.append(msgspec.msgpack.encode(part))
        except DataMismatchError as error:
            stored.misfit = error
        return stored

    def finish(self, messages: Sequence[WriterCommitMessage | None], batch: int | None) -> None:
        """Commit what all tasks have stored, unless this batch of this query has been committed before."""
        found = list(_messages(messages))
        for message in found:
            if message.misfit is not None:
                raise message.misfit
        parts = [msgspec.msgpack.decode(part, type=StoredPart) for message in found for part in message.parts]
        token = self._options.token
        if found and batch is not None:
            if found[0].query is None:
                raise UsageError("this stream has no id, so a repeated batch could not be recognized")
            token = f"{found[0].query}/{batch}"
        begun = found[0].begun if found else self._begun
        with self._options.open() as (services, log):
            # A micro-batch is the same again when it is repeated; whoever chose a token may bring other rows.
            if begun is not None and (parts or (batch is None and token is not None)):
                self._commit(services, log, begun, parts, token)
            for lease in {message.begun.lease for message in found}:
                services.leases.release(lease)

    def _commit(
        self, services: Services, log: TableLog, begun: BegunWrite, parts: list[StoredPart], token: str | None
    ) -> None:
        location = services.blob.url
        with reported("apply" if begun.updates else "append", location, log.name) as run:
            write = resume_write(services, log, begun.storing.table_id, begun.storing.write_id)
            state, entry = write.commit(parts, begun.schema_id, evolved=begun.evolved, token=token)
            if run.wanted:
                rows = sum(one.part.rows for one in parts) if entry is not None else 0
                schema = state.history.schemas[begun.schema_id] if begun.evolved is None else begun.evolved
                run.outputs.append(RunOutput(location, dataset_name(state), schema, str(state.seqno), rows))

    def give_up(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Leave what was stored to the next vacuum."""
        with self._options.open() as (services, _):
            for lease in {message.begun.lease for message in _messages(messages)}:
                services.leases.release(lease)


class BatchSink(_Sink, DataSourceArrowWriter):
    """Writes a frame, in one commit."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Store the rows of one task."""
        return self.store(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit the frame."""
        self.finish(messages, None)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit nothing."""
        self.give_up(messages)


class StreamSink(_Sink, DataSourceStreamArrowWriter):
    """Writes a stream, each micro-batch in one commit, exactly once."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Store the rows of one task."""
        return self.store(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commit a micro-batch."""
        self.finish(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        """Commit nothing."""
        self.give_up(messages)


def _messages(messages: Iterable[WriterCommitMessage | None]) -> Iterator[_Stored]:
    return (message for message in messages if isinstance(message, _Stored))


def _check_months(schema: StructType) -> None:
    """Refuse what Spark does not hand to Python."""
    for field in schema:
        if has_months(field.dataType):
            reason = "Spark does not hand years and months to a sink. Write the frame with table.append"
            raise DataMismatchError(field.name, reason)


def _without_times(schema: pa.Schema, *, updates: bool) -> pa.Schema:
    """Leave out the times of another table: what is written happens now."""
    at = schema.get_field_index(TS) if updates else -1
    return schema if at < 0 else schema.remove(at)


def _drop_times(batch: pa.RecordBatch, *, updates: bool) -> pa.RecordBatch:
    return batch.drop_columns([TS]) if updates and TS in batch.schema.names else batch
