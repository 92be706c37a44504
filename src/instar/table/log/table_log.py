"""`TableLog`: a handle on one table's log that knows the state at its end.

It refreshes by reading only what is new, and commits by compare-and-set: decide on the state, append,
and if somebody else committed first, decide again. A commit is found by its id after a lost reply.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from instar.errors import (
    CommitOutcomeUnknownError,
    ConflictError,
    CorruptTableError,
    InstarError,
    NotFoundError,
    StorageError,
    StorageTimeoutError,
    TableNotFoundError,
)
from instar.state import (
    Checkpointed,
    Cloned,
    CommitRecord,
    Created,
    Dropped,
    Naming,
    Pointed,
    Removed,
    Renamed,
    Renaming,
    Start,
    Step,
    TableState,
    Undropped,
    apply,
    check_follows,
    rebase,
)
from instar.state.table_state import naming_after
from instar.storage.backoff import pauses
from instar.table.log.entries import Entries, Entry
from instar.table.log.leases import LEASE_MS
from instar.table.log.pin import Pin
from instar.table.log.rollup import ROLLUP_EVERY, load_rollup, write_rollup

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from instar.table.services import Services

__all__ = ["Committed", "Decide", "TableLog"]

Decide = Callable[[TableState | None], tuple[Step, ...]]
"""A command that only lacks the state: it answers with the steps to commit, or raises."""

_RELOADS: Final = 10
_GUESS_MS: Final = LEASE_MS // 3
"""A handle that has not looked for longer looks before it commits: a vacuum keeps the log for thrice as long.

So a commit is never sent to a place that was cut off, where its outcome could not be known.
"""
_LONGEST_TAIL: Final = 4 * ROLLUP_EVERY
_WITHOUT_TABLE: Final = (Undropped, Removed, Pointed, Renaming)
"""Steps that a log may have while there is no table in it."""


class Committed(NamedTuple):
    """The result of a commit: the state after it, and its entry, or None if there was nothing to do."""

    state: TableState
    entry: Entry | None


class TableLog:
    """The log of one table, by name. Threads may share it; no call sees an older state than one before it.

    A table that was renamed has the log of its first name, which is `key`; `open_log` finds it. A handle
    stays with its table, whatever that is called.
    """

    def __init__(self, services: Services, name: str, key: str | None = None) -> None:
        self._services = services
        self._name = name
        self._key = key or name
        self._entries = Entries(services.consensus, services.log_key(self._key), name)
        self._state: TableState | None = None
        self._table_id: str | None = None  # of the table that this handle is on, once it has seen one
        self._looked_at = 0  # when the state was last known to be current
        self._lock = threading.RLock()
        self._commit_lock = threading.Lock()
        self._rolling: threading.Thread | None = None

    @property
    def name(self) -> str:
        """The table's name, as far as this handle knows."""
        state = self._state
        return self._name if state is None or state.table_id != self._table_id else state.name

    @property
    def key(self) -> str:
        """What the log is found by: the first name of the table."""
        return self._key

    @property
    def table_id(self) -> str | None:
        """The id of the table that this handle is on, if it has seen one."""
        return self._table_id

    def load(self) -> TableState:
        """Return the state at the end of the log; the table must exist."""
        return self.check_exists(self.refresh())

    def load_known(self) -> TableState:
        """Return the state that was seen last: a commit finds out if there is a later one."""
        return self.load() if self._state is None else self.check_exists(self._state)

    def find_naming(self) -> Naming | None:
        """Return what the last commit alone says about names; None if there is none."""
        head = self._entries.head()
        if head is None:
            return None
        ended = any(isinstance(step, Dropped) for step in head.commit.steps)
        return head.commit.naming or Naming(self._key, ended, None)

    def bind(self, table_id: str) -> None:
        """Stay with the table that has this id, as this handle does with the first one that it sees."""
        self._table_id = table_id

    def check_exists(self, state: TableState | None) -> TableState:
        """Return the state of an existing table, or raise: also if it is a later table of the same name."""
        if state is None or state.dropped or state.table_id != (self._table_id or state.table_id):
            never = state is None or (state.removed and not state.dropped_at)  # only a pointer was there
            replaced = state is not None and not state.dropped
            raise TableNotFoundError(self.name, dropped=not never and not replaced, replaced=replaced)
        if self._table_id is None and state.name != self._name:
            raise TableNotFoundError(self._name, renamed=state.name)
        self.bind(state.table_id)
        return state

    def refresh(self) -> TableState | None:
        """Read what is new, and return the state at the end of the log (None: there never was a table)."""
        with self._lock:
            self._looked_at = self._services.clock()
            known = self._state
            state = None if known is None else self._replay(known, known.seqno + 1)
            self._state = self._reload() if state is None or _lags(state) else state
            return self._state

    def newest(self) -> TableState | None:
        """Return what `refresh` does, its parts laid out as in the newest rollup that the log names.

        A reader that takes a lease first can rely on every object that it refers to.
        """
        state = self.refresh()
        if state is not None and state.start.rollup and state.folded < state.start.seqno:
            with self._lock:
                self._state = state = self._reload()
        return state

    def pinned(self, write_id: str | None = None) -> Pin:
        """Hold the current state for reading: no vacuum deletes what it refers to, nor what the write makes.

        The lease comes first and the state after it, in the layout of the newest rollup that the log tells
        of: a vacuum that did not see the lease has kept what that state refers to, and one that did keeps it.
        A lease from an older state on holds more than that, so what this handle knows already will do.
        """
        leases = self._services.leases
        known = self._state
        if known is None or known.dropped:
            known = self.load()
        lease = leases.take(known.table_id, known.base.seqno, write_id, known.upper - 1)
        with ExitStack() as undo:
            undo.callback(leases.release, lease)
            pin = Pin(self.check_exists(self.newest()), leases, lease)
            undo.pop_all()
        return pin

    def entries(self, from_seqno: int = 0) -> Iterator[Entry]:
        """Yield the commits of the log from a seqno on, as far back as it has not been truncated."""
        known = -1 if self._state is None else self._state.seqno
        before = None
        for entry in self._entries.scan(from_seqno):
            if before is not None:
                check_follows(self._name, entry.seqno, entry.commit, before.commit.id)
            yield entry
            from_seqno, before = entry.seqno + 1, entry
        if from_seqno <= known:
            raise self._entries.lost(from_seqno, known)

    def entry_from(self, seqno: int) -> Entry:
        """Return the commit at a seqno that the log has reached, or the first that is left after it."""
        found = self._entries.first_from(seqno)
        if found is None:
            raise self._entries.lost(seqno, self.load().seqno)
        return found

    def commit(self, decide: Decide, commit_id: str | None = None) -> Committed:
        """Commit the steps that `decide` returns for the state at the end of the log.

        It is asked again whenever the state has changed, and what it raises is passed on once the state is
        known to be current. No steps means that there is nothing to do.
        """
        with self._commit_lock:
            committed = self._commit(decide, commit_id or self._services.new_id())
        if committed.entry is not None:
            self._roll_if_due(committed.state)
        return committed

    def checkpoint(self, *, clean: bool = False) -> TableState:
        """Write a rollup now, and a commit that tells everybody to start there, unless there is no need.

        With `clean`, nothing of parts that were removed, and of fields that were dropped, is left in it.
        """
        if clean or not _is_checkpointed(self.load()):
            self._roll(clean=clean)
        return self.load()

    def settle(self) -> None:
        """Wait until no rollup is being written in the background."""
        if self._rolling is not None:
            self._rolling.join()

    def _commit(self, decide: Decide, commit_id: str) -> Committed:
        deadline = time.monotonic() + self._services.patience
        waiting = pauses()
        pending: int | None = None  # the seqno of an attempt that got no answer, while it may still land
        state = self._state
        asleep = self._services.clock() - self._looked_at > _GUESS_MS
        steps = () if asleep else _guess(decide, state)
        if not steps:
            state = self.refresh()
            steps = decide(state)
        while steps:
            entry = self._entry(state, commit_id, steps)
            refused = False
            try:
                if self._entries.append(entry):
                    return Committed(self._advance(entry), entry)
                refused = True
            except StorageTimeoutError:
                pending = entry.seqno
            except StorageError:
                if pending is None:
                    raise
            time.sleep(next(waiting))
            state, landed, pending = self._look(commit_id, pending, waiting, deadline)
            if landed is not None:
                return landed
            if refused and state is not None and state.seqno == entry.seqno - 1:
                self._entries.check_last(state.seqno, state.commit_id)  # nobody was faster
            if time.monotonic() > deadline:
                raise self._gave_up(commit_id, pending)
            steps = decide(state)
        return Committed(self.check_exists(state), None)

    def _look(
        self, commit_id: str, pending: int | None, waiting: Iterator[float], deadline: float
    ) -> tuple[TableState | None, Committed | None, int | None]:
        """Refresh, and find out what became of an attempt without an answer: landed, lost, or still pending.

        Once its place in the log is taken, it has landed or never will. A store that cannot be read is asked
        again: a commit that may have happened must not be reported as failed.
        """
        while True:
            try:
                state = self.refresh()
                if pending is None or state is None or state.seqno < pending:
                    return state, None, pending
                found = self.entry_from(pending)
                break
            except StorageError as error:
                if pending is None:
                    raise
                if time.monotonic() > deadline:
                    raise CommitOutcomeUnknownError(self._name, commit_id, str(error)) from error
            time.sleep(next(waiting))
        if found.seqno != pending:
            why = "the log was truncated before the commit could be found in it"
            raise CommitOutcomeUnknownError(self._name, commit_id, why)
        return state, Committed(state, found) if found.commit.id == commit_id else None, None

    def _gave_up(self, commit_id: str, pending: int | None) -> InstarError:
        patience = f"{self._services.patience:g} seconds"
        if pending is not None:
            return CommitOutcomeUnknownError(
                self._name, commit_id, f"the store did not answer for {patience}"
            )
        why = f"others kept committing first, for {patience}"
        return ConflictError(f"cannot commit to `{self._name}`: {why}. Nothing was done; try again.")

    def _entry(self, state: TableState | None, commit_id: str, steps: tuple[Step, ...]) -> Entry:
        seqno = 0 if state is None else state.seqno + 1
        first = steps[0]
        if isinstance(first, Created | Cloned) or (state is None and isinstance(first, Pointed)):
            table_id, start = first.table_id, Start(seqno, rollup=isinstance(first, Cloned))
        else:
            known = state if isinstance(first, _WITHOUT_TABLE) else self.check_exists(state)
            if known is None:
                raise TableNotFoundError(self._name)
            # What is left of a table that is no more is this commit: nobody needs those before it.
            ends = isinstance(first, Removed)
            table_id, start = known.table_id, Start(seqno, rollup=False) if ends else known.base
        after = None if state is None else state.commit_id
        now, author = self._services.clock(), self._services.author()
        commit = CommitRecord(commit_id, now, author, table_id, start, steps, after)
        return Entry(seqno, replace(commit, naming=self._naming(state, seqno, commit)))

    def _naming(self, state: TableState | None, seqno: int, commit: CommitRecord) -> Naming | None:
        """Return what a commit must say about names: usually nothing."""
        first = commit.steps[0]
        if isinstance(first, Cloned):
            return None if self._key == self._name else Naming(self._name, ended=False, pointer=None)
        usual = state is None or (state.name == self._key and state.pointer is None and not state.dropped)
        if usual and not isinstance(first, (*_WITHOUT_TABLE, Renamed)) and self._key == self._name:
            return None
        return naming_after(apply(state, self._key, seqno, commit), self._key, commit.steps)

    def _advance(self, entry: Entry) -> TableState:
        """Apply a commit that has just landed, unless a refresh by another thread has been faster."""
        with self._lock:
            self._looked_at = self._services.clock()
            self.bind(entry.commit.table_id)
            if isinstance(entry.commit.steps[0], Cloned):
                self._state = self._reload()
            elif self._state is None or entry.seqno == self._state.seqno + 1:
                self._state = apply(self._state, self._key, entry.seqno, entry.commit)
            assert self._state is not None, "the log has the entry that has just landed"  # noqa: S101
            return self._state

    def _replay(
        self, state: TableState | None, from_seqno: int, entries: Iterable[Entry] | None = None
    ) -> TableState | None:
        """Apply what follows to a state; None if some of it is truncated, so that a rollup is needed."""
        for entry in self._entries.scan(from_seqno) if entries is None else entries:
            if entry.seqno != from_seqno or isinstance(entry.commit.steps[0], Cloned):
                return None
            state = apply(state, self._key, from_seqno, entry.commit)
            from_seqno += 1
        return state

    def _reload(self) -> TableState | None:
        """Read the state from the newest rollup and what follows it, up to what is the last entry now."""
        for _ in range(_RELOADS):
            tail = self._entries.tail()
            if not tail:
                return None
            head = tail[-1]
            what, table_id, start = self._entries.what(head.seqno), head.commit.table_id, head.commit.start
            try:
                rolled = load_rollup(self._services.blob, table_id, start.seqno) if start.rollup else None
            except NotFoundError:
                continue  # a vacuum has removed this rollup after writing a newer one: look again
            first = start.seqno + start.rollup
            missing = max(tail[0].seqno - first, 0)
            between = self._entries.scan(first, missing) if missing else ()
            known = (entry for entry in tail if entry.seqno >= first)
            state = self._replay(rolled, first, chain(between, known))
            if state is not None and state.seqno < head.seqno:
                raise self._entries.lost(state.seqno + 1, head.seqno)
            if state is not None:
                return state
        raise CorruptTableError(what, "the rollup that it refers to is missing")

    def _roll_if_due(self, state: TableState) -> None:
        """Start a rollup in the background: by turns, so that of many writers one does it."""
        age = state.seqno - state.base.seqno
        due = age >= ROLLUP_EVERY and (state.seqno % ROLLUP_EVERY == 0 or age >= 2 * ROLLUP_EVERY)
        if due and not state.dropped and (self._rolling is None or not self._rolling.is_alive()):
            with suppress(RuntimeError):  # the process is about to end, and starts no more threads
                self._rolling = self._services.start(self._roll_quietly)

    def _roll_quietly(self) -> None:
        """Write a rollup that only saves work: if it fails, the next commit that is due tries again."""
        with suppress(InstarError):
            self._roll()

    def _roll(self, *, clean: bool = False) -> None:
        """Write a rollup of the current state, and commit that readers start there.

        The next commit of this handle would tell them too, but there may never be one.
        """
        write_id = self._services.new_id()
        with self.pinned(write_id) as state:
            rolled = write_rollup(self._services, state, write_id, clean=clean)
        with self._lock:
            if self._state is not None and self._state.table_id == rolled.table_id:
                self._state = rebase(self._state, rolled)
        self.commit(_announce)


def _announce(state: TableState | None) -> tuple[Step, ...]:
    """Tell of a rollup that the log does not know yet."""
    known = state is None or state.dropped or state.base == state.start
    return () if known else (Checkpointed(),)


def _is_checkpointed(state: TableState) -> bool:
    """Whether only the commit that names the last rollup came after it."""
    at = state.start.seqno
    return (
        state.seqno <= at + state.start.rollup
        and all(batch.header.seqno <= at for batch in state.tail)
        and all(removal.seqno <= at for removal in state.removals)
    )


def _lags(state: TableState) -> bool:
    """Whether a state has replayed so much that starting from a newer rollup is better."""
    return state.start.seqno - state.folded > _LONGEST_TAIL and len(state.tail) > _LONGEST_TAIL


def _guess(decide: Decide, state: TableState | None) -> tuple[Step, ...]:
    """Decide on a state that may be old: only steps count, because the append checks the state."""
    try:
        return decide(state)
    except InstarError:
        return ()
