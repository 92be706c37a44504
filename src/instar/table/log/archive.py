"""What a log said before it was cut off: one line for each commit, kept when a vacuum truncates the log.

Lines are in objects of the table, each with those of one vacuum; many small ones are put together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from instar.storage.frame import decode_record, encode_record
from instar.table.layout import archive_key, archives
from instar.table.log.history import CommitInfo, describe_entry, moment_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.table.log.table_log import TableLog
    from instar.table.services import Services

__all__ = ["archive_entries", "read_archive"]

_MOST: Final = 16
"""When there are as many objects, they become one."""


class _Line(msgspec.Struct, frozen=True, array_like=True):
    """A commit as it is kept."""

    seqno: int
    at: int
    by: str
    what: str
    schema_id: int | None
    commit_id: str
    ts: int | None


def archive_entries(services: Services, log: TableLog, table_id: str, below: int) -> None:
    """Keep the lines of a table's commits below a seqno: its log is about to be cut off there."""
    lines = []
    for entry in log.entries(0):
        if entry.seqno >= below:
            break
        if entry.commit.table_id == table_id:
            info = describe_entry(entry)
            lines.append(_Line(entry.seqno, entry.commit.at, info.by, info.what, *info[4:]))
    if not lines:
        return
    known = [stored.key for stored in services.blob.list(archives(table_id))]
    merging = len(known) >= _MOST
    if merging:
        found = {line.seqno: line for key in known for line in _read(services, table_id, key)}
        found |= {line.seqno: line for line in lines}
        lines = [found[seqno] for seqno in sorted(found)]
    key = archive_key(table_id, lines[0].seqno, lines[-1].seqno)
    services.blob.put(key, encode_record("history", _identity(table_id, key), lines))
    if merging:
        services.blob.delete(other for other in known if other != key)


def read_archive(services: Services, table_id: str, below: int) -> Iterator[CommitInfo]:
    """Yield what is kept of commits below a seqno, the newest first."""
    keys = sorted((stored.key for stored in services.blob.list(archives(table_id))), reverse=True)
    for key in keys:
        for line in reversed(_read(services, table_id, key)):
            if line.seqno < below:
                below = line.seqno
                yield CommitInfo(line.seqno, moment_of(line.at), *msgspec.structs.astuple(line)[2:])


def _read(services: Services, table_id: str, key: str) -> list[_Line]:
    what = f"history {key}"
    return decode_record(services.blob.get(key), "history", _identity(table_id, key), list[_Line], what=what)


def _identity(table_id: str, key: str) -> str:
    return f"{table_id}@{key.rpartition('/')[2]}"
