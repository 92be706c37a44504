"""TPC-H on Spark: tables with a history of schemas beside plain Parquet."""

from bench.tpch.run import DEFAULT, FULL, QUICK, Plan, run

__all__ = ["DEFAULT", "FULL", "QUICK", "Plan", "run"]
