"""Reads over HTTP as the number of dataset versions grows."""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from bench.lineage.seeds import add_versions, chain
from bench.report import Column, Section
from instar.lineage import open_database
from testbed.service import running

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from testbed.service import Client

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
        with ExitStack() as stack:
            clients = []
            for size in sizes:
                url = make()
                with open_database(url) as database:
                    chain(database, links)
                    add_versions(database, size)
                clients.append(stack.enter_context(running(url)))
            found = {what: _by_turns(clients, path, repeats) for what, path in _REQUESTS.items()}
        for what in _REQUESTS:
            small, large = found[what][0], found[what][-1]
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
        [f"Medians of {repeats}, asked by turns; the versions belong to a chain of {links} jobs"],
    )


def _by_turns(clients: Sequence[Client], path: str, repeats: int) -> list[float]:
    """Ask all services in turn, so that whatever else the machine does is the same for each."""
    times: list[list[float]] = [[] for _ in clients]
    for attempt in range(repeats + 1):
        for client, mine in zip(clients, times, strict=True):
            start = time.perf_counter()
            client.get(f"/api/v1{path}").raise_for_status()
            if attempt:  # the first warms up
                mine.append((time.perf_counter() - start) * 1000)
    return [statistics.median(mine) for mine in times]
