"""The two questions of `bench cloud`: how many requests, and how fast Spark reads what is there."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.cloud.reading import measure_reading
from bench.cloud.requests import measure_requests
from bench.engines import ENGINES, installed
from bench.measure import machine, say
from bench.report import Report
from testbed.servers import S3Server

__all__ = ["DEFAULT", "FULL", "QUICK", "Plan", "run"]


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    commits: int = 10
    """How many parts the small table has, each of a commit of its own."""
    parts: int = 10_000
    megabytes: int = 100
    rounds: int = 5


DEFAULT: Final = Plan()
FULL: Final = Plan(megabytes=400, rounds=9)
QUICK: Final = Plan(commits=3, parts=200, megabytes=1, rounds=1)
"""Proves that everything runs; its figures mean nothing."""


def run(plan: Plan, command: str, directory: Path | None = None) -> Report:
    """Measure, with an S3 server on loopback."""
    report = Report(command, machine())
    engines = [name for name in ENGINES if installed(name)]
    report.skipped += [f"{name}, which is not installed here" for name in ENGINES if name not in engines]
    server = S3Server()
    try:
        with tempfile.TemporaryDirectory(prefix="instar-bench-", dir=directory) as scratch:
            say("counting requests …")
            report.sections.append(measure_requests(server, Path(scratch), engines, plan.commits, plan.parts))
            say("reading on Spark …")
            report.sections.append(measure_reading(server, plan.megabytes, plan.rounds))
    finally:
        server.stop()
    return report
