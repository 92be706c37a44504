"""Records of protobuf in a DataFrame are decoded on executors as in process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2

from instar.compat.protobuf.decode import Decoder
from instar.compat.protobuf.model import Encoding
from instar.errors import UsageError
from instar.schema.ddl import parse_schema_ddl
from instar.spark.stream import records as records_module
from instar.spark.stream.write import Routing
from instar.stream.kinds import Kind
from instar.stream.period import parse_period
from tests.protos import compile_files, message_class, with_imports

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from instar import Store

TEXT = """
syntax = "proto3";
package t;
import "google/protobuf/duration.proto";
import "google/protobuf/timestamp.proto";
message Event {
  enum Colour { NONE = 0; RED = 1; }
  message Point { int32 x = 1; optional uint64 y = 2; }
  string name = 1;
  google.protobuf.Timestamp at = 2;
  google.protobuf.Duration took = 3;
  repeated Point points = 4;
  map<string, Point> named = 5;
  oneof choice { bytes raw = 6; Colour colour = 7; }
}
"""


def test_a_frame_is_decoded_as_in_process(spark: SparkSession, tmp_path: Path, store: Store) -> None:
    """Rows, and what is kept of records and why, are the same as without Spark, at every level of nesting."""
    files = compile_files(tmp_path / "src", {"t.proto": TEXT})
    kind = message_class(files, "t.proto", "Event")
    records: list[bytes | None] = []
    for at in range(20):
        record = kind(
            name=f"n{at}", points=[{"x": at}, {"y": 2**64 - 1}], named={"k": {"x": 1}}, colour=at % 3
        )
        record.at.seconds, record.took.seconds = 1_700_000_000 + at * 10_000, at
        records.append(bytes(record.SerializeToString()))
    records[3], records[5], records[7] = b"\xff", None, (records[7] or b"") + b"\xf8\x01\x01"
    frame = spark.createDataFrame([(record,) for record in records], "value binary").repartition(3)
    found = []
    for name, data in (("t/frame", frame), ("t/process", records)):
        stream = store.create_stream(name, "at timestamp", time="at")
        stream.evolve_protobuf(tmp_path / "src" / "t.proto", "v0.0.2")
        done = stream.write_protobuf(data, "v0.0.2")
        assert (done.rows, done.quarantined, done.unknown) == (18, 2, 1)
        kept = store.table(f"{name}-quarantine").snapshot().to_arrow().drop_columns("at").to_pylist()
        rows = stream.snapshot().to_arrow().sort_by("at")
        tables = [(table.start, table.rows) for table in stream.tables()]
        found.append((rows, tables, sorted(kept, key=str)))
    assert found[0] == found[1]
    with pytest.raises(UsageError, match="binary columns are: value"):
        stream.write_protobuf(frame, "v0.0.2", column="other")


def test_rows_are_packed_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However large rows are, none of what Spark moves in one piece is: each row is in one piece, once."""
    files = compile_files(tmp_path / "src", {"t.proto": TEXT})
    kind = message_class(files, "t.proto", "Event")
    encoding = Encoding(
        descriptor_pb2.FileDescriptorSet(file=with_imports(files, "t.proto")).SerializeToString(), "t.Event"
    )
    given = pa.array([bytes(kind(name="x" * at).SerializeToString()) for at in range(100)] + [b"\xff"])
    decoded = Decoder(encoding).decode(given)
    schema = parse_schema_ddl("at timestamp")
    routing = Routing(schema, 0, {Kind.REGULAR: parse_period("1d")}, 0)
    monkeypatch.setattr(records_module, "_CHUNK_BYTES", 2_000)
    pieces = pa.Table.from_batches(list(records_module.pack(given, decoded, "v0.0.1", routing)))
    assert pieces.num_rows > 3
    assert pa.Table.from_batches(list(records_module.unpack(pieces.select(["chunk"]).to_batches()))).equals(
        pa.Table.from_batches([decoded.rows])
    )
    assert [sum(pieces[name].to_pylist()) for name in ("rows", "rejected", "unknown")] == [100, 1, 0]
    assert pieces["kept"].null_count == pieces.num_rows - 1
    monkeypatch.setattr(records_module, "_CHUNK_BYTES", 1)
    assert pa.Table.from_batches(list(records_module.pack(given, decoded, "v0.0.1", routing))).num_rows == 100
    nothing = Decoder(encoding).decode([b"\xff"])
    [alone] = records_module.pack(given[-1:], nothing, "v0.0.1", routing)
    assert alone["rejected"].to_pylist() == [1]


def test_a_frame_of_records_becomes_rows_of_a_stream(
    spark: SparkSession, tmp_path: Path, store: Store
) -> None:
    """Records are rows, what is broken is kept, and a token makes calling again do nothing."""
    files = compile_files(tmp_path / "src", {"t.proto": TEXT})
    kind = message_class(files, "t.proto", "Event")
    stream = store.create_stream("t/events", "at timestamp", time="at")
    stream.evolve_protobuf(tmp_path / "src" / "t.proto", "v0.0.2")
    records = []
    for at in range(10):
        record = kind(name=f"n{at}", points=[{"x": at}])
        record.at.seconds = 1_700_000_000 + at * 40_000
        records.append((bytes(record.SerializeToString()),))
    frame = spark.createDataFrame([*records, (b"\xff",), (None,)], "value binary")
    for _ in range(2):
        done = stream.write_protobuf(frame, "v0.0.2", token="once")
        assert (done.rows, done.quarantined, done.unknown) == (10, 2, 0)
    rows = stream.snapshot().to_arrow().sort_by("at").to_pylist()
    assert [row["name"] for row in rows] == [f"n{at}" for at in range(10)]
    assert [row["points"][0]["x"] for row in rows] == list(range(10))
    kept = store.table("t/events-quarantine").snapshot().to_arrow().to_pylist()
    assert sorted((row["record"] or b"", row["stored"]) for row in kept) == [(b"", False), (b"\xff", False)]
    assert len(stream.tables("regular")) > 1
    newer = (records[0][0] + b"\x98\x06\x01",)
    frame = spark.createDataFrame([newer, (b"\xff",)], "value binary")
    done = stream.write_protobuf(frame, "v0.0.2", unknown="count")
    assert (done.rows, done.quarantined, done.unknown) == (1, 1, 1)
    assert store.table("t/events-quarantine").count() == 3


def test_a_streaming_query_of_records_writes_every_batch_once(
    spark: SparkSession, tmp_path: Path, store: Store
) -> None:
    """A batch that is repeated, because its query died before it could note that, changes nothing."""
    files = compile_files(tmp_path / "src", {"t.proto": TEXT})
    kind = message_class(files, "t.proto", "Event")
    stream = store.create_stream("t/live", "at timestamp", time="at")
    stream.evolve_protobuf(tmp_path / "src" / "t.proto", "v0.0.2")

    def run(sink: object) -> None:
        frame = spark.readStream.schema("value binary").parquet(str(tmp_path / "in"))
        query = frame.writeStream.foreachBatch(sink)  # type: ignore[arg-type]
        query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(
            availableNow=True
        ).start().awaitTermination()

    def die_after(batch: DataFrame, number: int) -> None:
        stream.sink_protobuf("v0.0.2")(batch, number)
        raise RuntimeError("the query dies")

    rows = [(bytes(kind(name=f"n{at}", at={"seconds": at * 86_400}).SerializeToString()),) for at in range(3)]
    spark.createDataFrame([*rows, (b"\xff",)], "value binary").write.parquet(str(tmp_path / "in"))
    with pytest.raises(Exception, match="the query dies"):
        run(die_after)
    for _ in range(2):
        run(stream.sink_protobuf("v0.0.2"))
        assert sorted(stream.snapshot().to_arrow()["name"].to_pylist()) == ["n0", "n1", "n2"]
        assert store.table("t/live-quarantine").count() == 1
