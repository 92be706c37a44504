"""Compaction on executors: a task rewrites each group of parts, with the code that runs in process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
from pyroaring import BitMap
from pyspark import TaskContext

from instar.spark.workers import collect, map_in_arrow
from instar.state import Part
from instar.table.housekeeping.rewrite import Output, rewrite_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import SparkSession

    from instar.table.housekeeping.rewrite import Work

__all__ = ["rewrite_on"]


class _Rewritten(msgspec.Struct, array_like=True):
    """An output on its way to the driver."""

    part: Part
    gone: list[tuple[int, bytes]]


def rewrite_on(spark: SparkSession) -> Callable[[Work], list[Output]]:
    """Return what rewrites parts in one task of a session."""

    def rewrite(work: Work) -> list[Output]:
        def run(_: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            context = TaskContext.get()
            task = "0" if context is None else f"{context.partitionId()}-{context.taskAttemptId()}"
            for output in rewrite_parts(work, task):
                gone = [(ts, positions.serialize()) for ts, positions in output.gone]
                data = msgspec.msgpack.encode(_Rewritten(output.part, gone))
                yield pa.RecordBatch.from_pydict({"output": pa.array([data], pa.binary())})

        rows = collect(map_in_arrow(spark.range(0, 1, 1, 1), run, "output binary"))
        return [_output(bytes(row.output)) for row in rows]

    return rewrite


def _output(data: bytes) -> Output:
    found = msgspec.msgpack.decode(data, type=_Rewritten)
    return Output(found.part, tuple((ts, BitMap.deserialize(bitmap)) for ts, bitmap in found.gone))
