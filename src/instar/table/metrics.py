"""Counters that Prometheus reads: what skipping and maintenance do, over all tables of the process."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Histogram

__all__ = [
    "MAINTAINED",
    "MAINTENANCE_FAILED",
    "PARTS_AUDITED",
    "PARTS_CONSIDERED",
    "PARTS_SKIPPED",
    "PLANNER_FALLBACKS",
    "PLANNING_SECONDS",
    "REWRITTEN_BYTES",
    "VACUUMED_BYTES",
    "VIOLATIONS",
]

PARTS_CONSIDERED: Final = Counter("instar_parts_considered", "Parts that a filter was decided for.")
PARTS_SKIPPED: Final = Counter("instar_parts_skipped", "Parts that were proved not to be needed.")
PARTS_AUDITED: Final = Counter("instar_parts_audited", "Skipped parts that were read to check the proof.")
VIOLATIONS: Final = Counter("instar_skipping_violations", "Skipped parts that a filter needed after all.")
PLANNING_SECONDS: Final = Histogram(
    "instar_planning_seconds",
    "Time to decide which parts one scan needs.",
    buckets=(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5),
)
PLANNER_FALLBACKS: Final = Counter(
    "instar_planner_fallbacks", "Scans that were read over files because planning them would not be safe."
)
MAINTAINED: Final = Counter("instar_maintained", "Tables that maintenance has looked after.")
MAINTENANCE_FAILED: Final = Counter("instar_maintenance_failed", "Tables that maintenance has failed on.")
REWRITTEN_BYTES: Final = Counter("instar_rewritten_bytes", "Bytes that maintenance has compacted.")
VACUUMED_BYTES: Final = Counter("instar_vacuumed_bytes", "Bytes that maintenance has deleted.")
