"""Snapshots as DataFrames, read by Spark's own Parquet reader.

Fields are found by their ids, at every level, and columns get the reader's names. Parts that must be
consolidated are read with their times and diffs and added up.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

from instar.schema import field_name
from instar.spark.native.adding import add_up
from instar.spark.native.gateway import gateway_of
from instar.spark.native.names import column_name, widened_decimals
from instar.spark.native.relation import field_json, parts_frame, show
from instar.spark.native.scan_source import Branch, SnapshotSource
from instar.spark.native.settle import settle_on_spark
from instar.spark.planner.table import is_planned, planned_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import Column, SparkSession

    from instar.schema import Field
    from instar.spark.native.file_index import FileSource
    from instar.spark.native.scan_source import ScanSource
    from instar.state import ConfigValue
    from instar.table import Services
    from instar.table.log.pin import Pin
    from instar.table.read.snapshot import SnapshotPlan

__all__ = ["later_frame", "plan_frame", "scan_frame", "snapshot_frame"]

_BATCH_TS: Final = "_batch_ts"
_BATCH_DIFF: Final = "_batch_diff"


def snapshot_frame(
    spark: SparkSession,
    services: Services,
    plan: SnapshotPlan,
    pin: Pin,
    options: Mapping[str, ConfigValue | None] | None = None,
) -> DataFrame:
    """Return the rows of a snapshot, which is held as long as the frame; `options` are for its queries."""
    settled = settle_on_spark(spark, services, plan, pin)

    def source(branch: Branch, read: Sequence[Field]) -> SnapshotSource:
        return SnapshotSource(gateway_of(spark), services, branch, read, options or {}, settled, pin)

    return plan_frame(spark, settled, source)


def plan_frame(
    spark: SparkSession, plan: SnapshotPlan, source: Callable[[Branch, Sequence[Field]], SnapshotSource]
) -> DataFrame:
    """Return the rows of a plan, from sources of its parts in each branch that it has."""
    fields = plan.reader.schema.fields
    label = f"instar:/{plan.state.name}@{plan.state.seqno}"
    history = plan.state.history
    widened = widened_decimals(history, (*fields, *history.latest.fields))
    whole, taken = (len(branch.parts(plan)) for branch in (Branch.SCAN, Branch.TAKEN))
    frames = []
    if whole or not taken:
        frames.append(
            scan_frame(spark, f"{label} ({whole} parts)", fields, source(Branch.SCAN, fields), widened)
        )
    if taken:
        retracted = f"{label} ({taken} parts less retracted rows)"
        frames.append(_taken_frame(spark, retracted, fields, source(Branch.TAKEN, fields), widened))
    scan = reduce(DataFrame.unionAll, frames)
    if not plan.merge:
        return scan
    read = {field.id for field in fields}
    others = tuple(field for field in history.latest.fields if field.id not in read)
    merge = _merge_frame(
        spark,
        plan.state.name,
        f"{label} ({len(plan.merge)} parts to add up)",
        fields,
        source(Branch.MERGE, (*fields, *others)),
        others=others,
        widened=widened,
        as_of=plan.as_of,
    )
    return scan.unionAll(merge)


def scan_frame(
    spark: SparkSession, label: str, fields: Sequence[Field], source: FileSource, widened: frozenset[int]
) -> DataFrame:
    """Return the rows of parts as they are."""
    if isinstance(source, SnapshotSource) and is_planned(spark, source):
        renamed = {column_name(field_id, widened): field_name(field_id) for field_id in sorted(widened)}
        frame = planned_frame(spark, source, fields, widened, label)
        return show(frame.withColumnsRenamed(renamed) if renamed else frame, fields)
    frame = parts_frame(spark, label, fields, source, widened=widened)
    return show(frame, fields)


def _taken_frame(
    spark: SparkSession,
    label: str,
    fields: Sequence[Field],
    source: ScanSource,
    widened: frozenset[int],
) -> DataFrame:
    """Return the rows of parts less those that were retracted by position."""
    frame = parts_frame(
        spark,
        label,
        fields,
        source,
        widened=widened,
        partitions=source.partitions,
        leave_out=source.leave_out,
    )
    return show(frame, fields)


def _merge_frame(
    spark: SparkSession,
    table: str,
    label: str,
    fields: Sequence[Field],
    source: ScanSource,
    *,
    others: Sequence[Field] = (),
    widened: frozenset[int] = frozenset(),
    as_of: int | None = None,
) -> DataFrame:
    """Add up the diffs of equal rows; a row that was retracted more often than added is an error.

    `others` are fields that tell rows apart and are not shown. Without `as_of`, all updates count.
    """
    frame = _updates(spark, label, (*fields, *others), source, widened)
    if as_of is not None:
        frame = frame.where(_time() <= as_of)
    diff = F.coalesce(F.col("_diff"), F.col(_BATCH_DIFF).cast("long"))
    return add_up(frame, diff, table, fields, others)


def later_frame(
    spark: SparkSession,
    label: str,
    fields: Sequence[Field],
    source: ScanSource,
    widened: frozenset[int],
    since: int,
) -> DataFrame:
    """Return the rows of parts, all of which were added once, that are later than a time."""
    frame = _updates(spark, label, fields, source, widened).where(_time() > since)
    return show(frame, fields)


def _updates(
    spark: SparkSession, label: str, fields: Sequence[Field], source: ScanSource, widened: frozenset[int]
) -> DataFrame:
    """Return the updates of parts, with their times and diffs: their own, or those of their batch."""
    partitions = [field_json(name, "string") for name in (_BATCH_TS, _BATCH_DIFF)]
    return parts_frame(
        spark,
        label,
        fields,
        source,
        widened=widened,
        partitions=[*source.partitions, *partitions],
        extra=[field_json(name, "long") for name in ("_ts", "_diff")],
        leave_out=source.leave_out,
    )


def _time() -> Column:
    return F.coalesce(F.col("_ts"), F.col(_BATCH_TS).cast("long"))
