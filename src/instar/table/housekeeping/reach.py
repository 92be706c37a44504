"""What somebody still needs of a table's objects: readers, writers, rollups, commits and clones.

`Reach` finds it out in the order that makes a vacuum safe, which `vacuum.py` explains. It deletes nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from contextlib import contextmanager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from instar.errors import CorruptTableError, NotFoundError
from instar.state import Appended, Compacted
from instar.state.chunk import FILES
from instar.table.layout import clones, lease_key, rollup_key, rollups, write_of
from instar.table.log.clone_notes import find_clone_note
from instar.table.log.leases import LEASE_MS, live_leases
from instar.table.log.manifest import load_parts
from instar.table.log.rollup import load_rollup
from instar.table.log.table_log import TableLog
from instar.table.log.tables import log_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.state import ChunkRef, Start, TableState
    from instar.storage import StoredObject
    from instar.table.log.clone_notes import CloneNote
    from instar.table.log.leases import Lease
    from instar.table.services import Services

__all__ = ["CloneReach", "Reach", "find_cloned", "find_sharers", "held_leases"]


class Reach:
    """What can still be reached in one table, found out in the order that makes a vacuum safe."""

    def __init__(self, services: Services, log: TableLog, table_id: str, *, gone: bool = False) -> None:
        self._services = services
        self._log = log
        self._table_id = table_id
        self._gone = gone
        self._writes = frozenset[str]()
        self._keys = set[str]()
        self._end = 0  # nobody needs the log below this
        self._cloned: CloneReach | None = None
        state = log.refresh()
        while not self._look(state):
            before, state = state, log.refresh()
            if state is not None and before is not None and _kept(before) == _kept(state):
                self._look(state, missing=False)  # nobody has deleted it: it is lost

    def _look(self, state: TableState | None, *, missing: bool = True) -> bool:
        """Note what is needed, given the state; False if some of it is missing, as after another vacuum."""
        services, table_id = self._services, self._table_id
        held = held_leases(services, table_id, state)
        self._writes |= frozenset(lease.write_id for lease in held if lease.write_id is not None)
        self._keys |= {lease_key(table_id, lease.id) for lease in held}
        if state is not None and state.dropped and (self._gone or state.removed) and not held:
            self._reach_tombstone(state.start)
            return True
        with _suppress_missing() if missing else nullcontext():
            if state is not None:
                self._reach_from(min([state.start.seqno, *(lease.seqno for lease in held)]), state)
            return True
        return False

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
        a handle that has not read them may try to commit in their place.
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


def _kept(state: TableState) -> tuple[Start, bool]:
    """Return what a vacuum goes by when it deletes something."""
    return state.start, state.removed


class CloneReach(NamedTuple):
    """What clones of a table refer to, and whether that is all that is known."""

    keys: frozenset[str] = frozenset()
    everything: bool = False

    def reaches(self, key: str) -> bool:
        """Whether a clone may need an object."""
        return self.everything or key in self.keys


def find_cloned(services: Services, table_id: str) -> CloneReach:
    """Find what the clones of a table refer to. The note of a clone is deleted with the clone."""
    found = [reach for _, reach in _clones(services, table_id)]
    keys = frozenset[str]().union(*(reach.keys for reach in found))
    return CloneReach(keys, any(reach.everything for reach in found))


def find_sharers(services: Services, state: TableState, *, adopters: bool = False) -> dict[str, CloneReach]:
    """Find the tables that may have files in common with a table, as they are called, and what they refer to.

    They are its clones, the tables that it is a clone of, and other clones of those. With `adopters`, so are
    all that have adopted files, which may be the same.
    """
    sharers: dict[str, CloneReach] = {}
    for owner in (state.table_id, *state.origins):
        sharers |= dict(_clones(services, owner, but=state.table_id))
    for key in log_keys(services) if state.origins or adopters else ():
        log = TableLog(services, key)
        other = log.refresh()
        if other is None or other.removed or other.table_id == state.table_id:
            continue
        if other.table_id in state.origins or (adopters and other.adopted is not None):
            sharers[_called(other)] = CloneReach(Reach(services, log, other.table_id).keys)
    return sharers


def _called(state: TableState) -> str:
    return f"`{state.name}`, which was dropped" if state.dropped else f"`{state.name}`"


def _clones(services: Services, table_id: str, but: str | None = None) -> Iterator[tuple[str, CloneReach]]:
    """Yield the names of a table's clones, what each refers to, and the note about it.

    Notes are listed until there are no new ones. A clone of a clone may have begun after the notes were
    listed, and the lease that kept its files have ended before the first clone was looked at.
    """
    seen: set[str] = set()
    while fresh := [stored for stored in services.blob.list(clones(table_id)) if stored.key not in seen]:
        for stored in fresh:
            seen.add(stored.key)
            note = find_clone_note(services, stored.key)
            if note is not None and note.clone_id != but:
                yield _reach_clone(services, stored, note)


def _reach_clone(services: Services, stored: StoredObject, note: CloneNote) -> tuple[str, CloneReach]:
    """Return the name of one clone, and what it refers to, its note too if that must stay."""
    # The lease first: if it has ended, what began under it is in the log.
    held = next(live_leases(services, note.clone_id), None) is not None
    log = TableLog(services, note.log)
    state = log.refresh()
    called = f"`{note.log}`" if state is None else _called(state)
    if state is not None and state.table_id == note.clone_id and not state.removed:
        return called, CloneReach(Reach(services, log, note.clone_id).keys | {stored.key})
    is_young = stored.modified_ms + LEASE_MS > services.clock()
    keys = frozenset({stored.key}) if is_young else frozenset[str]()
    return called, CloneReach(keys, everything=held)  # it is about to begin, or somebody is still reading it


def held_leases(services: Services, table_id: str, state: TableState | None) -> list[Lease]:
    """Return the leases on a table, also those of readers that hold all tables of its stream at once."""
    stream_id = None if state is None else state.labels.get("stream.id")
    together = () if stream_id is None else live_leases(services, str(stream_id))
    return [*live_leases(services, table_id), *together]


@contextmanager
def _suppress_missing() -> Iterator[None]:
    """Continue without an object that an earlier vacuum has removed, but not without a damaged one."""
    try:
        yield
    except NotFoundError:
        pass
    except CorruptTableError as error:
        if not error.missing:
            raise
