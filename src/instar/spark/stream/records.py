"""Records of protobuf in a DataFrame: decoded once, on executors, and kept there as Arrow until stored.

To Spark what was decoded is bytes, a chunk of many rows at a time, which never become rows of the JVM. How
many there are and which tables they belong to stands beside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from pyspark.sql.types import BinaryType

from instar.compat.protobuf.decode import Decoder
from instar.errors import UsageError
from instar.spark.stream.write import Incoming, Routing, find_places, routing_of, write_incoming
from instar.spark.workers import collect, map_in_arrow
from instar.stream.kinds import Kind
from instar.stream.routing import TablePlace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

    from pyspark.sql import DataFrame

    from instar.compat.protobuf.decode import Decoded
    from instar.compat.protobuf.model import Encoding
    from instar.stream.catalog import VersionRecord
    from instar.stream.handle import StreamHandle
    from instar.stream.writing import StreamCommit

__all__ = ["DecodedFrame", "RecordCounts", "pack", "unpack"]

_CHUNK_BYTES: Final = 16 * 1024 * 1024
"""What a chunk of rows may take: Spark moves it in one piece."""
_PLACES: Final = pa.list_(pa.struct([("kind", pa.string()), ("start", pa.int64())]))
_CHUNK: Final = pa.schema(
    [
        ("chunk", pa.binary()),
        ("kept", pa.binary()),
        ("rows", pa.int64()),
        ("rejected", pa.int64()),
        ("unknown", pa.int64()),
        ("places", _PLACES),
    ]
)
_CHUNK_DDL: Final = (
    "chunk binary, kept binary, rows bigint, rejected bigint, unknown bigint, "
    "places array<struct<kind: string, start: bigint>>"
)
_KEPT: Final = pa.schema([("record", pa.binary()), ("reason", pa.string()), ("stored", pa.bool_())])
_KEPT_DDL: Final = "record binary, reason string, stored boolean"


class RecordCounts(NamedTuple):
    """What became of records, and the tables that their rows belong to."""

    rows: int
    rejected: int
    unknown: int
    places: set[TablePlace]


class DecodedFrame:
    """Records of one version in a column of a frame, decoded and held in Spark's cache until it is closed."""

    def __init__(
        self, handle: StreamHandle, frame: DataFrame, column: str, encoding: Encoding, record: VersionRecord
    ) -> None:
        if column not in frame.columns or not isinstance(frame.schema[column].dataType, BinaryType):
            known = ", ".join(field.name for field in frame.schema if isinstance(field.dataType, BinaryType))
            raise UsageError(
                f"column {column!r} does not hold records: binary columns are: {known or 'none'}"
            )
        self._handle = handle
        self._record = record
        self._routing = routing_of(handle, record)
        routing, version = self._routing, record.version

        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            decoder = Decoder(encoding)
            for batch in batches:
                found = decoder.decode(batch.column(0))
                yield from pack(batch.column(0), found, version, routing)

        records = frame.select(frame[f"`{column}`"].alias("record"))
        self._chunks = map_in_arrow(records, run, _CHUNK_DDL).persist()

    def count(self) -> RecordCounts:
        """Decode everything, and tell what became of it."""
        [found] = collect(
            self._chunks.selectExpr(
                *(f"coalesce(sum({name}), 0) AS {name}" for name in ("rows", "rejected", "unknown")),
                "array_distinct(flatten(collect_set(places))) AS places",
            )
        )
        places = {TablePlace(Kind(place.kind), place.start) for place in found.places}
        return RecordCounts(found.rows, found.rejected, found.unknown, places)

    def kept(self, *, unknown: bool) -> DataFrame:
        """Return the records that could not be decoded, with or without those that have unknown fields."""
        packed = self._chunks.where("kept IS NOT NULL").select("kept")
        kept = map_in_arrow(packed, unpack, _KEPT_DDL).where("true" if unknown else "NOT stored")
        version = self._record.version
        return kept.selectExpr("record", f"'{version}' AS version", "reason", "stored", "now() AS at")

    def write(self, places: set[TablePlace], token: str | None) -> StreamCommit:
        """Write the rows to the tables that they belong to."""
        incoming = Incoming(self._chunks.select("chunk"), unpack, lambda: places)
        return write_incoming(self._handle, self._record, incoming, self._routing, token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._chunks.unpersist()


def pack(records: pa.Array, found: Decoded, version: str, routing: Routing) -> Iterator[pa.RecordBatch]:
    """Yield chunks of what was decoded; the first has what is to be kept of all."""
    rows = found.rows
    pieces = min(rows.num_rows, -(-rows.nbytes // _CHUNK_BYTES)) or 1
    size = -(-rows.num_rows // pieces)
    for piece in range(pieces):
        chunk = rows.slice(piece * size, size)
        first = piece == 0
        yield pa.RecordBatch.from_pylist(
            [
                {
                    "chunk": _encode(chunk),
                    "kept": _kept(records, found, version) if first else None,
                    "rows": chunk.num_rows,
                    "rejected": len(found.rejected) if first else 0,
                    "unknown": len(found.unknown) if first else 0,
                    "places": [
                        {"kind": place.kind.value, "start": place.start}
                        for place in find_places(chunk, routing)
                    ],
                }
            ],
            _CHUNK,
        )


def _kept(records: pa.Array, found: Decoded, version: str) -> bytes | None:
    reasons = found.reasons(version)
    if not reasons:
        return None
    kept = sorted(reasons)
    columns = [
        records.take(pa.array(kept)).cast(pa.binary()),
        pa.array([reasons[at] for at in kept], pa.string()),
        pa.array([at not in found.rejected for at in kept], pa.bool_()),
    ]
    return _encode(pa.RecordBatch.from_arrays(columns, schema=_KEPT))


def _encode(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield what is in chunks."""
    for batch in batches:
        for chunk in batch.column(0):
            yield from pa.ipc.open_stream(chunk.as_buffer())
