"""Append and query on executors that are processes of their own, and kill them in the middle of an append.

usage: run_on_cluster.py STORE; prints one JSON value with what happened.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql import SparkSession

import instar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame

PARTITIONS = 4
ROWS = 1000


def main(location: str) -> None:
    """Do it all in one session, for starting one takes longer than everything else."""
    spark = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.executor.memory", "512m")
        .config("spark.executorEnv.PYTHONPATH", os.pathsep.join(sys.path))
        .config("spark.task.maxFailures", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    store = instar.open(location)
    table = store.create_table("t", "k bigint, v string", order_by=["k"])
    seen: dict[str, object] = {}
    table.append(rows(spark, 0))
    table.delete("k = 1", spark)
    instar.register(spark, store)
    seen["appended"] = summary(spark)
    table.append(rows(spark, ROWS).mapInArrow(kill_first_attempt, "k bigint, v string"))
    seen["killed once"] = summary(spark)
    try:
        table.append(rows(spark, 2 * ROWS).mapInArrow(kill_every_attempt, "k bigint, v string"))
    except Exception as error:  # noqa: BLE001 -- whatever Spark makes of it
        seen["killed always"] = type(error).__name__
    seen["in the end"] = summary(spark)
    seen["commits"] = len(
        [commit for commit in table.history() if commit.what.startswith(("appended", "retracted", "changed"))]
    )
    sys.stdout.write(json.dumps(seen) + "\n")
    spark.stop()


def rows(spark: SparkSession, first: int) -> DataFrame:
    """Make some rows in several tasks."""
    return spark.range(first, first + ROWS, numPartitions=PARTITIONS).selectExpr("id as k", "string(id) as v")


def summary(spark: SparkSession) -> list[int]:
    """Return how many rows and keys there are, and their sum."""
    return list(spark.sql("select count(*), count(distinct k), sum(k) from t").first() or ())


def kill_first_attempt(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass rows on; the first attempt of one task ends its executor after some."""
    yield from doomed(batches, attempts=1)


def kill_every_attempt(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass rows on; every attempt of one task ends its executor after some."""
    yield from doomed(batches, attempts=100)


def doomed(batches: Iterable[pa.RecordBatch], attempts: int) -> Iterator[pa.RecordBatch]:
    """Pass rows on, then kill the JVM above this worker."""
    context = TaskContext.get()
    assert context is not None
    for batch in batches:
        yield batch
        if context.partitionId() == PARTITIONS - 1 and context.attemptNumber() < attempts:
            os.kill(parent(os.getppid()), signal.SIGKILL)


def parent(pid: int) -> int:
    """Return who started a process: above a worker is its daemon, and above that the executor."""
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])


if __name__ == "__main__":
    main(sys.argv[1])
