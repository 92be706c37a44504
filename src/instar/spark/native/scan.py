"""Snapshots as DataFrames, read by Spark's own Parquet reader.

Fields are found by their ids, at every level, and columns get the reader's names. Parts that must be
consolidated are read with their times and diffs and added up.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

from instar.spark.native.adding import add_up
from instar.spark.native.gateway import gateway_of
from instar.spark.native.names import widened_decimals
from instar.spark.native.relation import METADATA, field_json, parts_frame, plan_of, show, shown_frame
from instar.spark.native.scan_source import Branch, SnapshotSource
from instar.spark.native.settle import settle_on_spark
from instar.spark.native.stand_ins import install_rule
from instar.spark.planner.table import is_planned, planned_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import Column, SparkSession

    from instar.schema import Field
    from instar.spark.native.scan_source import ScanSource
    from instar.state import ConfigValue
    from instar.table import Services
    from instar.table.log.pin import Pin
    from instar.table.read.snapshot import SnapshotPlan

__all__ = ["later_frame", "metadata_plan", "plan_frame", "snapshot_frame"]

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


def _label(plan: SnapshotPlan) -> str:
    return f"instar:/{plan.state.name}@{plan.state.seqno}"


def plan_frame(
    spark: SparkSession,
    plan: SnapshotPlan,
    source: Callable[[Branch, Sequence[Field]], SnapshotSource],
) -> DataFrame:
    """Return the rows of a plan, from sources of its parts in each branch that it has."""
    fields = plan.reader.schema.fields
    widened = _widened(plan)
    planned = source(Branch.PLANNED, fields)
    if is_planned(spark, planned):
        install_rule(gateway_of(spark))
        label = f"{_label(plan)} ({len(plan.scan)} parts)"
        over_files = partial(metadata_plan, spark, plan, source)
        scan = planned_frame(spark, planned, fields, widened, label, over_files)
    else:
        scan = _files_frame(spark, plan, source)
    if not plan.merge:
        return scan
    read = {field.id for field in fields}
    others = tuple(field for field in plan.state.history.latest.fields if field.id not in read)
    merge = _merge_frame(
        spark,
        plan.state.name,
        f"{_label(plan)} ({len(plan.merge)} parts to add up)",
        fields,
        source(Branch.MERGE, (*fields, *others)),
        others=others,
        widened=widened,
        as_of=plan.as_of,
    )
    return scan.unionAll(merge)


def metadata_plan(
    spark: SparkSession,
    plan: SnapshotPlan,
    source: Callable[[Branch, Sequence[Field]], SnapshotSource],
) -> Any:  # noqa: ANN401 -- a Java object
    """Return the plan that reads what is not added up over files, with what Spark has of each file."""
    return plan_of(_files_frame(spark, plan, source, METADATA))


def _widened(plan: SnapshotPlan) -> frozenset[int]:
    history = plan.state.history
    return widened_decimals(history, (*plan.reader.schema.fields, *history.latest.fields))


def _files_frame(
    spark: SparkSession,
    plan: SnapshotPlan,
    source: Callable[[Branch, Sequence[Field]], SnapshotSource],
    *places: str,
) -> DataFrame:
    """Return the rows of a plan that are not added up, over files, and what Spark has of these."""
    fields = plan.reader.schema.fields
    label, widened = _label(plan), _widened(plan)
    whole, taken = (len(branch.parts(plan)) for branch in (Branch.SCAN, Branch.TAKEN))
    frames = []
    if whole or not taken:
        parts = source(Branch.SCAN, fields)
        frames.append(shown_frame(spark, f"{label} ({whole} parts)", fields, parts, *places, widened=widened))
    if taken:
        retracted = f"{label} ({taken} parts less retracted rows)"
        frames.append(_taken_frame(spark, retracted, fields, source(Branch.TAKEN, fields), widened, *places))
    return reduce(DataFrame.unionAll, frames)


def _taken_frame(
    spark: SparkSession,
    label: str,
    fields: Sequence[Field],
    source: ScanSource,
    widened: frozenset[int],
    *places: str,
) -> DataFrame:
    """Return the rows of parts less those that were retracted by position."""
    return shown_frame(
        spark,
        label,
        fields,
        source,
        *places,
        widened=widened,
        partitions=source.partitions,
        leave_out=source.leave_out,
    )


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
