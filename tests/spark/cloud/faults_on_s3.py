"""Faults between Spark and a store on S3: each is met by an append, a read by S3A and one by Python workers.

usage: faults_on_s3.py URL OPTIONS SETTINGS; the last two are JSON. Prints one JSON value with what happened.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

import instar
from instar.spark.source.worker_frame import worker_frame
from instar.storage import open_blob
from instar.table import open_services
from instar.table.log.tables import open_log
from instar.table.read.snapshot import plan_snapshot, resolve_reader
from testbed.s3_proxy import Fault, S3Proxy

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from testbed.s3_proxy import Request

ROWS = 200


class Spoiler:
    """Spoils the first requests for parts, or all of them."""

    def __init__(self, fault: Fault, count: int | None) -> None:
        self._fault = fault
        self._left = count
        self._lock = threading.Lock()
        self.met = 0

    def __call__(self, request: Request) -> Fault | None:
        """Decide."""
        wanted = request.kind in {"GET", "PUT"} and "/parts/" in request.key
        if not wanted or (self._fault is Fault.TRUNCATED and request.kind != "GET"):
            return None
        with self._lock:
            if self._left == 0:
                return None
            self._left = None if self._left is None else self._left - 1
            self.met += 1
        return self._fault


def main(url: str, options: dict[str, str], settings: dict[str, str]) -> None:
    """Do it all in one session, for starting one takes longer than everything else."""
    logging.getLogger("py4j").setLevel(logging.ERROR)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.driver.host", "127.0.0.1")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    seen: dict[str, Any] = {}
    with S3Proxy(options["AWS_ENDPOINT_URL"]) as proxy:
        given = {**options, "AWS_ENDPOINT_URL": proxy.endpoint}
        table = instar.open(url, options=given).create_table("t", "k bigint, v string", order_by=["k"])
        table.append(rows(spark, 0))

        def workers() -> DataFrame:
            services, _ = open_services(url, options=given)
            state = open_log(services, "t").load()
            plan = plan_snapshot(services.chunks, state, resolve_reader(state, None, None), None)
            return worker_frame(spark, open_blob(url, given), [plan], plan.reader.schema)

        ways: dict[str, Callable[[], object]] = {
            "append": lambda: table.append(rows(spark, table.count())).rows,
            "s3a": lambda: summary(table.read(spark)) == [table.count(), table.count()],
            "workers": lambda: summary(workers()) == [table.count(), table.count()],
        }
        for fault, count in (
            (Fault.SLOW_DOWN, 2),
            (Fault.RESET, 1),
            (Fault.TRUNCATED, 1),
            (Fault.EXPIRED, None),
        ):
            for way, do in ways.items():
                spoiler = proxy.spoil = Spoiler(fault, count)
                seen[f"{fault.name} {way}"] = [met(do), spoiler.met > 0]
        proxy.spoil = lambda _: None
        seen["in the end"] = [*summary(table.read(spark)), table.count()]
    sys.stdout.write(json.dumps(seen) + "\n")
    spark.stop()


def met(do: Callable[[], object]) -> object:
    """Do something, and return what came of it: for an error its class, and what it says at first."""
    try:
        return do()
    except Exception as error:  # noqa: BLE001 -- whatever it is
        found = re.search(r"(?:ExpiredToken|token has expired)", str(error))
        return [type(error).__name__, found[0] if found else str(error)[:300]]


def rows(spark: SparkSession, first: int) -> DataFrame:
    """Make some rows in two tasks."""
    return spark.range(first, first + ROWS, 1, 2).selectExpr("id as k", "string(id) as v")


def summary(frame: DataFrame) -> list[int]:
    """Return how many rows and keys there are."""
    return list(frame.selectExpr("count(v)", "count(distinct k)").first() or ())


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3]))
