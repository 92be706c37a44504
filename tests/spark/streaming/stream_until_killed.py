"""Let a table flow into another, and kill everything at the worst moment, as a power cut would.

usage: stream_until_killed.py STORE CHECKPOINT before|after
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from instar.spark.source.data_source import InstarSource
from instar.spark.source.sink import StreamSink
from instar.spark.source.stream_source import ask_for_changes

if TYPE_CHECKING:
    from pyspark.sql.datasource import WriterCommitMessage
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType


class DoomedSink(StreamSink):
    """A sink that ends with everybody else, before or after it has committed."""

    doom: tuple[str, ...] = ()

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Kill before or after the commit."""
        when, *victims = self.doom
        if when == "after":
            super().commit(messages, batchId)
        for victim in (*victims, str(os.getpid())):
            os.kill(int(victim), signal.SIGKILL)


class DoomedSource(InstarSource):
    """The source `instar`, but for its sink."""

    doom: tuple[str, ...] = ()

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamSink:  # noqa: N802
        """Return a sink that kills."""
        usual = super().streamWriter(schema, overwrite)
        sink = DoomedSink(usual._options, usual._begun)
        sink.doom = self.doom
        return sink


def main(store: str, checkpoint: str, when: str) -> None:
    """Process what there is now, and die of it."""
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    machine = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    DoomedSource.doom = (when, str(machine), str(os.getpid()))
    ask_for_changes()
    spark.dataSource.register(DoomedSource)
    start(spark, store, checkpoint).awaitTermination()


def start(spark: SparkSession, store: str, checkpoint: str) -> StreamingQuery:
    """Let all that there is now flow from one table into another."""
    origin = spark.readStream.format("instar").option("store", store).option("table", "origin").load()
    return (
        origin.select("k", "v")
        .writeStream.format("instar")
        .option("store", store)
        .option("table", "copy")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
