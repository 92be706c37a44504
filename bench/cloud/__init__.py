"""`bench cloud`: requests to an object store, beside the peers, and reading one on Spark."""

from bench.cloud.run import DEFAULT, FULL, QUICK, Plan, run

__all__ = ["DEFAULT", "FULL", "QUICK", "Plan", "run"]
