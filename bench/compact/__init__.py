"""Compaction: what it costs, what queries gain by it, and what lookups and upserts take as parts grow."""

from bench.compact.plan import DEFAULT, FULL, QUICK, Plan, run

__all__ = ["DEFAULT", "FULL", "QUICK", "Plan", "run"]
