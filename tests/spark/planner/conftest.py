"""What the tests of planned scans share: a session that plans them, and a table with a history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from instar import Store, Table


@pytest.fixture
def planned(spark: SparkSession) -> Iterator[SparkSession]:
    """Return the session, which plans scans of tables."""
    before = spark.conf.get("instar.planner", "auto")
    spark.conf.set("instar.planner", "auto")
    yield spark
    spark.conf.set("instar.planner", str(before))


@pytest.fixture
def events(store: Store) -> Table:
    """Return a table of six parts: the last has a column more, a wider one, and one by another name."""
    table = store.create_table(
        "events", "k int, v string, s struct<a int, f1 string, l array<struct<x int, y int>>>"
    )
    for number in range(5):
        nested = {"a": number, "f1": "x", "l": [{"x": number, "y": -number}]}
        rows = {"k": pa.array([2 * number, 2 * number + 1], pa.int32()), "v": [f"v{number}", None]}
        table.append(pa.table({**rows, "s": [nested, None]}))
    table.evolve().widen_column("k", "bigint").rename_column("v", "w").add_column("z", "double").commit()
    nested = {"a": 9, "f1": "y", "l": None}
    table.append(pa.table({"k": pa.array([100], pa.int64()), "w": ["n"], "s": [nested], "z": [0.5]}))
    return table
