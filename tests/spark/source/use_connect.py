"""Read, write and stream a table as a client of Spark Connect, and meet its errors.

usage: use_connect.py DIRECTORY; prints one JSON value with what happened.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import instar
from instar.errors import InstarError
from instar.spark import register_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from instar import Store, Table

SETTINGS: dict[str, bool | float | int | str | None] = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
}


class Client:
    """One session, one store, and a table with two parts."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.store: Store = instar.open(f"{directory}/lake")
        self.table: Table = self.store.create_table("t", "k int not null, v string")
        for keys in ([1, 2], [3, 4]):
            self.table.append(pa.table({"k": keys, "v": [f"v{key}" for key in keys]}))
        self.spark: SparkSession = SparkSession.builder.remote("local[2]").config(map=SETTINGS).getOrCreate()
        register_source(self.spark)

    def load(self, **options: str) -> DataFrame:
        """Read the table by its format."""
        reader = self.spark.read.format("instar")
        return reader.options(store=self.store.location, table="t", **options).load()

    def save(self, query: str, **options: str) -> None:
        """Write the rows of a query by the format."""
        writer = self.spark.sql(query).write.format("instar").mode("append")
        writer.options(store=self.store.location, table="t", **options).save()

    def stream(self, **options: str) -> list[int | None]:
        """Bring a copy of the table up to date, and return its keys."""
        place = {"store": self.store.location}
        changes = self.spark.readStream.format("instar").option("changes", "true")
        loaded = changes.options(table="t", columns="k", **place, **options).load()
        writer = loaded.writeStream.format("instar")
        writer = writer.option("checkpointLocation", f"{self.directory}/checkpoint")
        query = writer.options(table="copy", apply="true", **place).trigger(availableNow=True).start()
        query.awaitTermination()
        return sorted(self.store.table("copy").snapshot().to_arrow().column("k").to_pylist())


def read(client: Client) -> dict[str, object]:
    """Read with options, and with filters of Spark's."""
    loaded = client.load()
    return {
        "where and columns": sorted(row.v for row in client.load(where="k > 2", columns="v").collect()),
        "one filter": [row.v for row in loaded.where("k = 1").collect()],
        "another filter": [row.v for row in loaded.where("k = 4").collect()],
    }


def write(client: Client) -> dict[str, object]:
    """Write by the format, twice with one token, and by the table."""
    for _ in range(2):
        client.save("select 5 as k, 'v5' as v", token="five")
    appended = client.table.append(client.spark.sql("select 6 as k, 'v6' as v"))
    keys = client.table.snapshot().to_arrow().column("k").to_pylist()
    made = client.store.create_table("made", "id long", data=client.spark.range(3))
    made.append(client.spark.range(3, 5))
    return {
        "appended": appended.rows,
        "keys": sorted(keys),
        "compacted": made.compact(client.spark, full=True).parts_after,
        "made": sorted(made.to_arrow().column("id").to_pylist()),
    }


def stream(client: Client) -> dict[str, object]:
    """Stream changes into a copy, and go on from the checkpoint."""
    client.store.create_table("copy", "k int")
    first = client.stream()
    client.save("select 7 as k, 'v7' as v")
    return {"first": first, "then": client.stream()}


def sql(client: Client) -> dict[str, object]:
    """Run the statements that need no JVM, and one that does."""
    changed = client.store.sql(client.spark, "UPDATE copy SET k = k + :n WHERE k = 1", {"n": 100}).collect()
    client.store.sql(client.spark, "DELETE FROM copy c WHERE c.k < 7")
    keys = client.store.table("copy").snapshot().to_arrow().column("k").to_pylist()
    history = client.store.sql(client.spark, "DESCRIBE HISTORY copy LIMIT 2").collect()
    refused = [outcome(partial(client.store.sql, client.spark, text)) for text in (QUERY, MERGE)]
    return {
        "updates": changed[0].updates,
        "keys": sorted(keys),
        "history": [row.operation.partition(" at ")[0] for row in history],
        "refused": refused,
    }


QUERY = "SELECT * FROM t"
MERGE = "MERGE INTO copy USING s ON copy.k = s.k WHEN MATCHED THEN DELETE"


def fail(client: Client) -> dict[str, object]:
    """Do what is refused, and tell what came of it."""
    late = client.load()
    late.schema  # noqa: B018 -- until somebody asks for something, a client has asked for nothing
    no_table = client.spark.read.format("instar").options(store=client.store.location)
    refused: dict[str, Callable[[], object]] = {
        "no table": lambda: no_table.load().schema,
        "no condition": lambda: client.load(where="k >").collect(),
        "undecided": lambda: client.load(where="soundex(v) = 'V000'").collect(),
        "misfit": lambda: client.save("select cast(null as int) as k, 'x' as v"),
        "table.read": lambda: client.table.read(client.spark),
        "register": lambda: instar.register(client.spark, client.store),
        "delete": lambda: client.table.delete("k = 1", client.spark),
        "merge": lambda: client.table.merge(client.load(), on=["k"]).when_matched_delete().execute(),
    }
    found: dict[str, object] = {name: outcome(call) for name, call in refused.items()}
    client.table.evolve().widen_column("k", "bigint").commit()
    found["fence"] = outcome(late.collect)
    found["fence in a stream"] = outcome(lambda: client.stream(schema="0"))
    return found


def outcome(call: Callable[[], object]) -> list[str]:
    """Return the class of an error, and its message."""
    try:
        call()
    except (PySparkException, InstarError) as error:
        return [type(error).__name__, str(error)]
    return ["nothing", ""]


def main(directory: str) -> None:
    """Do it all in one session, for starting one takes longer than everything else."""
    client = Client(directory)
    seen = {part.__name__: part(client) for part in (read, write, stream, sql, fail)}
    sys.stdout.write(json.dumps(seen) + "\n")
    client.spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
