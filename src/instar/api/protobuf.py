"""Protobuf records into a stream: rows go to its tables, and bad records to a quarantine table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from instar.api.quarantine import keep_records, kept_rows
from instar.api.stream_reports import report_stream
from instar.api.writing import is_spark_frame
from instar.errors import UsageError
from instar.stream import as_version
from instar.stream.protobuf import load_stored_encoding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from instar.api.stream import Stream
    from instar.api.writing import Data
    from instar.compat.protobuf.model import Encoding
    from instar.stream import StreamCommit, StreamHandle, Version

__all__ = ["ProtobufCommit", "write_records"]

UNKNOWN: Final = ("keep", "count")
"""What to do with records that have fields which their version does not know."""


class ProtobufCommit(NamedTuple):
    """The result for records: `rows + quarantined` is how many there were."""

    commit: StreamCommit | None
    """The write to the stream; None if no record could be decoded."""
    rows: int
    """How many records became rows."""
    quarantined: int
    """How many could not be decoded. They are in the table `<stream>-quarantine`, with the reason."""
    unknown: int
    """How many rows have fields that the version does not know. These records are in that table too, unless
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
    number = as_version(version)
    keep = unknown == "keep"
    try:
        encoding = load_stored_encoding(handle.known(), number)
    except UsageError:
        encoding = load_stored_encoding(handle.load(), number)
    if is_spark_frame(records):
        return _write_frame(handle, records, encoding, number, column=column, token=token, keep=keep)
    from instar.compat.protobuf.decode import Decoder  # noqa: PLC0415 -- an extra

    given = _records(records, column)
    found = Decoder(encoding).decode(given)
    reasons = found.reasons(number, unknown=keep)
    if reasons:
        keep_records(handle, kept_rows(given, [number] * len(given), reasons, found.rejected), token)
    commit = stream.write(found.rows, number, token) if found.rows.num_rows else None
    return ProtobufCommit(commit, found.rows.num_rows, len(found.rejected), len(found.unknown))


def _write_frame(
    handle: StreamHandle,
    frame: Any,  # noqa: ANN401 -- a Spark DataFrame
    encoding: Encoding,
    version: Version,
    *,
    column: str,
    token: str | None,
    keep: bool,
) -> ProtobufCommit:
    from instar.spark import DecodedFrame  # noqa: PLC0415 -- only who needs Spark loads it

    record = handle.known().versions[version]
    with DecodedFrame(handle, frame, column, encoding, record) as decoded:
        found = decoded.count()
        if found.rejected or (keep and found.unknown):
            keep_records(handle, decoded.kept(unknown=keep), token)
        write = partial(decoded.write, found.places, token)
        commit = report_stream(handle, "write", write, data=frame) if found.rows else None
    return ProtobufCommit(commit, found.rows, found.rejected, found.unknown)


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
