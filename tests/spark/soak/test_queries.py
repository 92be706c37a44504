"""A session may run as many queries as it likes: nothing is left of them, here or in the JVM."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from instar.spark.native.callbacks import MOST_IDLE
from soak.footprint import measure
from soak.queries import KINDS, Session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from instar import Store

ALLOWED = {
    "threads": 8,  # connections of Py4J that wait, and what renews leases
    "descriptors": 12,
    "jvm_descriptors": 40,  # jars and files that Spark keeps open once it has needed them
    "jvm_threads": 512,  # four pools of Spark's, which grow to 128 each before they use a thread again
    "leases": 4,  # of the plans that Spark remembers
    "proxies": 20,  # plans that Spark remembers, with their indexes
    "bindings": 200,
    "memory_mb": 40,
    "jvm_memory_mb": 40,
}
"""By how much each may grow between few queries and many, however many."""


@pytest.fixture
def session(spark: SparkSession, store: Store) -> Session:
    """Return tables to query, and views of them."""
    return Session(spark, store)


def test_nothing_grows_with_the_number_of_queries(
    spark: SparkSession, store: Store, session: Session
) -> None:
    """Threads, descriptors, leases, objects and memory are the same after many queries as after few."""
    place = Path(store.location)
    for run in KINDS.values():
        run(session)
    before = measure(spark, place)
    rare = {"write", "format", "cached"}
    often = [kind for kind in KINDS if kind not in rare]
    for at in range(72):
        KINDS[often[at % len(often)]](session)
    grown = measure(spark, place).grown_since(before)
    assert {name: much for name, much in grown.items() if much > ALLOWED[name]} == {}


def test_fifty_queries_at_once_all_end(spark: SparkSession, session: Session) -> None:
    """However many queries run at once, none waits for a connection that another one holds."""
    kinds = [KINDS[name] for name in ("count", "join", "view", "views", "fence")] * 10
    with ThreadPoolExecutor(50) as pool:
        for done in [pool.submit(kind, session) for kind in kinds]:
            done.result(timeout=280)
    gateway: Any = spark.sparkContext._gateway
    server = gateway.get_callback_server()

    def count_open() -> int:
        return sum(connection.socket is not None for connection in list(server.connections))

    end = time.monotonic() + 60
    while count_open() > MOST_IDLE and time.monotonic() < end:
        time.sleep(0.1)
    assert count_open() <= MOST_IDLE
