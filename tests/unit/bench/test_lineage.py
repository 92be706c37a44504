"""The benchmark of lineage runs, and measures what it says."""

from __future__ import annotations

from bench.lineage import QUICK, run


def test_the_benchmark_of_lineage_runs() -> None:
    """Each question has an answer for each database, and a schema is kept once."""
    report = run(QUICK, "./dev bench lineage --quick")
    layout, rates, growth, backfill = (section.rows for section in report.sections)
    assert [(row["old_rows"], row["new_rows"]) for row in layout][::2] == [(60, 20), (60, 20)]
    assert {row["database"] for row in rates} == {"SQLite", "PostgreSQL"}
    assert len(growth) == 8
    assert {row["what"] for row in backfill} == {"GET dataset", "POST event"}
