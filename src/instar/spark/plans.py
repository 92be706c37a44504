"""Physical plans of Spark: the scans in them, and what these read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from instar.spark.file_index import find_index

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["columns_read", "file_scans"]


def file_scans(plan: Any) -> Iterator[Any]:  # noqa: ANN401 -- a physical plan
    """Yield the file scans of a plan, also those of subqueries and of plans inside plans."""
    name = plan.getClass().getSimpleName()
    if name == "FileSourceScanExec":
        yield plan
    if name == "AdaptiveSparkPlanExec":
        yield from file_scans(plan.executedPlan())
    if name == "InMemoryTableScanExec":
        yield from file_scans(plan.relation().cachedPlan())
    if name.endswith("QueryStageExec"):  # a part of an adaptive plan that has been run
        yield from file_scans(plan.plan())
    for sequence in (plan.children(), plan.subqueries()):
        for at in range(sequence.size()):
            yield from file_scans(sequence.apply(at))


def columns_read(plan: Any, label: str) -> frozenset[str] | None:  # noqa: ANN401 -- a physical plan
    """Return the physical columns that all scans with this label read together; None if there is none."""
    found = []
    for scan in file_scans(plan):
        index = find_index(scan.relation().location())
        if index is not None and index.toString() == label:
            found.append(frozenset(scan.requiredSchema().fieldNames()))
    return frozenset().union(*found) if found else None
