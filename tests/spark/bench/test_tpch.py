"""`bench tpch` runs from end to end; what it measures is nobody's business here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench.tpch import QUICK, run

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.timeout(900)  # 44 queries, each of which is translated anew
def test_all_queries_answer_as_over_plain_parquet(spark: SparkSession, tmp_path: Path) -> None:
    """Tables with renamed, dropped, widened and added columns answer TPC-H as plain Parquet does."""
    report = run(QUICK, "./dev bench tpch --quick", tmp_path)
    assert list(tmp_path.iterdir()) == []
    for section in report.sections:
        assert [row["query"] for row in section.rows] == [f"q{number:02d}" for number in range(1, 23)]
        assert sum(row["rows"] > 0 for row in section.rows) > 10
    if report.skipped:
        assert "tpchgen-cli" in report.skipped[0]
