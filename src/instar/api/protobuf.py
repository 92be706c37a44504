"""Records of protobuf into a stream: rows to its tables, and what it cannot take to a table beside it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from instar.api.table import Table
from instar.api.writing import is_spark_frame
from instar.errors import TableExistsError, UsageError
from instar.stream import as_version
from instar.stream.protobuf import QUARANTINE, load_stored_encoding, quarantine_name
from instar.table import TableLog, create_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from instar.api.stream import Stream
    from instar.api.writing import Data
    from instar.compat.protobuf.model import Encoding
    from instar.stream import StreamCommit, StreamHandle

__all__ = ["ProtobufCommit", "write_records"]

_UNKNOWN = "has fields that {version} does not know; the row was stored without them"


class ProtobufCommit(NamedTuple):
    """What became of records: `rows + quarantined` is how many there were."""

    commit: StreamCommit | None
    """The write to the stream; None if no record could be decoded."""
    rows: int
    """How many records became rows."""
    quarantined: int
    """How many could not be decoded. They are in the table `<stream>-quarantine`, with the reason."""
    unknown: int
    """How many rows have fields that the version does not know. Those records are in that table, too."""


def write_records(
    stream: Stream,
    handle: StreamHandle,
    records: Data,
    version: str,
    column: str,
    token: str | None,
) -> ProtobufCommit:
    """Decode records and write them; the quarantine comes first, so that nothing is lost between the two."""
    version = as_version(version)
    try:
        encoding = load_stored_encoding(handle.known(), version)
    except UsageError:
        encoding = load_stored_encoding(handle.load(), version)
    if is_spark_frame(records):
        return _write_frame(stream, handle, records, encoding, version=version, column=column, token=token)
    from instar.compat.protobuf.decode import Decoder  # noqa: PLC0415 -- an extra

    given = _records(records, column)
    found = Decoder(encoding).decode(given)
    reasons = {**dict.fromkeys(found.unknown, _UNKNOWN.format(version=version)), **found.rejected}
    kept = [(given[at], reasons[at], at not in found.rejected) for at in sorted(reasons)]
    if kept:
        _keep(handle, _kept_rows(kept, version), token)
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
) -> ProtobufCommit:
    from instar.spark.write.protobuf import KEPT, REASON, ROW, decode_frame  # noqa: PLC0415 -- only then

    decoded = decode_frame(frame, column, encoding, _UNKNOWN.format(version=version)).persist()
    try:
        [counts] = decoded.selectExpr(
            f"count({ROW}) AS rows",
            f"count_if({ROW} IS NULL) AS rejected",
            f"count_if({ROW} IS NOT NULL AND {REASON} IS NOT NULL) AS unknown",
        ).collect()
        if counts["rejected"] or counts["unknown"]:
            kept = decoded.where(f"{REASON} IS NOT NULL").selectExpr(
                f"{KEPT} AS record",
                f"'{version}' AS version",
                REASON,
                f"{ROW} IS NOT NULL AS stored",
                "current_timestamp() AS at",
            )
            _keep(handle, kept, token)
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


def _kept_rows(kept: list[tuple[bytes | None, str, bool]], version: str) -> pa.Table:
    now = datetime.now(UTC)
    return pa.table(
        {
            "record": pa.array([record for record, _, _ in kept], pa.binary()),
            "version": pa.array([version] * len(kept), pa.string()),
            "reason": pa.array([reason for _, reason, _ in kept], pa.string()),
            "stored": pa.array([stored for _, _, stored in kept], pa.bool_()),
            "at": pa.array([now] * len(kept), pa.timestamp("us", "UTC")),
        }
    )


def _keep(handle: StreamHandle, rows: Any, token: str | None) -> None:  # noqa: ANN401 -- a frame or a table
    """Append to the table beside the stream, which comes into being with the first row."""
    name = quarantine_name(handle.name)
    log = TableLog(handle.services, name)
    state = log.refresh()
    if state is None or state.dropped:
        try:
            log = create_table(handle.services, name, QUARANTINE, order_by=["at"])
        except TableExistsError:
            log = TableLog(handle.services, name)
    Table(handle.services, log).append(rows, token)
