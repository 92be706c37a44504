"""Records of protobuf in a DataFrame, decoded on executors by Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.types import BinaryType, StructType

from instar.compat.protobuf.decode import Decoder
from instar.errors import UsageError
from instar.schema import spark_json
from instar.spark.workers import map_in_arrow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from instar.compat.protobuf.model import Encoding

__all__ = ["KEPT", "REASON", "ROW", "decode_frame"]

ROW: Final = "row"
KEPT: Final = "kept"
REASON: Final = "reason"
"""The columns of a decoded frame: the row, or null; the record as it came, if it is to be kept; and why."""


def decode_frame(frame: DataFrame, column: str, encoding: Encoding, version: str) -> DataFrame:
    """Decode a column of records: each becomes a row, or is kept with the reason why it could not.

    Records that have fields which the version does not know become a row, and are kept as well.
    """
    if column not in frame.columns or not isinstance(frame.schema[column].dataType, BinaryType):
        known = ", ".join(field.name for field in frame.schema if isinstance(field.dataType, BinaryType))
        raise UsageError(f"column {column!r} does not hold records: binary columns are: {known or 'none'}")
    row = StructType.fromJson(spark_json(Decoder(encoding).schema))
    result = StructType().add(ROW, row).add(KEPT, "binary").add(REASON, "string")

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = Decoder(encoding)
        for batch in batches:
            yield _decode_batch(decoder, batch.column(0), version)

    records = frame.select(frame[f"`{column}`"].alias("record"))
    return map_in_arrow(records, run, result)


def _decode_batch(decoder: Decoder, records: pa.Array, version: str) -> pa.RecordBatch:
    found = decoder.decode(records)
    reasons = found.reasons(version)
    at = {position: number for number, position in enumerate(found.positions)}
    rows = pa.StructArray.from_arrays(found.rows.columns, fields=list(found.rows.schema))
    taken = rows.take(pa.array([at.get(position) for position in range(len(records))], pa.int64()))
    kept = [records[position].as_py() if position in reasons else None for position in range(len(records))]
    why = [reasons.get(position) for position in range(len(records))]
    return pa.RecordBatch.from_arrays(
        [taken, pa.array(kept, pa.binary()), pa.array(why, pa.string())], names=[ROW, KEPT, REASON]
    )
