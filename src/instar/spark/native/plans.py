"""Physical plans of Spark: the scans in them, what these read, and what they skip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from instar.spark.native.file_index import PartIndex, find_index
from instar.spark.native.filters import Filters
from instar.spark.native.gateway import gateway_of
from instar.spark.planner.choice import PartChoice
from instar.spark.planner.compiled import number_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from instar.spark.native.gateway import Gateway
    from instar.table.read.report import ScanReport

__all__ = ["reports_of", "table_scans"]

_OF_FILES: Final = "FileSourceScanExec"
_PLANNED: Final = "BatchScanExec"


def table_scans(
    gateway: Gateway,
    plan: Any,  # noqa: ANN401 -- physical plans
    *,
    cached: bool = False,
) -> Iterator[tuple[PartIndex | PartChoice, Any]]:
    """Yield the scans of instar tables in a plan, also in subqueries and in plans inside plans, each once.

    Scans for a frame that is cached are left out unless they are asked for: they may have run long ago.
    """
    for node in _scans(plan, cached=cached):
        known: PartIndex | PartChoice | None
        if node.getClass().getSimpleName() == _PLANNED:
            known = PartChoice.find(number_of(gateway, node.scan()))
        else:
            known = find_index(node.relation().location())
        if known is not None:
            yield known, node


def _scans(plan: Any, *, cached: bool) -> Iterator[Any]:  # noqa: ANN401 -- a physical plan
    """Yield all scans. A subquery runs once, and every node that mentions its result knows it."""
    seen: set[int] = set()
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        name = node.getClass().getSimpleName()
        if name.endswith("QueryStageExec"):  # a part of an adaptive plan that has been run
            waiting.append(node.plan())
            continue  # its id is that of a stage, and other plans have such stages too
        number = node.id()
        if number in seen:
            continue
        seen.add(number)
        if name in (_OF_FILES, _PLANNED):
            yield node
        if name == "InMemoryTableScanExec" and cached:
            waiting.append(node.relation().cachedPlan())
        waiting += reversed(list(_below(node, name)))


def _below(node: Any, name: str) -> Iterator[Any]:  # noqa: ANN401 -- a physical plan
    if name == "AdaptiveSparkPlanExec":
        yield node.executedPlan()
    for sequence in (node.children(), node.subqueries()):
        for at in range(sequence.size()):
            yield sequence.apply(at)


def reports_of(frame: DataFrame) -> list[ScanReport]:
    """Plan a frame, and report on each of its scans of instar tables, in the order of the plan."""
    gateway = gateway_of(frame.sparkSession)
    plan = frame._jdf.queryExecution().executedPlan()  # noqa: SLF001 -- PySpark has no public way to it
    reports = (
        known.report()
        if isinstance(known, PartChoice)
        else known.report(Filters(gateway, node.partitionFilters(), node.dataFilters()))
        for known, node in table_scans(gateway, plan)
    )
    return [report for report in reports if report is not None]
