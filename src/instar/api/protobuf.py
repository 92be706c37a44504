"""Records of protobuf into a stream: rows to its tables, and what it cannot take to a table beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from instar.api.quarantine import keep_records, kept_rows
from instar.api.writing import is_spark_frame
from instar.errors import UsageError
from instar.stream import as_version
from instar.stream.protobuf import load_stored_encoding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from instar.api.stream import Stream
    from instar.api.writing import Data
    from instar.compat.protobuf.model import Encoding
    from instar.stream import StreamCommit, StreamHandle

__all__ = ["ProtobufCommit", "write_records"]

UNKNOWN: Final = ("keep", "count")
"""What may be done with records that have fields which their version does not know."""


class ProtobufCommit(NamedTuple):
    """What became of records: `rows + quarantined` is how many there were."""

    commit: StreamCommit | None
    """The write to the stream; None if no record could be decoded."""
    rows: int
    """How many records became rows."""
    quarantined: int
    """How many could not be decoded. They are in the table `<stream>-quarantine`, with the reason."""
    unknown: int
    """How many rows have fields that the version does not know. Those records are in that table, too, unless
    they are only counted."""


def write_records(
    stream: Stream,
    handle: StreamHandle,
    records: Data,
    version: str,
    *,
    column: str,
    token: str | None,
    unknown: str,
) -> ProtobufCommit:
    """Decode records and write them; the quarantine comes first, so that nothing is lost between the two."""
    if unknown not in UNKNOWN:
        raise UsageError(f"unknown={unknown!r} is not one of {', '.join(UNKNOWN)}")
    version = as_version(version)
    keep = unknown == "keep"
    try:
        encoding = load_stored_encoding(handle.known(), version)
    except UsageError:
        encoding = load_stored_encoding(handle.load(), version)
    if is_spark_frame(records):
        return _write_frame(
            stream, handle, records, encoding, version=version, column=column, token=token, keep=keep
        )
    from instar.compat.protobuf.decode import Decoder  # noqa: PLC0415 -- an extra

    given = _records(records, column)
    found = Decoder(encoding).decode(given)
    reasons = found.reasons(version, unknown=keep)
    if reasons:
        keep_records(handle, kept_rows(given, [version] * len(given), reasons, found.rejected), token)
    commit = stream.write(found.rows, version, token) if found.rows.num_rows else None
    return ProtobufCommit(commit, found.rows.num_rows, len(found.rejected), len(found.unknown))


def _write_frame(
    stream: Stream,
    handle: StreamHandle,
    frame: Any,  # noqa: ANN401 -- a Spark DataFrame
    encoding: Encoding,
    *,
    version: str,
    column: str,
    token: str | None,
    keep: bool,
) -> ProtobufCommit:
    from instar.spark.write.protobuf import KEPT, REASON, ROW, decode_frame  # noqa: PLC0415 -- only then

    decoded = decode_frame(frame, column, encoding, version).persist()
    try:
        [counts] = decoded.selectExpr(
            f"count({ROW}) AS rows",
            f"count_if({ROW} IS NULL) AS rejected",
            f"count_if({ROW} IS NOT NULL AND {REASON} IS NOT NULL) AS unknown",
        ).collect()
        if counts["rejected"] or (keep and counts["unknown"]):
            chosen = f"{REASON} IS NOT NULL" if keep else f"{ROW} IS NULL"
            kept = decoded.where(chosen).selectExpr(
                f"{KEPT} AS record",
                f"'{version}' AS version",
                REASON,
                f"{ROW} IS NOT NULL AS stored",
                "current_timestamp() AS at",
            )
            keep_records(handle, kept, token)
        rows = decoded.where(f"{ROW} IS NOT NULL").select(f"{ROW}.*")
        commit = stream.write(rows, version, token) if counts["rows"] else None
    finally:
        decoded.unpersist()
    return ProtobufCommit(commit, counts["rows"], counts["rejected"], counts["unknown"])


def _records(given: Any, column: str) -> list[bytes | None]:  # noqa: ANN401 -- Arrow, or a sequence
    """Return records out of Arrow data, by the name of their column, or out of a sequence of bytes."""
    if isinstance(given, pa.Array | pa.ChunkedArray):
        return given.cast(pa.binary()).to_pylist()  # type: ignore[no-any-return]
    if isinstance(given, pa.Table | pa.RecordBatch):
        if column not in given.schema.names:
            raise UsageError(
                f"there is no column {column!r}: the columns are {', '.join(given.schema.names)}"
            )
        return _records(given[column], column)
    records: Iterable[Any] = given
    found = list(records)
    for at, record in enumerate(found):
        if record is not None and not isinstance(record, bytes):
            raise UsageError(f"record {at} is not bytes but {type(record).__name__}")
    return found
