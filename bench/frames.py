"""Rows for benchmarks on Spark: a frame of events of about a wanted size, and the ways to read it all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from instar.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["DDL", "ROW_BYTES", "drain", "events", "plan_tasks", "session", "two_columns"]

DDL: Final = """
    id bigint, at timestamp, user string, kind string, amount double, score double, flags int,
    note string, addr struct<city: string, zip: int>
"""
ROW_BYTES: Final = 45
"""What a row of these takes in a zstd-compressed Parquet file, roughly."""


def session() -> SparkSession:
    """Return a session with UTC, since peers have no other zone, and room for a gigabyte."""
    return local_session("instar bench", {"spark.sql.session.timeZone": "UTC", "spark.driver.memory": "4g"})


def events(spark: SparkSession, rows: int, start: int = 0, tasks: int = 8) -> DataFrame:
    """Return events in the order of time, with values that do not compress away."""
    return spark.range(start, start + rows, numPartitions=tasks).selectExpr(
        "id",
        "timestamp'2026-01-01' + make_dt_interval(0, 0, 0, id) at",
        "concat('user', hash(id) % 100000) user",
        "element_at(array('view', 'click', 'buy'), cast(id % 3 as int) + 1) kind",
        "pmod(hash(id, 1), 1000000) / 100 amount",
        "rand(7) score",
        "cast(id % 16 as int) flags",
        "substring(sha2(cast(id as string), 256), 1, 40) note",
        "named_struct('city', concat('city', id % 500), 'zip', cast(id % 90000 as int)) addr",
    )


def drain(frame: DataFrame) -> None:
    """Read every column of every row, and throw it away."""
    frame.write.format("noop").mode("overwrite").save()


def two_columns(frame: DataFrame) -> None:
    """Read two columns of every row."""
    frame.selectExpr("sum(amount)", "max(flags)").collect()


def plan_tasks(frame: DataFrame) -> int:
    """Plan a query as far as its tasks, and run none."""
    return int(frame._jdf.queryExecution().toRdd().getNumPartitions())  # noqa: SLF001 -- nothing public plans only
