"""How much is measured of compaction, and in which order."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.compact.layouts import amplification, opened, queries
from bench.compact.lookups import lookups
from bench.compact.throughput import schemas, throughput
from bench.frames import session
from bench.measure import machine
from bench.report import Report

__all__ = ["DEFAULT", "FULL", "QUICK", "Plan", "run"]


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    rows: int
    """Of the table that is compacted."""
    parts: int
    appends: int
    """Small ones, one after the other."""
    looked_up: tuple[int, int]
    """In how many parts keys are looked up."""
    rounds: int


DEFAULT = Plan(rows=1_500_000, parts=60, appends=1000, looked_up=(100, 10_000), rounds=3)
FULL = Plan(rows=10_000_000, parts=200, appends=1000, looked_up=(100, 10_000), rounds=5)
QUICK = Plan(rows=10_000, parts=20, appends=20, looked_up=(5, 20), rounds=1)


def run(plan: Plan, command: str, directory: Path | None) -> Report:
    """Measure everything, by turns."""
    report = Report(command, machine())
    spark = session()
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        where = Path(folder)
        report.sections.append(throughput(plan.rows, plan.parts, plan.rounds, spark, where, report))
        report.sections.append(schemas(plan.rows, plan.parts, plan.rounds, where))
        report.sections.append(queries(plan.appends, plan.rounds, spark, where))
        report.sections.append(amplification(plan.appends, where))
        report.sections.append(opened(plan.rows, where))
        report.sections.append(lookups(plan.looked_up, plan.rounds, where, report))
    return report
