"""`spark.read.format("instar")`: a snapshot read by Python workers, for sessions without a JVM at hand.

A frame shows the rows as of the time when it was loaded, or as it was told, and stays so: Spark plans it
once, for all its queries. Its schema is checked in the state that is then planned.

No filters are taken from Spark: it hands those of one query to a reader that serves the next one too, so a
reader that left out rows would lose them. The option `where` is a condition for the frame as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSourceReader

from instar.errors import AdoptedFileError, CorruptTableError, LeaseExpiredError
from instar.spark.source.part_tasks import (
    ScanTask,
    batches_for_spark,
    changes_tasks,
    read_task,
    snapshot_tasks,
)
from instar.table.read.audit import resolve_policy
from instar.table.read.filter import Filter
from instar.table.read.listen import plan_changes
from instar.table.read.rows import filter_plan, matching_rows
from instar.table.read.settle import settle
from instar.table.read.snapshot import plan_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from instar.spark.source.table_options import TableOptions
    from instar.state import TableState
    from instar.table import Services
    from instar.table.read.snapshot import Reader

__all__ = ["SCAN_LEASE_MS", "TableScan"]

SCAN_LEASE_MS: Final = 60 * 60 * 1000
"""How long what a query has planned is safe from a vacuum: nobody tells when it has ended."""


class TableScan(DataSourceReader):
    """Plans in one process and reads in others."""

    def __init__(self, options: TableOptions, reader: Reader, upper: int, schema: StructType) -> None:
        self._options = options
        self._reader = reader
        self._upper = upper
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Plan tasks for parts, and one for all that must be consolidated together."""
        plan = self._changes if self._options.changes else self._rows
        with self._options.open() as (services, log):
            pin = log.pinned()
            with pin as state:
                tasks = plan(services, state)
                if tasks:
                    pin.lend(SCAN_LEASE_MS)
        return tasks or [ScanTask(services.blob, (), self._reader.schema)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one task."""
        try:
            yield from batches_for_spark(self._read(partition), self._schema)
        except AdoptedFileError:
            raise
        except CorruptTableError as error:
            if error.missing:  # the lease that was lent for this query has ended
                raise LeaseExpiredError(self._options.table) from error
            raise

    def _read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for batch in read_task(partition):
            if isinstance(partition, ScanTask) and partition.condition is not None:
                yield from matching_rows(batch, partition.reader, partition.condition, self._reader.schema)
            else:
                yield batch

    def _rows(self, services: Services, state: TableState) -> list[InputPartition]:
        time = self._upper - 1 if self._options.as_of is None else self._options.as_of
        plan = plan_snapshot(services.chunks, state, self._reader, time)
        condition = None
        if self._options.where is not None:
            condition = Filter.parse(self._options.where, self._reader.whole, services.clock())
            plan = filter_plan(services, plan, condition, resolve_policy(plan.state.options))
        plan = settle(services, plan, condition)
        return list(snapshot_tasks(services.blob, plan, condition))

    def _changes(self, services: Services, state: TableState) -> list[InputPartition]:
        since = 0 if self._options.since is None else self._options.since + 1
        plan = plan_changes(services.chunks, state, self._reader, since, max(since, self._upper))
        return changes_tasks(services.blob, plan)
