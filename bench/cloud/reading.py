"""How fast does Spark read a table on S3? By S3A beside plain Parquet, and by Python workers without it."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final

import instar
from bench.frames import DDL, ROW_BYTES, drain, events, two_columns
from bench.measure import Ratio, timing, warmed
from bench.report import Column, Section
from instar.spark.session import local_session
from instar.spark.source.worker_frame import worker_frame
from instar.storage import open_blob
from instar.table import open_services
from instar.table.log.tables import open_log
from instar.table.read.snapshot import plan_snapshot, resolve_reader
from testbed.s3a import s3a_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from instar import Table
    from testbed.servers import S3Server

__all__ = ["measure_reading"]

_COLUMNS: Final = {
    "case": Column("case"),
    "ratio": Column("times plain Parquet"),
    "seconds": Column("seconds", ".2f"),
    "base": Column("plain, seconds", ".2f"),
}


def measure_reading(server: S3Server, megabytes: int, rounds: int) -> Section:
    """Write a table to S3, and read it in three ways by turns."""
    settings = {"spark.sql.session.timeZone": "UTC", "spark.driver.memory": "4g", **s3a_settings()}
    spark = local_session("instar bench", settings)
    url = server.url()
    with instar.open(url, options=server.options) as store:
        table = store.create_table("events", DDL)
        table.append(events(spark, megabytes * 1_000_000 // ROW_BYTES))
        paths = table.read(spark).inputFiles()
        assert all(path.startswith("s3a://") for path in paths), "Spark has no S3A"
        rows = []
        for name, read in {"all columns": drain, "two columns": two_columns}.items():
            took = warmed(
                f"reading {name}",
                {
                    "s3a": timing(_ours, read, table, spark),
                    "plain": timing(_plain, read, table, spark, paths),
                    "workers": timing(_workers, read, server, url, spark),
                },
                rounds,
            )
            rows += [
                {
                    "case": f"{name}, {how}",
                    "ratio": Ratio.of(took[way], took["plain"]),
                    "seconds": median(took[way]),
                    "base": median(took["plain"]),
                }
                for how, way in {"by S3A": "s3a", "by Python workers": "workers"}.items()
            ]
        size = f"{table.state.totals.bytes / 1e9:.2f} GB in {table.state.totals.parts} parts"
    return Section(f"Reading a table on S3 beside spark.read.parquet of its objects, {size}", _COLUMNS, rows)


def _ours(read: Callable[[DataFrame], None], table: Table, spark: SparkSession) -> None:
    read(table.read(spark))


def _plain(read: Callable[[DataFrame], None], table: Table, spark: SparkSession, paths: list[str]) -> None:
    frame = spark.read.parquet(*paths)
    read(frame.selectExpr(*(f"f{field.id} as `{field.name}`" for field in table.schema.fields)))


def _workers(read: Callable[[DataFrame], None], server: S3Server, url: str, spark: SparkSession) -> None:
    """Read as a session does that has no file system for S3."""
    services, _ = open_services(url, options=server.options)
    state = open_log(services, "events").load()
    plan = plan_snapshot(services.chunks, state, resolve_reader(state, None, None), None)
    read(worker_frame(spark, open_blob(url, server.options), [plan], plan.reader.schema))
    services.close()
