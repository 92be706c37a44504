"""Events per second over HTTP, with one client and with many at once."""

from __future__ import annotations

import itertools
import threading
import time
from typing import TYPE_CHECKING

import httpx

from bench.lineage.seeds import events_of
from bench.report import Column, Section
from testbed.service import running

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["measure_rates"]


def measure_rates(urls: dict[str, str], clients: Sequence[int], seconds: float) -> Section:
    """Send events for some seconds, with each number of clients, to each database."""
    rows = []
    for name, url in urls.items():
        with running(url) as service:
            numbers = itertools.count()
            _send(service.url, 1, min(seconds, 1), numbers)  # warm
            found = {count: _send(service.url, count, seconds, numbers) for count in clients}
        rows += [
            {"database": name, "clients": count, "ratio": rate / found[clients[0]], "rate": rate}
            for count, rate in found.items()
        ]
    return Section(
        "Events per second",
        {
            "database": Column("database"),
            "clients": Column("clients", ","),
            "ratio": Column("beside one client", ",.2f"),
            "rate": Column("events/s", ",.0f"),
        },
        rows,
        ["One COMPLETE event with a dataset of 20 columns for each run; the clients run beside the service"],
    )


def _send(url: str, clients: int, seconds: float, numbers: Iterator[int]) -> float:
    done: list[int] = []
    end = time.monotonic() + seconds

    def work() -> None:
        with httpx.Client(base_url=url, timeout=60) as client:
            count = 0
            while count == 0 or time.monotonic() < end:
                client.post("/api/v1/lineage", json=events_of(next(numbers))[0]).raise_for_status()
                count += 1
            done.append(count)

    threads = [threading.Thread(target=work) for _ in range(clients)]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.monotonic() - start)
