"""Everything that instar does, on a cluster whose workers share nothing with the driver but the store.

usage: tour.py WHAT, which is JSON; prints one JSON value with what happened.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import SparkSession

import instar
from testbed.spark_cluster import SparkCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import DataFrame

PARTITIONS = 3
ROWS = 300
KEPT = f"k >= {ROWS}"


class Tour:
    """A session on a cluster, a store, and what was seen."""

    def __init__(self, cluster: SparkCluster, spark: SparkSession, given: dict[str, Any]) -> None:
        self.cluster = cluster
        self.spark = spark
        self.place = Path(given["cluster"])
        self.driver = Path(given["driver"])
        self.options: dict[str, str] = given["options"]
        self.consensus: str = given["consensus"]
        self.store = instar.open(given["url"], consensus=self.consensus, options=self.options)
        self.seen: dict[str, Any] = {"shown": ""}

    def rows(self, first: int) -> DataFrame:
        """Make some rows in several tasks."""
        made = self.spark.range(first, first + ROWS, numPartitions=PARTITIONS)
        return made.selectExpr("id as k", "string(id) as v")

    def see(self, what: str, frame: DataFrame) -> None:
        """Remember how many rows and keys there are and their sum, and what plans show."""
        row = frame.selectExpr("count(*)", "count(distinct k)", "sum(k)").first()
        self.seen[what] = list(row or ())
        self.seen["shown"] += frame._jdf.queryExecution().toString()

    def doomed(self, name: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """Return what passes rows on, and kills the worker of the first task that has passed some, once."""
        mark = self.place / f"killed-{name}"

        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield batch
                if first_to_make(mark):
                    executor = parent(os.getppid())
                    worker = parent(executor)
                    os.kill(executor, signal.SIGKILL)
                    os.kill(worker, signal.SIGKILL)

        return run

    def places(self) -> dict[str, str]:
        """Return the options of Spark's format."""
        return {"store": self.store.location, "consensus": self.consensus, **self.options}


def ordinary(tour: Tour) -> None:
    """Append, evolve, read, skip, delete, upsert, listen, audit."""
    table = tour.store.create_table("t", "k bigint, v string", key=["k"], order_by=["k"])
    table.append(tour.rows(0))
    table.evolve().rename_column("v", "name").add_column("n", "int").commit()
    table.append(pa.table({"k": range(ROWS, 2 * ROWS), "n": pa.array([1] * ROWS, pa.int32())}))
    tour.see("read", table.read(tour.spark))
    chosen = table.read(tour.spark).where(KEPT)
    tour.see("skip", chosen)
    tour.seen["parts"] = [(one.read, one.total) for one in instar.scan_reports(chosen)]
    table.delete("k = 1", tour.spark)
    table.upsert(tour.spark.sql("select 2L as k, 'two' as name, 7 as n"))
    instar.register(tour.spark, tour.store)
    view = tour.spark.sql("select count(*), sum(n), max(name) from t").first()
    tour.seen["view"] = list(view or ())
    tour.seen["told"] = next(table.listen(since=0, timeout=60)).rows.num_rows
    tour.see("audit", table.snapshot(skipping="audit").to_spark(tour.spark).where(KEPT))
    tour.seen["compacted"] = table.compact(spark=tour.spark).parts_before


def family(tour: Tour) -> None:
    """Write a stream of tables, and read a range of them."""
    kinds = {"regular": "1d"}
    stream = tour.store.create_stream("s", "at timestamp, k bigint", time="at", kinds=kinds)
    at = "timestamp_seconds(1763164800 + id * 600) as at"
    stream.write(tour.spark.range(0, ROWS, 1, PARTITIONS).selectExpr(at, "id as k"), version="v0.0.1")
    tour.seen["tables"] = len(stream.tables())
    tour.see("range", stream.read(tour.spark, kind="regular"))


def kills(tour: Tour) -> None:
    """Kill a worker in the middle of an append, a read and a batch of a stream."""
    table = tour.store.create_table("u", "k bigint, v string", order_by=["k"])
    table.append(tour.rows(0).mapInArrow(tour.doomed("append"), "k bigint, v string"))
    tour.cluster.add_workers()
    tour.see("appended", table.read(tour.spark))
    frame = table.read(tour.spark).repartition(PARTITIONS)
    tour.see("read under fire", frame.mapInArrow(tour.doomed("read"), "k bigint, v string"))
    tour.cluster.add_workers()
    copy = tour.store.create_table("copy", "k bigint, v string")
    changes = tour.spark.readStream.format("instar").options(table="u", **tour.places()).load()
    spread = changes.select("k", "v").repartition(PARTITIONS)
    query = (
        spread.mapInArrow(tour.doomed("batch"), "k bigint, v string")
        .writeStream.format("instar")
        .options(table="copy", **tour.places())
        .option("checkpointLocation", str(tour.driver / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    tour.seen["shown"] += str(query._jsq.explainInternal(True))
    tour.see("streamed", copy.read(tour.spark))
    tour.seen["killed"] = sorted(path.name for path in tour.place.glob("killed-*"))
    tour.seen["commits"] = [
        len([one for one in each.history() if one.what.startswith("appended")]) for each in (table, copy)
    ]


def first_to_make(mark: Path) -> bool:
    """Make a file, unless somebody has."""
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def parent(pid: int) -> int:
    """Return who started a process: above a worker of Python's is its daemon, and above that the executor."""
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])


def main(given: dict[str, Any]) -> None:
    """Do it all in one session, for starting one takes longer than everything else."""
    logging.getLogger("py4j").setLevel(logging.ERROR)
    workers = {"AWS_ACCESS_KEY_ID": "of-the-workers", "AWS_SECRET_ACCESS_KEY": "of-the-workers"}
    place, driver = Path(given["cluster"]), Path(given["driver"])
    hidden = driver if given["hide"] else None
    with SparkCluster(place, 2, hidden=hidden, environment=workers) as cluster:
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            "spark.executor.memory": "512m",
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),
            "spark.sql.warehouse.dir": str(driver / "warehouse"),
            **given["settings"],
        }
        builder = SparkSession.builder.master(cluster.url)
        for name, value in settings.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        tour = Tour(cluster, spark, given)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for part in (ordinary, family, kills):
                part(tour)
        tour.seen["warnings"] = [str(one.message) for one in told if "file system" in str(one.message)]
        sys.stdout.write(json.dumps(tour.seen) + "\n")
        spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
