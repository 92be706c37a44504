"""Snapshots as DataFrames, read by Spark's own Parquet reader.

Fields are found by their ids, at every level, and columns get the reader's names. Parts that must be
consolidated are read with their times and diffs and added up.
"""

from __future__ import annotations

import threading
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

from instar.spark.native.adding import add_up
from instar.spark.native.gateway import gateway_of
from instar.spark.native.names import widened_decimals
from instar.spark.native.relation import field_json, parts_frame, show, shown_frame
from instar.spark.native.scan_source import Branch, SnapshotSource
from instar.spark.native.settle import settle_on_spark
from instar.spark.native.stand_ins import Replacement, StandIn, install_rule, stand_in_frame
from instar.spark.planner.table import is_planned, planned_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import Column, SparkSession

    from instar.schema import Field
    from instar.spark.native.file_index import FileSource, TableOrigin
    from instar.spark.native.gateway import Gateway
    from instar.spark.native.scan_source import ScanSource
    from instar.state import ConfigValue
    from instar.table import Services
    from instar.table.log.pin import Pin
    from instar.table.read.snapshot import SnapshotPlan

__all__ = ["later_frame", "plan_frame", "plan_of", "scan_frame", "snapshot_frame"]

_METADATA: Final = "_metadata"
"""The column by which Spark tells where a row is from."""
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

    if settled.scan.partly.any() and not settled.merge:
        answering = source(Branch.COUNTED, settled.reader.schema.fields)
        if is_planned(spark, answering):
            return stand_in_frame(spark, _Less(gateway_of(spark), settled, source))
    return plan_frame(spark, settled, source)


class _Less(StandIn):
    """A snapshot less rows that are retracted by position, which metadata may answer for as a whole."""

    def __init__(
        self,
        gateway: Gateway,
        plan: SnapshotPlan,
        source: Callable[[Branch, Sequence[Field]], SnapshotSource],
    ) -> None:
        fields = plan.reader.schema.fields
        label = f"{_label(plan)} ({len(plan.scan)} parts)"
        super().__init__(gateway, label, fields, widened_decimals(plan.state.history, fields))
        self._plan = plan
        self._source = source
        self._origin = source(Branch.COUNTED, fields).origin()
        self._made: Any = None  # knows nothing of this one, so that both end together
        self._lock = threading.Lock()

    def size(self) -> int:
        """Return the size of all files of the snapshot."""
        return self._plan.scan.bytes

    def origin(self) -> TableOrigin:
        """Return the table of the snapshot."""
        return self._origin

    def replacement(self, query: str, columns: Sequence[str], *, aggregated: bool) -> Replacement:  # noqa: ARG002 -- all read the same
        """Return the scans that the snapshot is made of."""
        if not set(columns) <= set(self.named):
            return Replacement(plan_of(plan_frame(self.gateway.spark, self._plan, self._source, _METADATA)))
        with self._lock:
            if self._made is None:
                self._made = plan_of(plan_frame(self.gateway.spark, self._plan, self._source))
        return Replacement(self._made, self.answering(self._plan, self._source) if aggregated else None)


def plan_of(frame: DataFrame) -> Any:  # noqa: ANN401 -- a Java object
    """Return the plan of a frame."""
    return frame._jdf.queryExecution().analyzed()  # noqa: SLF001 -- PySpark has no public way to it


def _label(plan: SnapshotPlan) -> str:
    return f"instar:/{plan.state.name}@{plan.state.seqno}"


def plan_frame(
    spark: SparkSession,
    plan: SnapshotPlan,
    source: Callable[[Branch, Sequence[Field]], SnapshotSource],
    *places: str,
) -> DataFrame:
    """Return the rows of a plan, from sources of its parts in each branch that it has.

    `places` are columns that Spark has of files, which rows that are added up do not have.
    """
    fields = plan.reader.schema.fields
    label = _label(plan)
    history = plan.state.history
    widened = widened_decimals(history, (*fields, *history.latest.fields))
    whole, taken = (len(branch.parts(plan)) for branch in (Branch.SCAN, Branch.TAKEN))
    frames = []
    if whole or not taken:
        frames.append(
            scan_frame(
                spark, f"{label} ({whole} parts)", fields, source(Branch.SCAN, fields), widened, *places
            )
        )
    if taken:
        retracted = f"{label} ({taken} parts less retracted rows)"
        frames.append(_taken_frame(spark, retracted, fields, source(Branch.TAKEN, fields), widened, *places))
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
    spark: SparkSession,
    label: str,
    fields: Sequence[Field],
    source: FileSource,
    widened: frozenset[int],
    *places: str,
) -> DataFrame:
    """Return the rows of parts as they are, and under `places` what Spark has of their files."""
    if isinstance(source, SnapshotSource) and is_planned(spark, source):
        install_rule(gateway_of(spark))
        return planned_frame(spark, source, fields, widened, label, *places)
    return shown_frame(spark, label, fields, source, *places, widened=widened)


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
