"""Frames of tables: read by Spark's own Parquet reader, or by Python workers if it cannot reach the files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.spark.native.scan import snapshot_frame
from instar.spark.native.views import following_frame
from instar.spark.source.table_scan import SCAN_LEASE_MS
from instar.spark.source.worker_frame import can_open, worker_frame
from instar.table.read.snapshot import plan_snapshot, resolve_reader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from instar.state import ConfigValue
    from instar.table import Services, TableLog
    from instar.table.log.pin import Pin
    from instar.table.read.snapshot import SnapshotPlan

__all__ = ["read_snapshot", "read_table"]


def read_snapshot(
    spark: SparkSession,
    services: Services,
    plan: SnapshotPlan,
    pin: Pin,
    options: Mapping[str, ConfigValue | None] | None = None,
) -> DataFrame:
    """Return the rows of a snapshot, which is held as long as the frame; `options` are for its queries."""
    if can_open(spark, services.blob):
        return snapshot_frame(spark, services, plan, pin, options)
    pin.lend(SCAN_LEASE_MS)
    return worker_frame(spark, services.blob, [plan], plan.reader.schema)


def read_table(spark: SparkSession, services: Services, log: TableLog) -> DataFrame:
    """Return the rows of a table as of whenever they are asked for, if Spark can open the files itself."""
    if can_open(spark, services.blob):
        return following_frame(spark, services, log)
    pin = log.pinned()
    with pin as state:
        plan = plan_snapshot(services.chunks, state, resolve_reader(state, None, None), None)
        pin.lend(SCAN_LEASE_MS)
    return worker_frame(spark, services.blob, [plan], plan.reader.schema)
