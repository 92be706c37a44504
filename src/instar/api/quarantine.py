"""The quarantine table of a stream: it keeps records that could not be fully decoded, to try them again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from instar.api.table import Table
from instar.errors import ConflictError, TableExistsError
from instar.stream import as_version
from instar.stream.protobuf import QUARANTINE, RETRY, load_stored_encoding, quarantine_name
from instar.table import create_table
from instar.table.log.tables import find_log, open_log

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from instar.api.stream import Stream
    from instar.stream import StreamHandle

__all__ = ["QuarantineRetry", "keep_records", "kept_rows", "retry_records"]

_MARK: Final = "/"
"""What stands in a mark between the version that records are decoded by and the id of the attempt."""


class QuarantineRetry(NamedTuple):
    """The result of decoding records again."""

    rows: int
    """How many are rows of the stream now, and no longer in quarantine."""
    quarantined: int
    """How many still cannot be decoded. They stay, with the reason of this attempt."""


def keep_records(handle: StreamHandle, rows: Any, token: str | None) -> None:  # noqa: ANN401 -- a frame or a table
    """Append to the quarantine table, which the first row creates."""
    name = quarantine_name(handle.name)
    log, state = find_log(handle.services, name)
    if state is None or not state.is_at(name):
        try:
            log = create_table(handle.services, name, QUARANTINE, order_by=["at"])
        except TableExistsError:
            log = open_log(handle.services, name)
    table = Table(handle.services, log)
    _check_columns(handle, table)
    table.append(rows, token)


def _check_columns(handle: StreamHandle, table: Table) -> None:
    """Raise if another table has the name of the quarantine table."""
    if "record" not in table.schema.names:
        raise ConflictError(
            f"stream `{handle.name}` needs the name `{table.name}` for records that it cannot decode, but "
            "another table has that name. Rename the table, or drop it."
        )


def kept_rows(
    records: Sequence[bytes | None],
    versions: Sequence[str],
    reasons: Mapping[int, str],
    rejected: Collection[int],
) -> pa.Table:
    """Return the records that have a reason to be kept, as rows of the quarantine table.

    Rejected records are not rows of the stream; the others are, but without some of their fields.
    """
    now = datetime.now(UTC)
    kept = sorted(reasons)
    return pa.table(
        {
            "record": pa.array([records[at] for at in kept], pa.binary()),
            "version": pa.array([versions[at] for at in kept], pa.string()),
            "reason": pa.array([reasons[at] for at in kept], pa.string()),
            "stored": pa.array([at not in rejected for at in kept], pa.bool_()),
            "at": pa.array([now] * len(kept), pa.timestamp("us", "UTC")),
        }
    )


def retry_records(
    stream: Stream, handle: StreamHandle, version: str | None, decode_as: str | None
) -> QuarantineRetry:
    """Decode records again, and move those that are rows now into the stream; see `_finish` for a crash."""
    name = quarantine_name(handle.name)
    log, state = find_log(handle.services, name)
    if state is None or not state.is_at(name):
        return QuarantineRetry(0, 0)
    log.check_exists(state)
    table = Table(handle.services, log)
    _check_columns(handle, table)
    if RETRY not in table.schema.names:  # made before records could be tried again
        table.evolve().add_column(RETRY, "string").commit()
    with table.snapshot() as snapshot:
        waiting = snapshot.to_arrow("NOT stored", [RETRY, "version"])
    begun, versions = (set(waiting[name].unique().to_pylist()) for name in (RETRY, "version"))
    if version is not None:
        versions &= {str(as_version(version))}
    marks = sorted(begun - {None})
    catalog = handle.load()
    for written in sorted(versions):
        under = written if decode_as is None else str(as_version(decode_as))
        load_stored_encoding(catalog, under)
        marks.append(f"{under}{_MARK}{handle.services.new_id()}")
        chosen = f"NOT stored AND {RETRY} IS NULL AND version = '{written}'"
        table.update({RETRY: f"'{marks[-1]}'"}, chosen)
    done = [_finish(stream, handle, table, mark) for mark in marks]
    return QuarantineRetry(*map(sum, zip(*done, strict=True))) if done else QuarantineRetry(0, 0)


def _finish(stream: Stream, handle: StreamHandle, table: Table, mark: str) -> QuarantineRetry:
    """Finish the retry of the records that carry a mark.

    The mark is the token of each write, and the records are deleted last. So if the process is killed
    anywhere in here, nothing is lost, and the next call repeats it and doubles nothing.
    """
    from instar.compat.protobuf.decode import Decoder  # noqa: PLC0415 -- an extra

    under = mark.partition(_MARK)[0]
    marked = f"{RETRY} = '{mark}'"
    with table.snapshot() as snapshot:
        chosen = snapshot.to_arrow(marked, ["record", "version"])
    if not chosen.num_rows:
        return QuarantineRetry(0, 0)
    records = chosen["record"].to_pylist()
    decoded = Decoder(load_stored_encoding(handle.load(), under)).decode(records)
    if decoded.rows.num_rows:
        stream.write(decoded.rows, under, token=mark)
    reasons = decoded.reasons(under)
    if reasons:
        table.append(kept_rows(records, chosen["version"].to_pylist(), reasons, decoded.rejected), token=mark)
    table.delete(marked)
    return QuarantineRetry(decoded.rows.num_rows, len(decoded.rejected))
