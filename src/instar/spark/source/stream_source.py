"""`spark.readStream.format("instar")`: the updates of a table as micro-batches.

An offset is an upper: all times before it have been told. A restart from a checkpoint repeats the same
times, and the reader's schema is checked again in every state that is read.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.streaming.readwriter import DataStreamReader

from instar.spark.source.part_tasks import batches_for_spark, changes_tasks, read_task
from instar.table.read.listen import plan_changes
from instar.table.read.snapshot import check_fence

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

    from instar.spark.source.table_options import TableOptions
    from instar.table.log.pin import Pin
    from instar.table.read.snapshot import Reader

__all__ = ["StreamSource", "ask_for_changes"]

Offset = dict[str, Any]


class StreamSource(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches in a process that lives as long as the query; what is planned is held meanwhile."""

    def __init__(self, options: TableOptions, reader: Reader, schema: StructType) -> None:
        self._schema = schema
        self._reader = reader
        self._since = options.since
        self._open = ExitStack()
        self._services, self._log = self._open.enter_context(options.open())
        self._target: int | None = None
        self._pins: list[tuple[int, Pin]] = []

    def __getstate__(self) -> dict[str, Any]:
        """Executors read what they are told, and need to know only what it looks like."""
        return {"_schema": self._schema}

    def initialOffset(self) -> Offset:  # noqa: N802 -- Spark's interface, here and below
        """Begin after a time, or with everything."""
        return {"upper": 0 if self._since is None else self._since + 1}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: ARG002, N802
        """Go as far as the table is complete."""
        state = self._log.load()
        check_fence(state, self._reader)
        upper = state.upper if self._target is None else min(state.upper, self._target)
        return {"upper": max(upper, start["upper"])}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember where the table ends now."""
        self._target = self._log.load().upper

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Plan the updates of the times [start, end)."""
        times = start["upper"], end["upper"]
        if times[0] >= times[1]:
            return []
        pin = self._log.pinned()
        self._pins.append((times[1], pin))
        plan = plan_changes(self._services.chunks, pin.state, self._reader, *times)
        return changes_tasks(self._services.blob, plan)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the updates of some parts, on an executor."""
        return batches_for_spark(read_task(partition), self._schema)

    def commit(self, end: Offset) -> None:
        """Let go of what has been processed."""
        self._release([pin for upper, pin in self._pins if upper <= end["upper"]])

    def stop(self) -> None:
        """Let go of everything."""
        self._release([pin for _, pin in self._pins])
        self._open.close()

    def _release(self, pins: list[Pin]) -> None:
        self._pins = [(upper, pin) for upper, pin in self._pins if pin not in pins]
        for pin in pins:
            pin.release()


def ask_for_changes() -> None:
    """Make `readStream.format("instar")` say that it is a stream, which nobody tells a source."""
    original = DataStreamReader.format
    if getattr(original, "asks_for_changes", False):
        return

    def stream_format(self: DataStreamReader, source: str) -> DataStreamReader:
        reader = original(self, source)
        return reader.option("changes", "true") if source.lower() == "instar" else reader

    stream_format.asks_for_changes = True  # type: ignore[attr-defined]
    stream_format.__doc__ = original.__doc__
    DataStreamReader.format = stream_format  # type: ignore[method-assign]
