"""Reports on the scans of a DataFrame: what each of them skips."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from instar.spark.file_index import find_index
from instar.spark.filters import Filters
from instar.spark.gateway import gateway_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from instar.table.report import ScanReport

__all__ = ["reports_of"]


def reports_of(frame: DataFrame) -> list[ScanReport]:
    """Plan a frame, and report on each of its scans of instar tables, in the order of the plan."""
    gateway = gateway_of(frame.sparkSession)
    plan = frame._jdf.queryExecution().executedPlan()  # noqa: SLF001 -- PySpark has no public way to it
    found = []
    for scan in _scans(plan, set()):
        index = find_index(scan.relation().location())
        report = None
        if index is not None:
            report = index.report(Filters(gateway, scan.partitionFilters(), scan.dataFilters()))
        if report is not None:
            found.append(report)
    return found


def _scans(plan: Any, seen: set[int]) -> Iterator[Any]:  # noqa: ANN401 -- a physical plan
    """Yield the file scans of a plan, also those of subqueries and of plans inside plans, each once.

    A subquery runs once, and every node that mentions its result knows it.
    """
    number = plan.id()
    if number in seen:
        return
    seen.add(number)
    name = plan.getClass().getSimpleName()
    if name == "FileSourceScanExec":
        yield plan
    if name == "AdaptiveSparkPlanExec":
        yield from _scans(plan.executedPlan(), seen)
    if name.endswith("QueryStageExec"):  # a part of an adaptive plan that has been run
        yield from _scans(plan.plan(), seen)
    for sequence in (plan.children(), plan.subqueries()):
        for at in range(sequence.size()):
            yield from _scans(sequence.apply(at), seen)
