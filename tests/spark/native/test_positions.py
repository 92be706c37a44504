"""Positions of rows are counted, and are those that Spark's own reader tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

from instar.spark.native.gateway import gateway_of
from instar.spark.native.positions import position_format
from instar.spark.native.taken import ROW_INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from instar import Store

pytestmark = pytest.mark.spark

ROWS = 50_000


@pytest.mark.parametrize(
    "condition", ["true", "n between 17000 and 17100", "n % 1000 = 7", "n in (3, 29999, 30000)", "m = 5"]
)
def test_positions_are_those_of_the_file(spark: SparkSession, tmp_path: Path, condition: str) -> None:
    """A row has the same position whichever row groups and pages are not read."""
    ids = np.arange(ROWS)
    path = str(tmp_path / "numbers.parquet")
    table = pa.table({"n": ids, "m": ids // 5000})
    pq.write_table(table, path, row_group_size=20_000, data_page_size=4096, write_page_index=True)
    gateway = gateway_of(spark)
    plain = spark.read.parquet(path)._jdf.queryExecution().analyzed().relation()
    relation = gateway.relation(
        plain.location(),
        plain.partitionSchema(),
        plain.dataSchema().add(ROW_INDEX, "long"),
        gateway.none(),
        position_format(gateway),
        plain.options(),
        gateway.session,
    )
    frame = DataFrame(gateway.session.baseRelationToDataFrame(relation), spark).where(condition)
    wanted = spark.createDataFrame([(int(n), int(n) // 5000) for n in ids], "n long, m long").where(condition)
    assert [(row.n, row[ROW_INDEX]) for row in frame.select("n", ROW_INDEX).sort("n").collect()] == [
        (row.n, row.n) for row in wanted.sort("n").collect()
    ]


def test_tables_with_retracted_rows_are_read_so(spark: SparkSession, store: Store) -> None:
    """Rows that were deleted are left out with counted positions."""
    table = store.create_table("numbers", "n bigint")
    table.append(pa.table({"n": np.arange(100)}))
    table.delete("n % 10 = 3")
    frame = table.read(spark).where("n < 50")
    plan = frame._jdf.queryExecution().optimizedPlan()
    leaf = plan.collectLeaves().apply(0)
    assert leaf.relation().fileFormat().getClass().getSimpleName() == "PositionFormat"
    assert sorted(row.n for row in frame.collect()) == [n for n in range(50) if n % 10 != 3]
