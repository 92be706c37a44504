"""`Journal`: a small durable value that grows by changes, kept in a log of the consensus service.

Every so often an entry holds the whole value beside its changes, so reading starts at the last of those. The
log is cut off behind it, and nothing is kept anywhere else. Only the caller knows what the value means.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import msgspec

from instar.errors import (
    CommitOutcomeUnknownError,
    ConflictError,
    CorruptTableError,
    InstarError,
    StorageError,
    StorageTimeoutError,
)
from instar.storage.backoff import pauses
from instar.storage.frame import decode_record, encode_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from instar.storage import Versioned
    from instar.table import Services

__all__ = ["Codec", "Journal"]

S = TypeVar("S")
C = TypeVar("C")

WHOLE_EVERY: Final = 64
"""After this many entries, one holds the whole value."""

_RELOADS: Final = 10


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    """One entry: who changed what, and where reading may start."""

    id: str
    at: int
    by: str
    start: int
    changes: bytes
    whole: bytes | None = None


@dataclass(frozen=True)
class Codec(Generic[S, C]):
    """How a value of one kind is kept: the types of its changes and of its image, and what a change does."""

    kind: str
    change: object
    image: object
    apply: Callable[[S | None, C], S]
    to_image: Callable[[S], object]
    from_image: Callable[[object], S]

    def decode_changes(self, data: bytes) -> Sequence[C]:
        """Read the changes of an entry."""
        changes: Sequence[C] = msgspec.msgpack.decode(data, type=tuple[self.change, ...])  # type: ignore[name-defined]
        return changes

    def decode_image(self, data: bytes) -> S:
        """Read a whole value."""
        return self.from_image(msgspec.msgpack.decode(data, type=self.image))


class Journal(Generic[S, C]):
    """The journal that has a key. Threads may share it."""

    def __init__(self, services: Services, key: str, codec: Codec[S, C]) -> None:
        self._services = services
        self._key = services.log_key(key)
        self._name = key
        self._codec = codec
        self._value: S | None = None
        self._seqno = -1
        self._start = -1
        self._lock = threading.RLock()

    @property
    def known(self) -> S | None:
        """The value as of the last look, without a request."""
        return self._value

    @property
    def seqno(self) -> int:
        """The number of the last entry that was seen; -1 if there is none."""
        return self._seqno

    def refresh(self) -> S | None:
        """Read what is new, and return the value; None if there never was one."""
        with self._lock:
            news = None if self._value is None else self._services.consensus.scan(self._key, self._seqno + 1)
            if news is None or not self._replay(news):
                self._reload()
            return self._value

    def commit(self, decide: Callable[[S | None], Sequence[C]]) -> S | None:
        """Commit the changes that `decide` returns for the current value, and return the value after them.

        It is asked again whenever the value has changed, and what it raises is passed on once the value is
        known to be current. No changes means that there is nothing to do.
        """
        with self._lock:
            return self._commit(decide)

    def _commit(self, decide: Callable[[S | None], Sequence[C]]) -> S | None:
        commit_id = self._services.new_id()
        deadline = time.monotonic() + self._services.patience
        waiting = pauses()
        pending: int | None = None
        changes: Sequence[C] = ()
        if self._value is not None:
            with suppress(InstarError):
                changes = decide(self._value)
        if not changes:
            changes = decide(self.refresh())
        while changes:
            entry = self._entry(commit_id, changes)
            try:
                if self._append(entry):
                    self._advance(entry)
                    return self._value
            except StorageTimeoutError:
                pending = self._seqno + 1
            except StorageError:
                if pending is None:
                    raise
            time.sleep(next(waiting))
            if self._landed(commit_id, pending, waiting, deadline):
                return self._value
            if pending is not None and self._seqno >= pending:
                pending = None  # its place was taken by another: it never will land
            if time.monotonic() > deadline:
                raise self._gave_up(commit_id, pending)
            changes = decide(self._value)
        return self._value

    def _landed(self, commit_id: str, pending: int | None, waiting: Iterator[float], deadline: float) -> bool:
        """Refresh, and tell whether an attempt without an answer is in the log."""
        while True:
            try:
                self.refresh()
                if pending is None or self._seqno < pending:
                    return False
                found = self._services.consensus.scan(self._key, pending, 1)
                break
            except StorageError as error:
                if pending is None:
                    raise
                if time.monotonic() > deadline:
                    raise CommitOutcomeUnknownError(self._name, commit_id, str(error)) from error
            time.sleep(next(waiting))
        if not found or found[0].seqno != pending:
            why = "the log was cut off before the commit could be found in it"
            raise CommitOutcomeUnknownError(self._name, commit_id, why)
        return self._decode(found[0]).id == commit_id

    def _gave_up(self, commit_id: str, pending: int | None) -> InstarError:
        patience = f"{self._services.patience:g} seconds"
        if pending is not None:
            return CommitOutcomeUnknownError(
                self._name, commit_id, f"the store did not answer for {patience}"
            )
        return ConflictError(
            f"cannot change `{self._name}`: others kept committing first, for {patience}. Nothing was done; "
            "try again."
        )

    def _entry(self, commit_id: str, changes: Sequence[C]) -> _Entry:
        seqno = self._seqno + 1
        is_whole = seqno - self._start >= WHOLE_EVERY or seqno == 0
        whole = None
        if is_whole:
            value = self._value
            for change in changes:
                value = self._codec.apply(value, change)
            assert value is not None  # noqa: S101 -- there is at least one change
            whole = msgspec.msgpack.encode(self._codec.to_image(value))
        return _Entry(
            commit_id,
            self._services.clock(),
            self._services.author(),
            seqno if is_whole else self._start,
            msgspec.msgpack.encode(tuple(changes)),
            whole,
        )

    def _append(self, entry: _Entry) -> bool:
        seqno = self._seqno + 1
        data = encode_record(self._codec.kind, f"{self._key}@{seqno}", entry)
        expected = None if seqno == 0 else seqno - 1
        return bool(self._services.consensus.append(self._key, expected, data))

    def _advance(self, entry: _Entry) -> None:
        """Fold in an entry that has just landed; cut the log off behind the whole value before this one."""
        before = self._start
        self._fold(self._seqno + 1, entry)
        if entry.whole is not None and before > 0:
            with suppress(StorageError):  # it only saves space
                self._services.consensus.truncate(self._key, before)

    def _fold(self, seqno: int, entry: _Entry) -> None:
        value = self._value
        try:
            for change in self._codec.decode_changes(entry.changes):
                value = self._codec.apply(value, change)
        except (msgspec.MsgspecError, ValueError) as error:
            raise CorruptTableError(self._what(seqno), f"its content does not decode ({error})") from None
        self._value, self._seqno, self._start = value, seqno, entry.start

    def _replay(self, entries: Iterable[Versioned]) -> bool:
        """Fold in what follows; False if some of it was cut off."""
        for versioned in entries:
            if versioned.seqno != self._seqno + 1:
                return False
            self._fold(versioned.seqno, self._decode(versioned))
        return True

    def _reload(self) -> None:
        """Start at the last entry that holds the whole value, and continue to the current last entry."""
        consensus = self._services.consensus
        for _ in range(_RELOADS):
            tail = consensus.tail(self._key)
            if not tail:
                return
            start = self._decode(tail[-1]).start
            missing = max(tail[0].seqno - start, 0)
            between = consensus.scan(self._key, start, missing) if missing else []
            first, *rest = [*between, *(versioned for versioned in tail if versioned.seqno >= start)]
            if first.seqno != start:
                continue  # cut off meanwhile: there is a newer whole value
            whole = self._decode(first).whole
            if whole is None:
                raise CorruptTableError(self._what(start), "it does not hold the whole value that it should")
            self._value = self._codec.decode_image(whole)
            self._seqno = self._start = start
            if self._replay(rest):
                return
        raise CorruptTableError(self._what(0), "the whole value that the last entry refers to is missing")

    def _decode(self, versioned: Versioned) -> _Entry:
        what = self._what(versioned.seqno)
        identity = f"{self._key}@{versioned.seqno}"
        return decode_record(versioned.data, self._codec.kind, identity, _Entry, what=what)

    def _what(self, seqno: int) -> str:
        return f"entry {seqno} of `{self._name}`"
