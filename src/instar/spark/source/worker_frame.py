"""Snapshots read by Python workers, where Spark has no file system for a store.

Workers open the files with what opened the store. That is slower than Spark's own reader: rows go through
Python, and Spark's filters open no fewer parts. Columns that a snapshot leaves out are not read.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from instar.errors import FileSystemMissingError
from instar.spark.native.file_systems import connector, find_file_system
from instar.spark.native.gateway import gateway_of
from instar.spark.source.part_tasks import batches_for_spark, read_task, snapshot_tasks, spark_schema
from instar.spark.workers import map_in_arrow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from instar.schema import Schema
    from instar.spark.native.gateway import Gateway
    from instar.storage import Blob
    from instar.table.read.snapshot import SnapshotPlan

__all__ = ["can_open", "worker_frame"]

_told: WeakKeyDictionary[Gateway, set[str]] = WeakKeyDictionary()


def can_open(spark: SparkSession, blob: Blob) -> bool:
    """Whether Spark can open the files of a store itself; if not, say once what is missing."""
    gateway = gateway_of(spark)
    system = find_file_system(gateway, blob)
    if system.scheme is None and blob.url not in (told := _told.setdefault(gateway, set())):
        told.add(blob.url)
        missing = FileSystemMissingError(blob.url, connector(gateway, blob.url), system.why)
        warnings.warn(
            f"{missing}. Until then Python workers read the table, which is slower, and a view shows the "
            "rows of the time when it was made",
            RuntimeWarning,
            stacklevel=5,
        )
    return system.scheme is not None


def worker_frame(spark: SparkSession, blob: Blob, plans: Sequence[SnapshotPlan], schema: Schema) -> DataFrame:
    """Return the rows of snapshots of one schema, read by Python workers."""
    tasks = [task for plan in plans for task in snapshot_tasks(blob, plan)]
    shown = spark_schema(schema, changes=False)

    def read(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from batches_for_spark(read_task(tasks[number]), shown)

    return map_in_arrow(spark.range(0, len(tasks), 1, max(1, len(tasks))), read, shown)
