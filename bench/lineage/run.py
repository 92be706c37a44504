"""The questions of `bench lineage`, asked in one run."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.lineage.backfill import measure_backfill
from bench.lineage.growth import measure_growth
from bench.lineage.layout import measure_layout
from bench.lineage.rates import measure_rates
from bench.lineage.seeds import add_versions, write_events
from bench.measure import machine, say
from bench.report import Report
from instar.lineage import Database, open_database
from testbed.lineage import new_postgres_url
from testbed.servers import PostgresServer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DEFAULT", "FULL", "QUICK", "Plan", "run"]


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    runs: int = 4320  # every 10 minutes for 30 days
    many_datasets: int = 1000
    many_versions: int = 144_000  # every 10 minutes for a day
    clients: tuple[int, ...] = (1, 8)
    seconds: float = 5
    sizes: tuple[int, ...] = (10_000, 1_000_000)
    repeats: int = 30
    links: int = 20
    mapping_rows: int = 1_000_000


_REAL_RUNS: Final = 100
"""The other versions are copies of what these events make."""

DEFAULT: Final = Plan()
FULL: Final = replace(DEFAULT, seconds=20, mapping_rows=10_000_000)
QUICK: Final = Plan(3, 2, 6, (1, 2), 0.2, (40, 80), 2, 2, 200)
"""Proves that everything runs; its figures mean nothing."""


def run(plan: Plan, command: str, directory: Path | None = None) -> Report:
    """Measure, in a new directory below the given one."""
    report = Report(command, machine())
    with tempfile.TemporaryDirectory(prefix="instar-bench-", dir=directory) as scratch, _postgres() as server:

        def sqlite_url() -> str:
            return f"sqlite:///{scratch}/{uuid.uuid4().hex}.db"

        def postgres_url() -> str:
            return new_postgres_url(server)

        urls = {"SQLite": sqlite_url, "PostgreSQL": postgres_url}
        say("comparing layouts …")
        with ExitStack() as stack:
            databases: dict[str, Database] = {}
            for name, make in urls.items():
                one = databases[f"{name}, 1 dataset"] = stack.enter_context(open_database(make()))
                write_events(one, min(plan.runs, _REAL_RUNS))
                add_versions(one, plan.runs - min(plan.runs, _REAL_RUNS))
                many = stack.enter_context(open_database(make()))
                databases[f"{name}, {plan.many_datasets:,} datasets"] = many
                write_events(many, 1, plan.many_datasets)
                add_versions(many, plan.many_versions - plan.many_datasets)
            report.sections.append(measure_layout(databases))
        say("sending events …")
        report.sections.append(
            measure_rates({name: make() for name, make in urls.items()}, plan.clients, plan.seconds)
        )
        say("reading as versions grow …")
        report.sections.append(measure_growth(dict(urls), plan.sizes, plan.repeats, plan.links))
        say("converting the old layout …")
        report.sections.append(
            measure_backfill(postgres_url(), plan.mapping_rows, min(plan.many_datasets, 100), plan.seconds)
        )
    return report


@contextmanager
def _postgres() -> Iterator[PostgresServer]:
    """Start PostgreSQL, in a directory that its own user may enter."""
    directory = Path(tempfile.mkdtemp(prefix="instar-bench-postgres-"))
    server = PostgresServer(directory)
    try:
        yield server
    finally:
        server.crash()
        shutil.rmtree(directory, ignore_errors=True)
