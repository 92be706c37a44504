"""The three questions of `bench state`, asked in one run on the same tables."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.cold import WARM_UP_PARTS
from bench.engines import ENGINES, installed
from bench.measure import machine, say
from bench.report import Report
from bench.seeds import Seeds
from bench.state.commits import measure_commits
from bench.state.opening import measure_opening
from bench.state.rates import Servers, measure_rates
from testbed.servers import PostgresServer, S3Server

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DEFAULT", "FULL", "QUICK", "Plan", "run"]


@dataclass(frozen=True)
class Plan:
    """How much is measured. The first of `sizes` is what the others are compared with."""

    sizes: tuple[int, ...] = (100, 10_000, 100_000)
    commits: int = 150
    peer_sizes: tuple[int, ...] = (100, 10_000, 100_000)
    peer_commits: int = 9
    openings: tuple[tuple[int, int], ...] = ((100_000, 3),)  # parts, how often
    writers: tuple[int, ...] = (1, 8)
    seconds: float = 1.5
    rounds: int = 4


DEFAULT: Final = Plan()
FULL: Final = replace(
    DEFAULT, sizes=(*DEFAULT.sizes, 1_000_000), openings=(*DEFAULT.openings, (1_000_000, 2))
)
QUICK: Final = Plan((20, 60), 4, (20, 60), 2, ((60, 1),), (1, 2), 0.2, 1)
"""Proves that everything runs; its figures mean nothing."""


def run(plan: Plan, command: str, directory: Path | None = None) -> Report:
    """Measure, in a new directory below the given one."""
    report = Report(command, machine())
    engines = [name for name in ENGINES if installed(name)]
    report.skipped += [f"{name}, which is not installed here" for name in ENGINES if name not in engines]
    with tempfile.TemporaryDirectory(prefix="instar-bench-", dir=directory) as scratch:
        seeds = Seeds(Path(scratch) / "seeds")
        say("making the tables …")
        seeds.make(_wanted(plan, engines))
        say("opening them cold …")
        opening = measure_opening(seeds, engines, plan.openings)
        say("committing to them …")
        commits = measure_commits(
            seeds, plan.sizes, plan.commits, (engines[1:], plan.peer_sizes, plan.peer_commits)
        )
        say("letting many write at once …")
        with _servers() as servers:
            rates = measure_rates(
                Path(scratch) / "rates", servers, engines, plan.writers, plan.seconds, plan.rounds
            )
    report.sections += [commits, opening, rates]
    return report


def _wanted(plan: Plan, engines: list[str]) -> set[tuple[str, int]]:
    """Return which table of which engine is needed."""
    asked = {WARM_UP_PARTS, *(parts for parts, _ in plan.openings)}
    wanted = {(engine, parts) for engine in engines for parts in asked}
    wanted |= {("instar", parts) for parts in plan.sizes}
    return wanted | {(peer, parts) for peer in engines[1:] for parts in plan.peer_sizes}


@contextmanager
def _servers() -> Iterator[Servers]:
    """Start PostgreSQL, in a directory that its own user may enter, and S3."""
    directory = Path(tempfile.mkdtemp(prefix="instar-bench-postgres-"))
    postgres, s3 = PostgresServer(directory), S3Server()
    try:
        yield Servers(postgres, s3)
    finally:
        postgres.crash()
        s3.stop()
        shutil.rmtree(directory, ignore_errors=True)
