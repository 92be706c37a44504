"""Schema changes under a running stream: every row arrives once, whatever else changes.

One table is written to and evolved while a stream carries one of its columns into another table. The stream
is stopped and started again from its checkpoint, and its source loses the columns that it does not read.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import instar

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from instar import Store
    from soak.turns import Turn

__all__ = ["run_streams"]

_STEPS = 12


def run_streams(spark: SparkSession, place: Path, turns: Iterable[Turn]) -> Counter[str]:
    """Evolve tables under streams, and return what was done how often."""
    done: Counter[str] = Counter()
    with instar.open(place / "lake") as store:
        store.initialise()
        instar.register(spark, store)
        for at, turn in enumerate(turns):
            done.update(_evolve_under(spark, store, place / f"checkpoint{at}", f"t{at}", turn))
    return done


def _start(spark: SparkSession, store: Store, checkpoint: Path, name: str) -> Any:  # noqa: ANN401 -- a query
    options = {"store": store.location}
    reader = spark.readStream.format("instar").options(**options, table=name, columns="k")
    writer = reader.load().select("k").writeStream.format("instar").options(**options, table=f"{name}-copy")
    return writer.option("checkpointLocation", str(checkpoint)).start()


def _evolve_under(spark: SparkSession, store: Store, checkpoint: Path, name: str, turn: Turn) -> Counter[str]:
    draw, done = turn.random, Counter[str]()
    source = store.create_table(name, "k bigint, v string")
    copy = store.create_table(f"{name}-copy", "k bigint")
    source.append(pa.table({"k": [-1]}))
    query = _start(spark, store, checkpoint, name)
    try:
        for number in range(_STEPS):
            free = [column for column in source.schema.names if column != "k"]
            match draw.choice(["append", "append", "append", "add", "rename", "drop", "restart", "wait"]):
                case "append":
                    source.append(pa.table({"k": [number] * draw.randint(1, 3)}))
                    done["append"] += 1
                case "add":
                    source.evolve().add_column(f"c{number}", draw.choice(["int", "struct<a: int>"])).commit()
                    done["add"] += 1
                case "rename" if free:
                    source.evolve().rename_column(draw.choice(free), f"r{number}").commit()
                    done["rename"] += 1
                case "drop" if free:
                    source.evolve().drop_column(draw.choice(free)).commit()
                    done["drop"] += 1
                case "restart":
                    query.stop()
                    query = _start(spark, store, checkpoint, name)
                    done["restart"] += 1
                case "wait":
                    query.processAllAvailable()
                    done["wait"] += 1
        query.processAllAvailable()
    finally:
        query.stop()
    wanted, found = (
        Counter(table.snapshot().to_arrow(columns=["k"])["k"].to_pylist()) for table in (source, copy)
    )
    assert found == wanted, f"turn {turn.name}: {found - wanted} too many, {wanted - found} missing"
    return done
