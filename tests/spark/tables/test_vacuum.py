"""Spark's queries and a vacuum: what a frame needs stays until the frame is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pytest

import instar
from instar.errors import LeaseExpiredError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from instar import Store

pytestmark = pytest.mark.spark


@pytest.mark.directory
def test_a_frame_outlives_compaction_and_vacuum(store: Store, spark: SparkSession, tmp_path: Path) -> None:
    """Rows are those of the snapshot, by either way of reading; once the lease has expired, it says so."""
    table = store.create_table("t", "n bigint", order_by=["n"])
    for n in range(4):
        table.append(pa.table({"n": [n, n + 10]}))
    frame = table.read(spark)
    instar.register(spark, store)
    workers = spark.read.format("instar").options(store=store.location, table="t").load()
    assert workers.count() == 8
    table.delete("n = 3")
    table.compact(full=True)
    table.vacuum(grace_ms=0)
    assert sorted(row.n for row in frame.collect()) == [0, 1, 2, 3, 10, 11, 12, 13]
    assert sorted(row.n for row in workers.collect()) == [0, 1, 2, 3, 10, 11, 12, 13]
    leases = table._services.leases
    for lease_id, lease in leases._held.items():
        leases._held[lease_id] = msgspec.structs.replace(lease, expires_at=0)
    for path in tmp_path.rglob("leases/*"):
        path.unlink()
    table.vacuum(grace_ms=0)
    with pytest.raises(LeaseExpiredError):
        frame.where("n > 1").collect()
    assert sorted(row.n for row in table.read(spark).collect()) == [0, 1, 2, 10, 11, 12, 13]
