"""The benchmark of compaction runs, and measures what it says; what needs Spark is left to `--quick`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.compact import QUICK
from bench.compact.layouts import amplification, opened
from bench.compact.lookups import lookups
from bench.compact.throughput import schemas
from bench.report import Report

if TYPE_CHECKING:
    from pathlib import Path


def test_the_benchmark_of_compaction_runs(tmp_path: Path) -> None:
    """Each question has an answer for each case."""
    report = Report("./dev bench compact --quick", {})
    many = schemas(QUICK.rows, QUICK.parts, QUICK.rounds, tmp_path)
    assert [row["schemas"] for row in many.rows] == [1, 20]
    written = amplification(QUICK.appends, tmp_path)
    assert written.rows[0]["written"] == 1
    curve = opened(QUICK.rows, tmp_path)
    assert curve.rows[2]["ratio_b"] < curve.rows[0]["ratio_b"]
    found = lookups(QUICK.looked_up, QUICK.rounds, tmp_path, report)
    assert {row["case"] for row in found.rows} >= {"lookup", "upsert"}
