"""`spark.read.format("instar")`: a snapshot read by Python workers, for sessions without a JVM at hand.

A frame shows the rows as of the time when it was loaded, or as it was told, and stays so: Spark plans it
once, for all its queries. Its schema is checked in the state that is then planned.
"""

from __future__ import annotations

import datetime as dt
import decimal
import sys
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as api
from pyspark.sql.datasource import DataSourceReader

from instar.spark.part_tasks import (
    ChangesTask,
    MergeTask,
    PartTask,
    ScanTask,
    batches_for_spark,
    group_parts,
    read_task,
)
from instar.table.listen import plan_changes
from instar.table.snapshot import plan_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql.datasource import Filter, InputPartition
    from pyspark.sql.types import StructType

    from instar.spark.table_options import TableOptions
    from instar.table import Services, TableLog
    from instar.table.snapshot import Reader

__all__ = ["FilteringScan", "TableScan", "scan_class"]

LEND_MS: Final = 60 * 60 * 1000
"""How long what a query has planned is safe from a vacuum: nobody tells when it has ended."""

_PUSHING: Final = "pyspark.sql.worker.data_source_pushdown_filters"
_COMPARISONS: Final[dict[type, Callable[[Any, Any], pa.Array]]] = {
    api.EqualTo: pc.equal,
    api.GreaterThan: pc.greater,
    api.GreaterThanOrEqual: pc.greater_equal,
    api.LessThan: pc.less,
    api.LessThanOrEqual: pc.less_equal,
}
_EXACT: Final = (bool, int, str, dt.date, decimal.Decimal)
"""Values that Arrow and Spark compare alike; floating point is not among them."""


class TableScan(DataSourceReader):
    """Plans in one process and reads in others."""

    def __init__(self, options: TableOptions, reader: Reader, upper: int, schema: StructType) -> None:
        self._options = options
        self._reader = reader
        self._upper = upper
        self._schema = schema
        self._filters: list[Filter] = []

    def partitions(self) -> list[InputPartition]:
        """Plan tasks for parts, and one for all that must be consolidated together."""
        services, log = self._options.open()
        pin = log.pinned()
        with pin:
            tasks = self._changes(services, log) if self._options.changes else self._rows(services, log)
            if tasks:
                pin.lend(LEND_MS)
        return tasks or [ScanTask(services.blob, (), self._reader.schema)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one task."""
        rows = (_filter(batch, self._filters) for batch in read_task(partition))
        return batches_for_spark(rows, self._schema)

    def _rows(self, services: Services, log: TableLog) -> list[InputPartition]:
        time = self._upper - 1 if self._options.as_of is None else self._options.as_of
        plan = plan_snapshot(services.chunks, log.load(), self._reader, max(time, 0))
        tasks: list[InputPartition] = [
            ScanTask(services.blob, parts, self._reader.schema)
            for parts in group_parts(plan.state, plan.scan)
        ]
        merge: list[PartTask] = [part for parts in group_parts(plan.state, plan.merge) for part in parts]
        return [*tasks, MergeTask(services.blob, merge, plan)] if merge else tasks

    def _changes(self, services: Services, log: TableLog) -> list[InputPartition]:
        since = 0 if self._options.since is None else self._options.since + 1
        plan = plan_changes(services.chunks, log.load(), self._reader, since, max(since, self._upper))
        times = plan.since, plan.upper
        return [
            ChangesTask(services.blob, parts, self._reader.schema, times)
            for parts in group_parts(plan.state, plan.parts)
        ]


class FilteringScan(TableScan):
    """Leaves out rows that Spark would only throw away; Spark looks at all others again."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 -- Spark's interface
        """Take note of the filters, and let Spark apply them too."""
        self._filters = [condition for condition in filters if _is_understood(condition)]
        return filters


def scan_class() -> type[TableScan]:
    """Return the reader that fits the session: where filters are not pushed, none may offer to take them.

    The worker that is started to push them is another program than the one that plans without.
    """
    main = sys.modules["__main__"].__spec__
    pushing = _PUSHING in sys.modules or (main is not None and main.name == _PUSHING)
    return FilteringScan if pushing else TableScan


def _is_understood(condition: Any) -> bool:  # noqa: ANN401 -- the filters have no type in common
    match condition:
        case api.IsNull(attribute=(_,)) | api.IsNotNull(attribute=(_,)):
            return True
        case api.In(attribute=(_,), value=values):
            return all(_is_exact(value) for value in values)
    return type(condition) in _COMPARISONS and len(condition.attribute) == 1 and _is_exact(condition.value)


def _is_exact(value: object) -> bool:
    return isinstance(value, _EXACT) and not isinstance(value, dt.datetime)


def _filter(batch: pa.RecordBatch, filters: list[Any]) -> pa.RecordBatch:
    for condition in filters:
        try:
            batch = batch.filter(_mask(batch.column(condition.attribute[0]), condition))
        except (pa.ArrowException, TypeError, OverflowError):
            continue  # what Arrow cannot compare is left to Spark
    return batch


def _mask(column: pa.Array, condition: Any) -> pa.Array:  # noqa: ANN401
    """Tell for which rows a condition may be true."""
    match condition:
        case api.IsNull():
            return pc.is_null(column)
        case api.IsNotNull():
            return pc.is_valid(column)
        case api.In(value=values):
            return pc.is_in(column, pa.array(values, column.type))
    return _COMPARISONS[type(condition)](column, pa.scalar(condition.value, column.type))
