"""Reading parts in Python workers: what a task is told, and the Arrow batches that Spark wants of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkTypeError
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type
from pyspark.sql.types import StructType

from instar.errors import UsageError
from instar.parts import TS
from instar.schema import spark_json
from instar.spark.workers import check_version, own_version
from instar.table.read.listen import read_taken
from instar.table.read.rows import merge_updates, read_written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from instar.schema import Schema
    from instar.storage import Blob
    from instar.table.log.part_set import WrittenPart
    from instar.table.read.filter import Filter
    from instar.table.read.listen import ChangePlan, TakenRows
    from instar.table.read.snapshot import SnapshotPlan

__all__ = [
    "ChangesTask",
    "MergeTask",
    "ScanTask",
    "batches_for_spark",
    "changes_tasks",
    "group_parts",
    "read_task",
    "snapshot_tasks",
    "spark_schema",
]

Parts = TypeVar("Parts", "WrittenPart", "TakenRows")

_GROUP_BYTES: Final = 64 * 1024 * 1024
_GROUP_PARTS: Final = 64
_UPDATE_JSON: Final[list[dict[str, Any]]] = [
    {"name": name, "type": "long", "nullable": False, "metadata": {}} for name in ("_ts", "_diff")
]


class ScanTask(InputPartition):
    """Parts whose rows are read as they are."""

    def __init__(
        self,
        blob: Blob,
        parts: Sequence[WrittenPart],
        reader: Schema,
        condition: Filter | None = None,
    ) -> None:
        self.blob = blob
        self.parts = parts
        self.reader = reader
        self.condition = condition
        self.planned_by = own_version()


class ChangesTask(ScanTask):
    """Parts whose updates of the times [since, upper) are read, with `_ts` and `_diff`."""

    def __init__(
        self,
        blob: Blob,
        parts: Sequence[WrittenPart],
        reader: Schema,
        times: tuple[int, int],
        taken: Sequence[TakenRows] = (),
    ) -> None:
        super().__init__(blob, parts, reader)
        self.times = times
        self.taken = taken


class MergeTask(ScanTask):
    """Parts that must be consolidated together, as of a time, under the latest schema."""

    def __init__(
        self, blob: Blob, parts: Sequence[WrittenPart], plan: SnapshotPlan, condition: Filter | None = None
    ) -> None:
        super().__init__(blob, parts, plan.reader.schema, condition)
        self.latest = plan.state.history.latest
        self.as_of = plan.as_of


def read_task(task: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task, under the reader's names."""
    if isinstance(task, ScanTask):
        check_version(task.planned_by)
    match task:
        case ChangesTask(times=(since, upper)):
            for batch in _read(task, task.reader, updates=True):
                times = batch.column(TS)
                yield batch.filter(pc.and_(pc.greater_equal(times, since), pc.less(times, upper)))
            for taken in task.taken:
                yield from read_taken(task.blob, taken, task.reader)
        case MergeTask(latest=latest):
            updates = _read(task, latest, updates=True)
            yield from merge_updates(updates, latest, task.as_of, task.reader, task.condition)
        case ScanTask():
            yield from _read(task, task.reader)


def _read(task: ScanTask, reader: Schema, *, updates: bool = False) -> Iterator[pa.RecordBatch]:
    for written in task.parts:
        yield from read_written(task.blob, written, reader, updates=updates)


def group_parts(parts: Iterable[Parts]) -> Iterator[list[Parts]]:
    """Yield parts, or what was retracted of them, in groups that are good for one task each."""
    group: list[Parts] = []
    size = 0
    for own in parts:
        group.append(own)
        size += own.part.size
        if size >= _GROUP_BYTES or len(group) >= _GROUP_PARTS:
            yield group
            group, size = [], 0
    if group:
        yield group


def snapshot_tasks(blob: Blob, plan: SnapshotPlan, condition: Filter | None = None) -> list[ScanTask]:
    """Plan tasks that read the rows of a snapshot, and one for all that must be consolidated together."""
    history = plan.state.history
    tasks = [
        ScanTask(blob, parts, plan.reader.schema, condition)
        for parts in group_parts(plan.scan.written(history))
    ]
    merge = list(plan.merge.written(history))
    return [*tasks, MergeTask(blob, merge, plan, condition)] if merge else tasks


def changes_tasks(blob: Blob, plan: ChangePlan) -> list[InputPartition]:
    """Plan tasks that read the updates of a plan, and others for what was retracted by position."""
    reader, times = plan.reader.schema, (plan.since, plan.upper)
    written = plan.parts.written(plan.state.history)
    return [
        *(ChangesTask(blob, parts, reader, times) for parts in group_parts(written)),
        *(ChangesTask(blob, (), reader, times, taken) for taken in group_parts(plan.taken)),
    ]


def spark_schema(schema: Schema, *, changes: bool) -> StructType:
    """Return what Spark calls the columns; it cannot take all types from Python."""
    json = spark_json(schema)
    if changes:
        json["fields"] = [*json["fields"], *_UPDATE_JSON]
    struct = StructType.fromJson(json)
    for field in struct:
        try:
            to_arrow_type(field.dataType, timezone="UTC")
        except PySparkTypeError:
            raise UsageError(
                f"column `{field.name}` is {field.dataType.simpleString()}, which Spark does not take from "
                "Python: choose others with the option 'columns', or read with table.read(spark)"
            ) from None
    return struct


def batches_for_spark(batches: Iterable[pa.RecordBatch], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Give batches exactly the Arrow types that Spark expects."""
    target = to_arrow_schema(schema, timezone="UTC")
    for batch in batches:
        if batch.num_rows:
            columns = [
                column if column.type == field.type else column.cast(field.type)
                for column, field in zip(batch.columns, target, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=target)
