"""The parts of `bench skipping` that need Spark run; what they measure is nobody's business here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.skipping.queries import make_events, measure_everything, measure_selective

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_queries_give_the_same_rows_as_plain_parquet(spark: SparkSession, tmp_path: Path) -> None:
    """A selective query reads one or two of the parts, and one that needs everything reads every row."""
    made = make_events(spark, tmp_path, rows=40_000, parts=4)
    selective = measure_selective(made, rounds=1)
    assert {row["read"] for row in selective.rows} <= {1, 2}
    everything = measure_everything(made, rounds=1)
    assert [row["skipping"] for row in everything.rows] == ["off", "on", "on again"]
