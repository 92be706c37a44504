"""The backfill from the old layout, in a process of its own, and what clients of the service notice of it."""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from bench.lineage.seeds import (
    COLUMNS,
    add_old_layout,
    add_versions,
    events_of,
    forget_schema_versions,
    write_events,
)
from bench.report import Column, Section
from instar.lineage import open_database
from testbed.service import running

if TYPE_CHECKING:
    from collections.abc import Callable

    from testbed.service import Client

__all__ = ["measure_backfill"]

_PAUSE = 0.02


def measure_backfill(url: str, mapping_rows: int, datasets: int, seconds: float) -> Section:
    """Convert so many rows of the old layout, first alone and then while a client reads and writes."""
    command = [sys.executable, "-m", "instar", "lineage", "backfill", "--db", url, "--json"]
    with open_database(url) as database:
        write_events(database, 1, datasets)
        add_versions(database, mapping_rows // COLUMNS - datasets)
        add_old_layout(database)
        forget_schema_versions(database)
        database.engine.dispose()  # who is connected is company
        start = time.monotonic()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        alone = time.monotonic() - start
        forget_schema_versions(database)
    with running(url) as client:
        numbers = itertools.count(20_000_000)
        _probe(client, numbers, lambda start: time.monotonic() - start < min(seconds, 1))  # warm
        before = _probe(client, numbers, lambda start: time.monotonic() - start < seconds)
        start = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            during = _probe(client, numbers, lambda _: process.poll() is None)
        took = time.monotonic() - start
        if process.returncode:
            raise RuntimeError("the backfill failed")
    rows = [
        {
            "what": what,
            "ratio": statistics.median(during[what]) / statistics.median(before[what]),
            "tail": _tail(during[what]) / _tail(before[what]),
            "before": statistics.median(before[what]),
            "during": statistics.median(during[what]),
        }
        for what in before
    ]
    return Section(
        f"A client while {mapping_rows:,} mapping rows are converted on PostgreSQL",
        {
            "what": Column("request"),
            "ratio": Column("time, during/before", ",.2f"),
            "tail": Column("95 % of them, during/before", ",.2f"),
            "before": Column("ms, before", ",.1f"),
            "during": Column("ms, during", ",.1f"),
        },
        rows,
        [
            f"{mapping_rows / alone:,.0f} mapping rows per second alone, with all checks, in {alone:,.0f} s",
            f"{mapping_rows / took:,.0f} mapping rows per second beside the client, in {took:,.0f} s",
            f"{datasets:,} datasets with {COLUMNS} columns",
            "Client, service, backfill and PostgreSQL share the machine",
        ],
    )


def _probe(client: Client, numbers: Any, goes_on: Callable[[float], bool]) -> dict[str, list[float]]:  # noqa: ANN401 -- a counter
    """Read and write a little, again and again; return how many milliseconds each took."""
    times: dict[str, list[float]] = {"GET dataset": [], "POST event": []}
    start = time.monotonic()
    while not times["GET dataset"] or goes_on(start):
        asked = time.perf_counter()
        client.get("/api/v1/namespaces/db/datasets/out0").raise_for_status()
        answered = time.perf_counter()
        client.post("/api/v1/lineage", json=events_of(next(numbers))[0]).raise_for_status()
        times["GET dataset"].append((answered - asked) * 1000)
        times["POST event"].append((time.perf_counter() - answered) * 1000)
        time.sleep(_PAUSE)
    return times


def _tail(times: list[float]) -> float:
    return sorted(times)[len(times) * 95 // 100]
