"""Vacuum: delete what nothing can reach any more, while readers and writers go on.

Deleted are parts that a compaction replaced, parts of writes that never committed, chunks and rollups
that newer ones have replaced, expired leases, and everything of dropped tables; the log is cut off below
the oldest rollup that somebody may need. What a clone refers to stays. Why this is safe:

- Objects are listed first, then the state is loaded, then leases, then rollups and the state again.
- A reader takes its lease first and loads its state after that. If the vacuum saw the lease, it keeps
  what that state reaches. If not, the lease is younger than the first load, so the reader's state is
  younger too, and what the first state does not reach never comes back.
- A writer takes its lease before its first object. An object that was listed has a lease that is seen, or
  its write has ended: then its commit or rollup, if there is one, is seen in the second look. If it ended
  without an answer, and may still arrive, it has left its lease to expire.
- A rollup refers to chunks of the layout before it, so whoever writes one is a reader of that layout too.
- Ages are those that the store tells, of leases too. Whoever starts a vacuum makes sure first that the clock
  of the machine is not ahead of the store's (`check_clock`).
- A writer whose lease expired while it was asleep does not commit. A reader finds that objects are missing,
  which is an error. `grace` keeps everything that is younger.
"""

from __future__ import annotations

from bisect import bisect_left
from contextlib import contextmanager, nullcontext, suppress
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from instar.errors import CorruptTableError, NotFoundError, StorageError, TableNotFoundError, UsageError
from instar.state import Appended, Compacted
from instar.state.chunk import FILES
from instar.state.commands import remove
from instar.table.layout import (
    TABLES,
    archives,
    clones,
    lease_key,
    rollup_key,
    rollups,
    table_of,
    table_root,
    write_of,
)
from instar.table.log.archive import archive_entries
from instar.table.log.clone_notes import find_clone_note
from instar.table.log.leases import LEASE_MS, live_leases
from instar.table.log.manifest import load_parts
from instar.table.log.rollup import load_rollup
from instar.table.log.table_log import TableLog
from instar.table.log.tables import log_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from instar.state import ChunkRef, Start, Step, TableState
    from instar.storage import StoredObject
    from instar.table.log.leases import Lease
    from instar.table.services import Services

__all__ = ["VacuumReport", "check_clock", "find_sharers", "vacuum_store", "vacuum_table"]


class VacuumReport(NamedTuple):
    """What a vacuum deleted, or would delete, and what it left."""

    objects: int = 0
    bytes: int = 0
    log_entries: int = 0
    kept_objects: int = 0
    kept_bytes: int = 0


def vacuum_table(
    services: Services, key: str, *, grace_ms: int, dry_run: bool = False, table_id: str | None = None
) -> VacuumReport:
    """Vacuum the table that has a log, dropped or not; the table itself is the same before and after.

    With a table's id, only that one is meant, and not a later table of the same name. A table that was
    dropped is kept for the grace period as it was, so that it can be brought back; then a commit says that it
    cannot any more, and after that it is deleted.
    """
    log = TableLog(services, key)
    state = log.refresh()
    if state is None or state.table_id != (table_id or state.table_id):
        raise TableNotFoundError(key, dropped=state is not None)
    log.bind(state.table_id)
    oldest = services.clock() - grace_ms
    if not dry_run and not state.dropped:
        # It may be dropped just now; and where nothing can be written, deleting is needed most.
        with suppress(TableNotFoundError, StorageError):
            log.checkpoint()
        state = log.refresh() or state
    if not dry_run and state.dropped:
        with suppress(TableNotFoundError, StorageError):
            state = _give_up(log, oldest)
    gone = state.removed or (dry_run and state.dropped and state.dropped_at <= oldest)
    objects = list(services.blob.list(table_root(state.table_id)))
    sweep = _Sweep(services, log, state.table_id, gone=gone)
    sweep.reach_clones()
    kept = archives(state.table_id) + "/"  # as long as the table is there
    doomed = [
        stored
        for stored in objects
        if stored.modified_ms <= oldest
        and not sweep.reaches(stored.key)
        and (gone or not stored.key.startswith(kept))
    ]
    cut = sweep.cut(oldest)
    report = _report(objects, doomed)._replace(log_entries=sweep.count_entries(cut))
    if not dry_run:
        services.blob.delete(stored.key for stored in doomed)
        if not gone and sweep.count_entries(cut):
            archive_entries(services, log, state.table_id, cut)
        services.consensus.truncate(services.log_key(key), cut)
    return report


def _give_up(log: TableLog, oldest: int) -> TableState:
    """Say that a table which was dropped long enough ago cannot come back, and return its state."""

    def decide(state: TableState | None) -> tuple[Step, ...]:
        if state is None or state.table_id != log.table_id or not state.dropped:
            raise TableNotFoundError(log.name)  # it has come back just now, or there is another
        return remove(state) if state.dropped_at <= oldest else ()

    with suppress(TableNotFoundError):  # there is nothing to do
        return log.commit(decide).state
    state = log.refresh()
    if state is None or state.table_id != log.table_id:
        raise TableNotFoundError(log.name)
    return state


def vacuum_store(services: Services, *, grace_ms: int, dry_run: bool = False) -> VacuumReport:
    """Vacuum what belongs to no table: former tables of a name that was used again, and unfinished puts."""
    now = services.clock()
    objects = list(services.blob.list(TABLES))
    states = [TableLog(services, name).refresh() for name in log_keys(services)]
    known = {state.table_id for state in states if state is not None}
    strays = [stored for stored in objects if table_of(stored.key) not in known]
    former = {table_of(stored.key) for stored in strays}
    held = {table_id for table_id in former if next(live_leases(services, table_id), None) is not None}
    cloned = {table_id: find_cloned(services, table_id) for table_id in former - held}
    # Nobody holds a lease for a put in progress, and there may be one.
    unfinished = list(services.blob.list_unfinished())
    doomed = [
        *(
            stored
            for stored in strays
            if stored.modified_ms <= now - grace_ms
            and table_of(stored.key) not in held
            and not cloned[table_of(stored.key)].reaches(stored.key)
        ),
        *(stored for stored in unfinished if stored.modified_ms <= now - max(grace_ms, LEASE_MS)),
    ]
    if not dry_run:
        services.blob.delete(stored.key for stored in doomed)
    return _report([*strays, *unfinished], doomed)


def check_clock(services: Services) -> None:
    """Raise if this machine's clock is ahead of the store's: what is young would look old, and be deleted.

    The store tells its time by when it received a small object, which belongs to no table.
    """
    if services.most_ahead_ms is None:
        return
    now = services.clock()
    probe = lease_key(services.new_id(), "clock")
    services.blob.put(probe, b"")
    stored = services.blob.stat(probe)
    services.blob.delete([probe])
    ahead = 0 if stored is None else now - stored.modified_ms
    if ahead > services.most_ahead_ms:
        raise UsageError(
            f"cannot vacuum: the clock of this machine is {ahead / 60_000:.0f} minutes ahead of the store's, "
            "so files that are being written would look old. Nothing was deleted; set the clock right first."
        )


class _Sweep:
    """What can still be reached in one table, found out in the order that makes a vacuum safe."""

    def __init__(self, services: Services, log: TableLog, table_id: str, *, gone: bool = False) -> None:
        self._services = services
        self._log = log
        self._table_id = table_id
        state = log.refresh()
        held = [*live_leases(services, table_id), *_stream_leases(services, state)]
        self._writes = frozenset(lease.write_id for lease in held if lease.write_id is not None)
        self._keys = {lease_key(table_id, lease.id) for lease in held}
        self._end = 0  # nobody needs the log below this
        self._cloned: CloneReach | None = None
        if state is not None and state.dropped and gone and not held:
            self._reach_tombstone(state.start)
        elif state is not None:
            self._reach_from(min([state.start.seqno, *(lease.seqno for lease in held)]), state)

    def reaches(self, key: str) -> bool:
        """Whether somebody may still need an object."""
        cloned = self._cloned is not None and self._cloned.reaches(key)
        return cloned or key in self._keys or write_of(key) in self._writes

    def reach_clones(self) -> None:
        """Note what clones of the table refer to, which may no longer be of use to the table itself."""
        self._cloned = find_cloned(self._services, self._table_id)

    @property
    def keys(self) -> frozenset[str]:
        """The keys of all that states of the table refer to."""
        return frozenset(self._keys)

    def cut(self, oldest: int) -> int:
        """Return the seqno below which nobody needs the log, and all commits are older than a time.

        They are also older than a lease lasts: until then a commit without an answer is looked for there, and
        a handle that does not know of them may try to commit in their place.
        """
        oldest = min(oldest, self._services.clock() - LEASE_MS)
        first = self._first
        candidates = range(first, max(first, self._end))

        def is_young(seqno: int) -> bool:
            return self._log.entry_from(seqno).commit.at > oldest

        return first + bisect_left(candidates, True, key=is_young)  # noqa: FBT003 -- the first that is young

    def count_entries(self, cut: int) -> int:
        """Return how many commits are below a seqno."""
        return max(0, cut - self._first)

    @cached_property
    def _first(self) -> int:
        """The seqno at which the log begins."""
        return self._log.entry_from(0).seqno

    def _reach_tombstone(self, start: Start) -> None:
        """Note what it takes to know that a table was dropped: all else of it may go."""
        self._end = start.seqno + start.rollup
        if start.rollup:
            self._keys.add(rollup_key(self._table_id, start.seqno))

    def _reach_from(self, horizon: int, state: TableState) -> None:
        """Note everything that states from the last rollup before a seqno on refer to.

        What an earlier vacuum has removed may be missing from rollups and commits before `start`: then their
        layout is one that nobody can have been using.
        """
        found = [
            int(stored.key.rpartition("/")[2]) for stored in self._services.blob.list(rollups(self._table_id))
        ]
        base = max((seqno for seqno in found if seqno <= horizon), default=None)
        self._end = horizon if base is None else base + 1
        needed = state.seqno + 1 if state.dropped else state.start.seqno
        for seqno in (seqno for seqno in found if base is None or seqno >= base):
            with _suppress_missing() if seqno < needed else nullcontext():
                self._reach_rollup(seqno)
        for entry in self._log.entries(self._end):
            for step in entry.commit.steps:
                if isinstance(step, Appended):
                    self._keys.add(step.adopted or "")
                if isinstance(step, Appended | Compacted) and step.batch is not None:
                    self._keys.update(part.key for part in step.batch.parts)
                    self._keys.update(sheet.key for sheet in step.batch.sheets)
                    for ref in step.batch.chunks:
                        with _suppress_missing() if entry.seqno <= needed else nullcontext():
                            self._reach_chunk(ref)

    def _reach_rollup(self, seqno: int) -> None:
        rolled = load_rollup(self._services.blob, self._table_id, seqno)
        self._keys.add(rollup_key(self._table_id, seqno))
        self._keys.update(ref.key for ref in rolled.chunks)
        self._keys.update(ref.key for ref in rolled.sheets)
        self._keys.add(rolled.adopted or "")
        self._keys.update(load_parts(self._services.chunks, rolled, groups=(FILES,)).keys)

    def _reach_chunk(self, ref: ChunkRef) -> None:
        self._keys.add(ref.key)
        files = self._services.chunks.groups(ref, [FILES])[FILES]
        self._keys.update(files.column("key").to_pylist())


class CloneReach(NamedTuple):
    """What clones of a table refer to, and whether that is all that is known."""

    keys: frozenset[str] = frozenset()
    everything: bool = False

    def reaches(self, key: str) -> bool:
        """Whether a clone may need an object."""
        return self.everything or key in self.keys


def find_cloned(services: Services, table_id: str) -> CloneReach:
    """Find what the clones of a table refer to. What tells of a clone goes when the clone has gone."""
    found = [reach for _, reach in _clones(services, table_id)]
    keys = frozenset[str]().union(*(reach.keys for reach in found))
    return CloneReach(keys, any(reach.everything for reach in found))


def find_sharers(services: Services, state: TableState) -> dict[str, CloneReach]:
    """Find the tables that may have files in common with a table, as they are called, and what they refer to.

    They are its clones, the tables that it is a clone of, and other clones of those.
    """
    sharers: dict[str, CloneReach] = {}
    for owner in (state.table_id, *state.origins):
        sharers |= dict(_clones(services, owner, but=state.table_id))
    for key in log_keys(services) if state.origins else ():
        log = TableLog(services, key)
        other = log.refresh()
        if other is not None and other.table_id in state.origins and not other.removed:
            sharers[_called(other)] = CloneReach(_Sweep(services, log, other.table_id).keys)
    return sharers


def _called(state: TableState) -> str:
    return f"`{state.name}`, which was dropped" if state.dropped else f"`{state.name}`"


def _clones(services: Services, table_id: str, but: str | None = None) -> Iterator[tuple[str, CloneReach]]:
    """Yield how the clones of a table are called, and what each refers to, with what tells of it."""
    for stored in services.blob.list(clones(table_id)):
        note = find_clone_note(services, stored.key)
        if note is None or note.clone_id == but:
            continue
        keys: set[str] = set()
        if stored.modified_ms + LEASE_MS > services.clock():
            keys.add(stored.key)  # the clone may be about to begin
        log = TableLog(services, note.log)
        state = log.refresh()
        if state is not None and state.table_id == note.clone_id and not state.removed:
            keys.add(stored.key)
            keys |= _Sweep(services, log, note.clone_id).keys
            read = False
        else:  # it is gone, and somebody may still be reading it
            read = next(live_leases(services, note.clone_id), None) is not None
        called = f"`{note.log}`" if state is None else _called(state)
        yield called, CloneReach(frozenset(keys), everything=read)


def _stream_leases(services: Services, state: TableState | None) -> Iterable[Lease]:
    """Return the leases of readers that hold all tables of a stream at once, if this is one of them."""
    stream_id = None if state is None else state.labels.get("stream.id")
    return () if stream_id is None else live_leases(services, str(stream_id))


@contextmanager
def _suppress_missing() -> Iterator[None]:
    """Go on without an object that an earlier vacuum has removed, and not without one that is damaged."""
    try:
        yield
    except NotFoundError:
        pass
    except CorruptTableError as error:
        if not error.missing:
            raise


def _report(objects: Iterable[StoredObject], doomed: list[StoredObject]) -> VacuumReport:
    sizes = {stored.key: stored.size for stored in objects}
    freed = sum(stored.size for stored in doomed)
    return VacuumReport(len(doomed), freed, 0, len(sizes) - len(doomed), sum(sizes.values()) - freed)
