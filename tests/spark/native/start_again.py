"""A process that starts Spark several times, and says each time how it reads a table and what it deletes."""

from __future__ import annotations

import json
import sys

import pyarrow as pa
from pyspark.sql import SparkSession

import instar

_ISOLATED = {"spark.sql.artifact.isolation.enabled": "true"}


def main(lake: str) -> None:
    """Print a line of JSON for each start."""
    with instar.open(lake) as store:
        table = store.create_table("numbers", "n bigint")
        table.append(pa.table({"n": pa.array(range(100), pa.int64())}))
        table.delete("n % 10 = 3")
        for digit, settings in enumerate(({}, {}, _ISOLATED)):
            builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
            spark = builder.config(map={**settings}).getOrCreate()
            frame = table.read(spark)
            planned = "BatchScan" in frame._jdf.queryExecution().toString()
            found = frame.count(), len(frame.collect()), table.delete(f"n % 10 = {digit}", spark).rows
            sys.stdout.write(f"{json.dumps([planned, *found])}\n")
            spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
