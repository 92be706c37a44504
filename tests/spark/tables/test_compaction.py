"""Compaction by executors: the same rows for Spark before, after and meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from instar import Store


def test_executors_rewrite_parts_and_no_query_notices(spark: SparkSession, store: Store) -> None:
    """Parts of three schemas become one run; frames made before and after give the same rows."""
    table = store.create_table("t", "a bigint, b string, c int", order_by=["b", "a"])
    for part in range(6):
        if part == 2:
            table.evolve().widen_column("c", "bigint").commit()
        if part == 4:
            table.evolve().rename_column("a", "id").add_column("d", "double").commit()
        table.append(
            pa.table(
                {
                    ("id" if part > 3 else "a"): range(part, 40, 3),
                    "b": [f"k{n % 4}" for n in range(part, 40, 3)],
                }
            )
        )
    before = table.read(spark)
    expected = sorted(map(str, before.collect()))
    report = table.compact(spark)
    assert (report.parts_before, report.parts_after) == (6, 1)
    assert sorted(map(str, before.collect())) == expected
    assert sorted(map(str, table.read(spark).collect())) == expected
    rows = table.snapshot().to_arrow().to_pylist()
    assert [(row["b"], row["id"]) for row in rows] == sorted((row["b"], row["id"]) for row in rows)
    assert table.explain("b = 'k9'").read == 0


@pytest.mark.native
def test_what_spark_asked_last_is_known(spark: SparkSession, store: Store) -> None:
    """As Spark has simplified it."""
    table = store.create_table("t", "a bigint, b string, at timestamp")
    for n in range(3):
        table.append(pa.table({"a": [n], "b": [f"it's {n}"]}))
    for asked in ("b = 'it\\'s 1'", "a > 1", "at > '2026-11-15 10:00:00+01:00'"):
        table.read(spark).where(asked).collect()
    told = {one.filter: (one.read_before, one.total_before) for one in table.forecast()}
    assert sorted(told.values()) == [(0, 3), (1, 3), (1, 3)], told
