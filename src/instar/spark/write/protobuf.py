"""Records of protobuf in a DataFrame, decoded on executors by Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
    rows = pa.StructArray.from_arrays(found.rows.columns, fields=list(found.rows.schema))
    if found.rejected:
        at = np.full(len(records), -1)
        at[list(found.positions)] = np.arange(len(rows))
        rows = rows.take(pa.array(at, mask=at < 0))
    kept, why = pa.nulls(len(records), pa.binary()), pa.nulls(len(records), pa.string())
    if reasons:
        chosen = [reasons.get(position) for position in range(len(records))]
        why = pa.array(chosen, pa.string())
        kept = pc.if_else(why.is_valid(), records, None)
    return pa.RecordBatch.from_arrays([rows, kept, why], names=[ROW, KEPT, REASON])
