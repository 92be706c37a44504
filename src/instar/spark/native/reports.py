"""Reports on the scans of a DataFrame: what each of them skips."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.spark.native.filters import Filters
from instar.spark.native.gateway import gateway_of
from instar.spark.native.plans import table_scans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from instar.table.read.report import ScanReport

__all__ = ["reports_of"]


def reports_of(frame: DataFrame) -> list[ScanReport]:
    """Plan a frame, and report on each of its scans of instar tables, in the order of the plan."""
    gateway = gateway_of(frame.sparkSession)
    plan = frame._jdf.queryExecution().executedPlan()  # noqa: SLF001 -- PySpark has no public way to it
    reports = (
        index.report(Filters(gateway, scan.partitionFilters(), scan.dataFilters()))
        for index, scan in table_scans(plan)
    )
    return [report for report in reports if report is not None]
