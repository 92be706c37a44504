"""The questions of `bench skipping`, asked in one run."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.engines import ENGINES, installed
from bench.frames import ROW_BYTES, session
from bench.measure import machine, say
from bench.opened import CAN_WATCH
from bench.report import Report
from bench.seeds import Seeds
from bench.skipping.decisions import measure_decisions
from bench.skipping.league import play_league
from bench.skipping.queries import make_events, measure_everything, measure_selective

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DEFAULT", "FULL", "QUICK", "Plan", "run"]


@dataclass(frozen=True)
class Plan:
    """How much is measured. The first of `sizes` is what the others are compared with."""

    sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    peer_sizes: tuple[int, ...] = (10_000, 100_000)
    decisions: int = 5
    spark: bool = True
    megabytes: int = 1000
    parts: int = 1000
    queries: int = 7
    scans: int = 7


DEFAULT: Final = Plan()
FULL: Final = replace(DEFAULT, peer_sizes=(10_000, 100_000, 1_000_000), decisions=9, queries=15, scans=15)
QUICK: Final = Plan((20, 60), (20, 60), 1, spark=False)
"""Proves that what needs no Spark runs; its figures mean nothing."""


def run(plan: Plan, command: str, directory: Path | None = None) -> Report:
    """Measure, in a new directory below the given one."""
    report = Report(command, machine())
    engines = [name for name in ENGINES if installed(name)]
    report.skipped += [f"{name}, which is not installed here" for name in ENGINES if name not in engines]
    with tempfile.TemporaryDirectory(prefix="instar-bench-", dir=directory) as scratch:
        seeds = Seeds(Path(scratch) / "seeds")
        sizes = {engine: plan.sizes if engine == "instar" else plan.peer_sizes for engine in engines}
        say("making tables of many parts …")
        seeds.make({(engine, parts) for engine, own in sizes.items() for parts in own})
        say("deciding what to read of them …")
        decisions = measure_decisions(seeds, sizes, plan.decisions)
        spark = _session(plan, report)
        _play(report, Path(scratch) / "league", spark)
        report.sections.append(decisions)
        if spark is not None:
            _query(report, plan, spark, Path(scratch) / "events")
    return report


def _session(plan: Plan, report: Report) -> SparkSession | None:
    if not plan.spark:
        report.skipped.append("queries on Spark, which a quick run does not start")
        return None
    return session()


def _play(report: Report, directory: Path, spark: SparkSession | None) -> None:
    if not CAN_WATCH:
        report.skipped.append("the league, which needs Linux to tell what files are opened")
        return
    say("playing the league …")
    report.sections.append(play_league(directory, spark, report.skipped.append))


def _query(report: Report, plan: Plan, spark: SparkSession, directory: Path) -> None:
    say(f"writing about {plan.megabytes} MB of events …")
    made = make_events(spark, directory, plan.megabytes * 1_000_000 // ROW_BYTES, plan.parts)
    say("asking for little …")
    report.sections.append(measure_selective(made, plan.queries))
    say("asking for everything …")
    report.sections.append(measure_everything(made, plan.scans))
