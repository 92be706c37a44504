"""Counters that Prometheus reads: what evolvers do, over all streams of the process."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Gauge

__all__ = ["FAILED", "LEADING", "PASSES", "SKIPPED", "STAMPED", "VANISHED", "WAITING"]

PASSES: Final = Counter("instar_evolver_passes", "Passes that finished.", ["stream"])
STAMPED: Final = Counter("instar_evolver_stamped", "Tables brought to a newer version.", ["stream"])
SKIPPED: Final = Counter("instar_evolver_skipped", "Tables left alone: no query would notice.", ["stream"])
FAILED: Final = Counter("instar_evolver_failed", "Attempts on a table that failed.", ["stream"])
VANISHED: Final = Counter(
    "instar_evolver_vanished", "Tables that were gone when their turn came.", ["stream"]
)
WAITING: Final = Gauge("instar_evolver_waiting", "Tables that wait for their turn.", ["stream"])
LEADING: Final = Gauge("instar_evolver_leading", "1 while this process leads.", ["stream"])
