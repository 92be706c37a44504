"""Reports on the scans of a DataFrame: what each of them skips."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.spark.file_index import find_index
from instar.spark.filters import Filters
from instar.spark.gateway import gateway_of
from instar.spark.plans import file_scans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from instar.table.report import ScanReport

__all__ = ["reports_of"]


def reports_of(frame: DataFrame) -> list[ScanReport]:
    """Plan a frame, and report on each of its scans of instar tables, in the order of the plan."""
    gateway = gateway_of(frame.sparkSession)
    plan = frame._jdf.queryExecution().executedPlan()  # noqa: SLF001 -- PySpark has no public way to it
    found = []
    for scan in file_scans(plan):
        index = find_index(scan.relation().location())
        report = None
        if index is not None:
            report = index.report(Filters(gateway, scan.partitionFilters(), scan.dataFilters()))
        if report is not None:
            found.append(report)
    return found
