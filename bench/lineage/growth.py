"""Reads over HTTP as the number of dataset versions grows."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Final

from bench.lineage.seeds import add_versions, chain
from bench.report import Column, Section
from instar.lineage import open_database
from tests.service import running

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.service import Client

__all__ = ["measure_growth"]

_REQUESTS: Final = {
    "dataset": "/namespaces/db/datasets/link1",
    "its versions": "/namespaces/db/datasets/link1/versions",
    "its schema versions": "/namespaces/db/datasets/link1/schema-versions",
    "graph, depth 20": "/lineage?nodeId=dataset:db:link1&depth=20",
}


def measure_growth(
    new_url: dict[str, Callable[[], str]], sizes: Sequence[int], repeats: int, links: int
) -> Section:
    """Ask the same of databases of each size."""
    rows = []
    for name, make in new_url.items():
        found: dict[int, dict[str, float]] = {}
        for size in sizes:
            url = make()
            with open_database(url) as database:
                chain(database, links)
                add_versions(database, size)
            with running(url) as client:
                found[size] = {what: _median(client, path, repeats) for what, path in _REQUESTS.items()}
        for what in _REQUESTS:
            small, large = found[sizes[0]][what], found[sizes[-1]][what]
            rows.append(
                {"database": name, "request": what, "ratio": large / small, "small": small, "large": large}
            )
    return Section(
        f"GET with {sizes[-1]:,} dataset versions beside {sizes[0]:,}",
        {
            "database": Column("database"),
            "request": Column("GET"),
            "ratio": Column("time, many/few", ",.2f"),
            "small": Column("ms, few", ",.1f"),
            "large": Column("ms, many", ",.1f"),
        },
        rows,
        [f"Medians of {repeats}; the versions belong to a chain of {links} jobs"],
    )


def _median(client: Client, path: str, repeats: int) -> float:
    client.get(f"/api/v1{path}").raise_for_status()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        client.get(f"/api/v1{path}").raise_for_status()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)
