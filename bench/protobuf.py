"""Protobuf into a stream: serialised records beside the same rows read from Parquet, and decoding alone."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

import instar
from bench.frames import session
from bench.measure import Ratio, machine, seconds, warmed
from bench.report import Column, Report, Section
from instar.compat.protobuf.compile import compile_proto
from instar.compat.protobuf.descriptors import fill_pool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["DEFAULT", "FULL", "QUICK", "Plan", "run"]

TEXT: Final = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Event {
  enum Kind { VIEW = 0; CLICK = 1; BUY = 2; }
  message Address { string city = 1; int32 zip = 2; }
  int64 id = 1;
  google.protobuf.Timestamp at = 2;
  string user = 3;
  Kind kind = 4;
  double amount = 5;
  int32 flags = 6;
  string note = 7;
  Address addr = 8;
  repeated string tags = 9;
}
"""


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    rows: int
    rounds: int


DEFAULT = Plan(rows=500_000, rounds=5)
FULL = Plan(rows=4_000_000, rounds=5)
QUICK = Plan(rows=2_000, rounds=1)


def run(plan: Plan, command: str, directory: Path | None) -> Report:
    """Write the same rows in three ways, by turns."""
    spark = session()
    report = Report(command, machine())
    with tempfile.TemporaryDirectory(dir=directory) as folder, instar.open(f"{folder}/lake") as store:
        proto = Path(folder) / "event.proto"
        proto.write_text(TEXT)
        streams = [
            store.create_stream(f"bench/{name}", "at timestamp", time="at", kinds={"regular": "1y"})
            for name in ("records", "rows")
        ]
        for stream in streams:
            stream.evolve_protobuf(proto, "v0.0.2")
        _records(spark, proto, plan.rows).write.parquet(f"{folder}/records")
        records = spark.read.parquet(f"{folder}/records")
        streams[0].write_protobuf(records, "v0.0.2")
        streams[0].read(spark).write.parquet(f"{folder}/rows")
        rows = spark.read.parquet(f"{folder}/rows")
        tokens = count()
        took = warmed(
            "writing",
            {
                "rows from Parquet": lambda: seconds(
                    lambda: streams[1].write(rows, "v0.0.2", token=f"r{next(tokens)}")
                ),
                "records of protobuf": lambda: seconds(
                    lambda: streams[0].write_protobuf(records, "v0.0.2", token=f"p{next(tokens)}")
                ),
            },
            plan.rounds,
        )
    found = [
        {
            "case": name,
            "ratio": Ratio.of(times, took["rows from Parquet"]),
            "rate": plan.rows / median(times),
        }
        for name, times in took.items()
    ]
    columns = {
        "case": Column("written to a stream"),
        "ratio": Column("times rows from Parquet"),
        "rate": Column("rows per second", ",.0f"),
    }
    report.sections.append(Section(f"{plan.rows:,} rows with nine fields into a stream", columns, found))
    return report


def _records(spark: SparkSession, proto: Path, rows: int) -> DataFrame:
    """Return serialised records, made on executors."""
    files = [file.SerializeToString() for file in compile_proto(proto)]

    def make(batches: Iterator[object]) -> Iterator[object]:
        import pyarrow as pa  # noqa: PLC0415 -- on an executor
        from google.protobuf import descriptor_pb2, message_factory  # noqa: PLC0415

        pool = fill_pool(descriptor_pb2.FileDescriptorProto.FromString(file) for file in files)
        kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("Event"))
        for batch in batches:
            values = []
            for at in batch.column(0).to_pylist():  # type: ignore[attr-defined]
                event = kind(
                    id=at,
                    user=f"user{at % 99_991}",
                    kind=at % 3,
                    amount=at / 7,
                    flags=at % 16,
                    note=f"{at:040x}",
                )
                event.at.seconds = 1_767_225_600 + at
                event.addr.city, event.addr.zip = f"city{at % 500}", at % 90_000
                event.tags.extend(["a", f"t{at % 7}"])
                values.append(event.SerializeToString())
            yield pa.RecordBatch.from_arrays([pa.array(values, pa.binary())], ["value"])

    return spark.range(0, rows, numPartitions=8).mapInArrow(make, "value binary")
