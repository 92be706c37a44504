"""Storing a DataFrame as parts: executors turn Arrow batches into files and return only metadata.

A task that is retried or run twice leaves orphans, never duplicates: only what the successful attempts
returned is committed.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark import TaskContext

from instar.errors import DataMismatchError
from instar.parts import Conformer
from instar.spark.workers import collect, map_in_arrow
from instar.spark.write.incoming import arrow_frame, incoming_schema
from instar.table.write.store import StoredPart, StoringPlan, store_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

__all__ = ["FrameRows", "Misfit", "conformed"]

_RESULT = "stored binary, misfit binary"


class Misfit(msgspec.Struct, array_like=True):
    """What does not fit, on its way to the driver."""

    column: str
    reason: str
    row: int
    sample: str

    @staticmethod
    def of(error: DataMismatchError) -> Misfit:
        """Take an error apart."""
        return Misfit(error.column, error.reason, error.row or 0, error.sample or "")

    def error(self) -> DataMismatchError:
        """Return the error again."""
        return DataMismatchError(self.column, self.reason, row=self.row, sample=self.sample)


class FrameRows:
    """The rows of a frame, which executors store."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    @cached_property
    def schema(self) -> pa.Schema:
        """Its columns, as Arrow knows them."""
        return incoming_schema(self._frame.schema)

    @property
    def needs(self) -> pa.Schema:
        """The same: the frame already has Spark's types."""
        return self.schema

    def store(self, plan: StoringPlan, *, updates: bool) -> list[StoredPart]:
        """Store the rows, and return what was stored."""
        return _store_frame(self._frame, plan, updates=updates)


def _store_frame(frame: DataFrame, plan: StoringPlan, *, updates: bool) -> list[StoredPart]:
    names = frame.columns

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        named = (batch.rename_columns(names) for batch in batches)
        return _store_task(plan, named, updates=updates)

    # PySpark looks columns up by names that it does not quote, which goes wrong for `a.b`.
    numbered = arrow_frame(frame).toDF(*(f"c{at}" for at in range(len(names))))
    rows = collect(map_in_arrow(numbered, run, _RESULT))
    misfit = next((row.misfit for row in rows if row.misfit is not None), None)
    if misfit is not None:
        raise msgspec.msgpack.decode(bytes(misfit), type=Misfit).error()
    return [msgspec.msgpack.decode(bytes(row.stored), type=StoredPart) for row in rows]


def _store_task(
    plan: StoringPlan, batches: Iterable[pa.RecordBatch], *, updates: bool
) -> Iterator[pa.RecordBatch]:
    """Store the rows of one task; a row that does not fit is an answer, for an error would be retried."""
    context = TaskContext.get()
    task = "0" if context is None else f"{context.partitionId()}-{context.taskAttemptId()}"
    try:
        for stored in store_parts(plan, conformed(plan, batches, updates=updates), task):
            yield _answer(stored=stored)
    except DataMismatchError as error:
        yield _answer(misfit=Misfit.of(error))


def conformed(
    plan: StoringPlan, batches: Iterable[pa.RecordBatch], *, updates: bool
) -> Iterator[pa.RecordBatch]:
    """Bring batches into the layout of a plan's schema."""
    conformer: Conformer | None = None
    done = 0
    for batch in batches:
        if conformer is None:
            conformer = Conformer(batch.schema, plan.schema, updates=updates)
        yield conformer.apply(batch, first_row=done)
        done += batch.num_rows


def _answer(**columns: Any) -> pa.RecordBatch:  # noqa: ANN401 -- what msgspec can encode
    encoded = {name: msgspec.msgpack.encode(value) for name, value in columns.items()}
    return pa.RecordBatch.from_pydict(
        {name: pa.array([encoded.get(name)], pa.binary()) for name in ("stored", "misfit")}
    )
