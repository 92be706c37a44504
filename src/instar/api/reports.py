"""`instar.scan_reports`: what the scans of a Spark DataFrame skip."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from instar.table.read.report import ScanReport

__all__ = ["scan_reports"]


def scan_reports(frame: DataFrame) -> list[ScanReport]:
    """Plan a DataFrame without running it, and report on each scan of an instar table in it.

    The filters are those that Spark's optimizer has pushed down to each scan. A table that holds retractions
    is scanned twice: once as it is, and once where rows have to be added up. A view is always scanned twice,
    for its table may come to hold some. A subquery runs once, and is reported once.
    """
    from instar.spark import reports_of  # noqa: PLC0415 -- only who needs Spark loads it

    return reports_of(frame)
