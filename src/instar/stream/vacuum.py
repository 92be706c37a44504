"""What housekeeping must know about streams: unfinished writes, the progress of jobs, unused objects."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from instar.errors import StreamNotFoundError
from instar.stream.batches import Batches
from instar.stream.evolver import StreamEvolver
from instar.stream.handle import StreamHandle, stream_names
from instar.stream.jobs import copied_up_to
from instar.stream.stamp import find_stamp
from instar.stream.writing import finish_pending
from instar.table import VacuumReport

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from instar.state import TableState
    from instar.storage import StoredObject
    from instar.table import Services
    from instar.table.housekeeping.vacuum import Settle

__all__ = ["holding", "settling", "vacuum_streams"]

_STREAMS: Final = "streams"


def settling(services: Services) -> Settle:
    """Return what a vacuum of a table calls: finish what was begun in its stream.

    The writer may be dead, and its lease expired: then only the intent names the parts. A stream
    that was dropped has nothing unfinished.
    """
    handles: dict[str, StreamHandle] = {}

    def settle(state: TableState) -> None:
        stamp = find_stamp(state)
        if stamp is not None:
            handle = handles.setdefault(stamp.stream_id, StreamHandle(services, stamp.stream))
            with suppress(StreamNotFoundError):
                finish_pending(handle)

    return settle


def holding(services: Services) -> Callable[[TableState], int]:
    """Return what retention asks about a table: up to which time every job that began with it has copied it.

    Rows that come later must not get the times of rows that are copied: a job could not tell them apart.
    """
    handles: dict[str, StreamHandle] = {}

    def hold(state: TableState) -> int:
        stamp = find_stamp(state)
        cursors = list[int]()
        if stamp is not None:
            handle = handles.setdefault(stamp.stream_id, StreamHandle(services, stamp.stream))
            with suppress(StreamNotFoundError):  # it was dropped
                cursors = copied_up_to(handle.batches.refresh() or Batches(), state.table_id)
        return min(cursors, default=state.upper)

    return hold


def vacuum_streams(services: Services, *, grace_ms: int, dry_run: bool = False) -> VacuumReport:
    """Finish what is unfinished, and vacuum what streams keep beside their tables."""
    names = stream_names(services)
    for name in () if dry_run else names:
        with suppress(StreamNotFoundError):  # it was dropped
            finish_pending(StreamHandle(services, name))
    objects = list(services.blob.list(_STREAMS))
    used = set[str]().union(*(_used(services, name, objects) for name in names)) if objects else set()
    oldest = services.clock() - grace_ms
    doomed = [each for each in objects if each.key not in used and each.modified_ms <= oldest]
    if not dry_run:
        services.blob.delete(each.key for each in doomed)
    freed, size = (sum(each.size for each in some) for some in (doomed, objects))
    return VacuumReport(len(doomed), freed, 0, len(objects) - len(doomed), size - freed)


def _used(services: Services, name: str, objects: Sequence[StoredObject]) -> set[str]:
    """Return the objects that a stream refers to; one that was dropped keeps them, since it may come back."""
    handle = StreamHandle(services, name)
    try:
        batches = handle.batches.refresh() or Batches()
        evolution = StreamEvolver(handle).load()
    except StreamNotFoundError:
        catalog = handle.journal.known
        own = "" if catalog is None else f"{_STREAMS}/{catalog.stream_id}/"
        return {each.key for each in objects if own and each.key.startswith(own)}
    used = {intent.spilled for _, intent in batches.pending.values() if intent.spilled is not None}
    return used | {spill.key for spill in evolution.spilled}
