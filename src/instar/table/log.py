"""`TableLog`: a handle on one table's log that knows the state at its end.

It refreshes by reading only what is new, and commits by compare-and-set: decide on the state, append,
and if somebody else was faster decide again. A commit is found by its id after a lost reply.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

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
    Commit,
    Created,
    Dropped,
    Start,
    Step,
    TableState,
    apply,
    decode_commit,
    decode_rollup,
    encode_commit,
    rebase,
)
from instar.storage.backoff import pauses
from instar.storage.frame import decode_frame, encode_frame
from instar.table.layout import rollup_key
from instar.table.rollup import ROLLUP_EVERY, write_rollup

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.storage import Versioned
    from instar.table.services import Services

__all__ = ["Committed", "Decide", "Entry", "TableLog"]

Decide = Callable[[TableState | None], tuple[Step, ...]]
"""A command that only lacks the state: it answers with the steps to commit, or raises."""

_RECENT: Final = 10_000
_RELOADS: Final = 10
_LONGEST_TAIL: Final = 4 * ROLLUP_EVERY


class Entry(NamedTuple):
    """A commit and its place in the log."""

    seqno: int
    commit: Commit


class Committed(NamedTuple):
    """What a commit came to: the state after it, and its entry, or None if there was nothing to do."""

    state: TableState
    entry: Entry | None


class TableLog:
    """The log of one table, by name. Threads may share it; no call sees an older state than one before it."""

    def __init__(self, services: Services, name: str) -> None:
        self._services = services
        self._name = name
        self._key = services.log_key(name)
        self._state: TableState | None = None
        self._recent: deque[tuple[int, str]] = deque(
            maxlen=_RECENT
        )  # (seqno, commit id) as they were applied
        self._lock = threading.RLock()
        self._commit_lock = threading.Lock()
        self._rolling: threading.Thread | None = None

    @property
    def name(self) -> str:
        """The table's name."""
        return self._name

    def load(self) -> TableState:
        """Return the state at the end of the log; the table must exist."""
        return self.check_exists(self.refresh())

    def exists(self) -> bool:
        """Whether there is a table, from the last commit alone."""
        head = self._services.consensus.head(self._key)
        return head is not None and not any(
            isinstance(step, Dropped) for step in self._decode(head).commit.steps
        )

    def check_exists(self, state: TableState | None) -> TableState:
        """Return a state of a table that is there, or raise."""
        if state is None or state.dropped:
            raise TableNotFoundError(self._name, dropped=state is not None)
        return state

    def refresh(self) -> TableState | None:
        """Read what is new, and return the state at the end of the log (None: there never was a table)."""
        with self._lock:
            if self._state is None or not self._catch_up(self._state.seqno + 1) or _lags(self._state):
                self._reload()
            return self._state

    @contextmanager
    def pinned(self) -> Iterator[TableState]:
        """Hold the current state for reading: no vacuum deletes what it refers to.

        The lease comes first and the state after it, in the layout of the newest rollup that it knows: a
        vacuum that did not see the lease has kept what that state refers to, and one that did keeps it too.
        """
        known = self.load()
        with self._services.leases.hold(known.table_id, known.lease_seqno):
            state = self.load()
            if state.start.rollup and state.folded < state.start.seqno:
                with self._lock:
                    self._reload()
                state = self.load()
            yield state

    def entries(self, from_seqno: int = 0) -> Iterator[Entry]:
        """Yield the commits of the log from a seqno on, as far back as it has not been truncated."""
        for versioned in self._services.consensus.scan(self._key, from_seqno):
            yield self._decode(versioned)

    def commit(self, decide: Decide) -> Committed:
        """Commit the steps that `decide` answers for the state at the end of the log.

        It is asked again whenever the state has changed, and what it raises is passed on once the state is
        known to be current. No steps means that there is nothing to do.
        """
        with self._commit_lock:
            committed = self._commit(decide)
        if committed.entry is not None:
            self._roll_if_due(committed.state)
        return committed

    def checkpoint(self) -> TableState:
        """Write a rollup now, and a commit that tells everybody to start there."""
        state = self.check_exists(self.refresh())
        if state.start.seqno < state.seqno:
            self._roll(state)
            self.commit(lambda _: (Checkpointed(),))
        return self.load()

    def load_rollup(self, table_id: str, seqno: int) -> TableState:
        """Return the state that was rolled up at a seqno."""
        key = rollup_key(table_id, seqno)
        payload = decode_frame(
            self._services.blob.get(key), "rollup", f"{table_id}@{seqno}", what=f"rollup {key}"
        )
        return decode_rollup(payload, what=f"rollup {key}")

    def settle(self) -> None:
        """Wait until no rollup is being written in the background."""
        if self._rolling is not None:
            self._rolling.join()

    def _commit(self, decide: Decide) -> Committed:
        commit_id = self._services.new_id()
        deadline = time.monotonic() + self._services.patience
        waiting = pauses()
        pending: int | None = None  # the seqno of an attempt that got no answer, while it may still land
        state = self._state
        steps = _guess(decide, state)
        if not steps:
            state = self.refresh()
            steps = decide(state)
        while steps:
            entry = self._entry(state, commit_id, steps)
            try:
                if self._append(entry):
                    return Committed(self._advance(entry), entry)
                pending = None
            except StorageTimeoutError:
                pending = entry.seqno
            except StorageError as error:
                if pending is not None:
                    raise CommitOutcomeUnknownError(self._name, commit_id, str(error)) from error
                raise
            if time.monotonic() > deadline:
                raise self._gave_up(commit_id, pending)
            time.sleep(next(waiting))
            state, landed, pending = self._look(commit_id, pending)
            if landed is not None:
                return Committed(self.check_exists(state), landed)
            steps = decide(state)
        return Committed(self.check_exists(state), None)

    def _look(
        self, commit_id: str, pending: int | None
    ) -> tuple[TableState | None, Entry | None, int | None]:
        """Refresh, and find out what became of an attempt without an answer: landed, lost, or pending."""
        try:
            state = self.refresh()
        except StorageError as error:
            if pending is not None:
                raise CommitOutcomeUnknownError(self._name, commit_id, str(error)) from error
            raise
        if pending is None or state is None or state.seqno < pending:
            return state, None, pending
        with self._lock:
            ids = dict(self._recent)
        if pending not in ids:
            why = "the log was truncated before the commit could be looked for in it"
            raise CommitOutcomeUnknownError(self._name, commit_id, why)
        if ids[pending] != commit_id:
            return state, None, None
        return state, next(self.entries(pending)), None

    def _gave_up(self, commit_id: str, pending: int | None) -> InstarError:
        patience = f"{self._services.patience:g} seconds"
        if pending is not None:
            return CommitOutcomeUnknownError(
                self._name, commit_id, f"the store did not answer for {patience}"
            )
        why = f"others were faster for {patience}"
        return ConflictError(f"cannot commit to `{self._name}`: {why}. Nothing was done; try again.")

    def _entry(self, state: TableState | None, commit_id: str, steps: tuple[Step, ...]) -> Entry:
        seqno = 0 if state is None else state.seqno + 1
        created = next((step for step in steps if isinstance(step, Created)), None)
        if created is not None:
            table_id, start = created.table_id, Start(seqno, rollup=False)
        else:
            table_id, start = self.check_exists(state).table_id, self.check_exists(state).start
        commit = Commit(commit_id, self._services.clock(), self._services.author(), table_id, start, steps)
        return Entry(seqno, commit)

    def _append(self, entry: Entry) -> bool:
        data = encode_frame("commit", self._identity(entry.seqno), encode_commit(entry.commit))
        expected = None if entry.seqno == 0 else entry.seqno - 1
        return bool(self._services.consensus.append(self._key, expected, data))

    def _advance(self, entry: Entry) -> TableState:
        """Apply an entry, unless a refresh by another thread has been faster."""
        with self._lock:
            if self._state is None or entry.seqno == self._state.seqno + 1:
                self._state = apply(self._state, self._name, entry.seqno, entry.commit)
                self._recent.append((entry.seqno, entry.commit.id))
            return self._state

    def _catch_up(self, from_seqno: int) -> bool:
        """Apply what is new; False if some of it has been truncated, so that a rollup is needed."""
        for versioned in self._services.consensus.scan(self._key, from_seqno):
            if versioned.seqno != from_seqno:
                return False
            self._advance(self._decode(versioned))
            from_seqno += 1
        return True

    def _reload(self) -> None:
        """Read the state from the newest rollup and what follows it."""
        for _ in range(_RELOADS):
            head = self._services.consensus.head(self._key)
            if head is None:
                self._state = None
                return
            start = self._decode(head).commit
            try:
                self._state = (
                    self.load_rollup(start.table_id, start.start.seqno) if start.start.rollup else None
                )
            except NotFoundError:
                continue  # a vacuum has removed this rollup after writing a newer one: look again
            if self._catch_up(start.start.seqno + start.start.rollup):
                return
        raise CorruptTableError(f"the log of `{self._name}`", "the rollup that it refers to is missing")

    def _decode(self, versioned: Versioned) -> Entry:
        what = f"commit {versioned.seqno} of `{self._name}`"
        payload = decode_frame(versioned.data, "commit", self._identity(versioned.seqno), what=what)
        return Entry(versioned.seqno, decode_commit(payload, what=what))

    def _identity(self, seqno: int) -> str:
        return f"{self._key}@{seqno}"

    def _roll_if_due(self, state: TableState) -> None:
        """Start a rollup in the background: by turns, so that of many writers one does it."""
        age = state.seqno - state.start.seqno
        due = age >= ROLLUP_EVERY and (state.seqno % ROLLUP_EVERY == 0 or age >= 2 * ROLLUP_EVERY)
        if due and not state.dropped and (self._rolling is None or not self._rolling.is_alive()):
            self._rolling = threading.Thread(target=self._roll_quietly, args=(state,), daemon=True)
            self._rolling.start()

    def _roll_quietly(self, state: TableState) -> None:
        """Write a rollup that only saves work: if it fails, the next commit that is due tries again."""
        try:
            self._roll(state)
        except NotFoundError:
            with self._lock:
                self._state = None  # a vacuum has removed chunks of this layout: read a newer one
        except InstarError:
            pass

    def _roll(self, state: TableState) -> TableState:
        rolled = write_rollup(self._services, state)
        with self._lock:
            if self._state is not None and self._state.table_id == rolled.table_id:
                self._state = rebase(self._state, rolled)
        return rolled


def _lags(state: TableState) -> bool:
    """Whether a state has replayed so much that starting from a newer rollup is better."""
    return state.start.seqno - state.folded > _LONGEST_TAIL and len(state.tail) > _LONGEST_TAIL


def _guess(decide: Decide, state: TableState | None) -> tuple[Step, ...]:
    """Decide on a state that may be old: only steps count, for an append will find out."""
    try:
        return () if state is None else decide(state)
    except InstarError:
        return ()
