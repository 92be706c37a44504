"""Lineage: what a schema costs in the old layout and in ours, events per second, reads as versions grow."""

from bench.lineage.run import DEFAULT, FULL, QUICK, run

__all__ = ["DEFAULT", "FULL", "QUICK", "run"]
