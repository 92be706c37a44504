"""The whole tour on a store at `s3://`, with executors that are processes of their own.

usage: run_on_s3.py URL OPTIONS; OPTIONS is JSON, and prints one JSON value with what happened.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import instar


def main(url: str, options: dict[str, str]) -> None:
    """Do it all in one session, for starting one takes longer than everything else."""
    builder = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.executor.memory", "512m")
        .config("spark.executorEnv.PYTHONPATH", os.pathsep.join(sys.path))
    )
    spark = builder.getOrCreate()
    seen: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        tour(spark, instar.open(url, options=options), seen)
    seen["warnings"] = [str(one.message) for one in told if "file system" in str(one.message)]
    sys.stdout.write(json.dumps(seen) + "\n")
    spark.stop()


def tour(spark: SparkSession, store: instar.Store, seen: dict[str, Any]) -> None:
    """Append, evolve, read, skip, delete, upsert, listen and query."""
    table = store.create_table("t", "id bigint, s string", key=["id"], order_by=["id"])
    table.append(pa.table({"id": range(100), "s": [f"a{n}" for n in range(100)]}))
    table.append(spark.range(100, 200).selectExpr("id", "concat('a', id) as s"))
    table.evolve().rename_column("s", "name").add_column("n", "int").commit()
    frame = table.read(spark)
    seen["rows"] = [tuple(row) for row in frame.selectExpr("count(*)", "sum(id)", "max(name)").collect()]
    chosen = frame.where("id >= 150")
    seen["chosen"] = chosen.count()
    seen["plan"] = chosen._jdf.queryExecution().toString()
    try:
        table.delete("id = 7", spark)
    except instar.errors.FileSystemMissingError as error:
        seen["delete"] = str(error)
    table.delete("id = 7")
    table.upsert(pa.table({"id": [8], "name": ["changed"], "n": pa.array([1], pa.int32())}))
    instar.register(spark, store)
    seen["view"] = [tuple(row) for row in spark.sql("select count(*), sum(n) from t").collect()]
    seen["changes"] = next(table.listen(since=0, timeout=10)).rows.num_rows


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
