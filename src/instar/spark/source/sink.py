"""`df.write` and `df.writeStream` with `format("instar")`: tasks store parts, and the driver commits once.

A micro-batch is committed under the id of its query, which the checkpoint keeps, and its number. Whatever
is repeated after a crash finds that it has been done.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from instar.errors import DataMismatchError, UsageError
from instar.parts import TS, Conformer, PartLimits
from instar.spark.write.incoming import has_months, incoming_schema
from instar.spark.write.store import conformed
from instar.table import PartWriter
from instar.table.write.store import StoredPart, StoringPlan, resolve_writer, store_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from instar.schema import Schema
    from instar.spark.source.table_options import TableOptions
    from instar.table import Lease

__all__ = ["BatchSink", "StreamSink"]

LEND_MS: Final = 6 * 60 * 60 * 1000
"""How long what a write has stored is safe from a vacuum without having been committed."""
_QUERY: Final = "sql.streaming.queryId"


class _Writing(NamedTuple):
    """What a write is about: made by the driver, and brought back by every task."""

    storing: StoringPlan
    schema_id: int
    evolved: Schema | None
    lease: Lease


@dataclass
class _Stored(WriterCommitMessage):
    """What a task has stored: encoded parts, or the row that did not fit."""

    writing: _Writing
    query: str | None
    parts: list[bytes]
    misfit: DataMismatchError | None = None


class _Sink:
    """What writing a frame and writing a stream have in common."""

    def __init__(self, options: TableOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def __getstate__(self) -> dict[str, Any]:
        """Begin the write when the sink goes to the executors; the one that commits never does."""
        return {"writing": self.writing, "updates": self.updates}

    @cached_property
    def updates(self) -> bool:
        """Whether `_diff` tells what to add and what to retract."""
        return self._options.apply

    @cached_property
    def writing(self) -> _Writing:
        """Look at the table as it is, and check what types alone can tell."""
        _check_months(self._schema)
        incoming = _without_times(incoming_schema(self._schema), updates=self.updates)
        services, log = self._options.open()
        pin = log.pinned(services.new_id())
        with pin as state:
            writer = resolve_writer(state, incoming, None, evolve=self._options.evolve)
            Conformer(incoming, writer.schema, updates=self.updates)
            lease = pin.lend(LEND_MS)
            storing = StoringPlan(
                services.blob,
                state.table_id,
                lease.write_id or "",
                writer.schema,
                state.order_by,
                PartLimits(),
            )
        return _Writing(storing, writer.schema_id, writer.schema if writer.is_new else None, lease)

    def store(self, batches: Iterable[pa.RecordBatch]) -> _Stored:
        """Store the rows of one task, on an executor; a row that does not fit is an answer."""
        context = TaskContext.get()
        task, query = "0", None
        if context is not None:
            task = f"{context.partitionId()}-{context.taskAttemptId()}"
            query = context.getLocalProperty(_QUERY)
        stored = _Stored(self.writing, query, [])
        storing = self.writing.storing
        rows = (_drop_times(batch, updates=self.updates) for batch in batches)
        try:
            for part in store_parts(storing, conformed(storing, rows, updates=self.updates), task):
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
                raise UsageError("this stream has no id, so a batch could not be told from its repetition")
            token = f"{found[0].query}/{batch}"
        services, log = self._options.open()
        if parts:
            writing = found[0].writing
            writer = PartWriter(services, log, writing.storing.table_id, writing.storing.write_id)
            writer.append(
                [replace(item.part, run=run) for run, item in enumerate(parts)],
                writing.schema_id,
                token=token,
                present=frozenset(field_id for item in parts for field_id in item.present),
                evolved=writing.evolved,
            )
        for lease in {message.writing.lease for message in found}:
            services.leases.release(lease)
        services.close()

    def give_up(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Leave what was stored to the next vacuum."""
        services, _ = self._options.open()
        for lease in {message.writing.lease for message in _messages(messages)}:
            services.leases.release(lease)
        services.close()


class BatchSink(_Sink, DataSourceArrowWriter):
    """Writes a frame, in one commit."""

    def __getstate__(self) -> dict[str, Any]:
        """Take along what the commit needs: it is made by a copy of the very sink that the tasks get."""
        return {**super().__getstate__(), "_options": self._options}

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
