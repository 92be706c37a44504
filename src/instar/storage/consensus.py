"""The consensus service: a short log per key that grows by compare-and-set.

The contract and its in-memory backend live here; `bloblog` and `postgres` are the durable ones.
"""

# The protocol documents the methods.
# ruff: noqa: D102

from __future__ import annotations

import threading
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from instar.storage.keys import check_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.storage.blob import Data

__all__ = ["TAIL", "AppendResult", "Consensus", "MemoryConsensus", "Versioned"]


TAIL: Final = 4
"""How many entries a tail has at most."""


@dataclass(frozen=True, slots=True)
class Versioned:
    """One entry of a log."""

    seqno: int
    data: bytes


class AppendResult(Enum):
    """What became of an append; only `LANDED` is true."""

    LANDED = "landed"
    MISMATCH = "mismatch"

    def __bool__(self) -> bool:
        return self is AppendResult.LANDED


class Consensus(Protocol):
    """Logs by key: entries numbered 0, 1, 2 … of which old ones may be cut off and the last one never.

    Every method is linearizable and may be called from many threads and processes. Keys obey
    `check_key`. `StorageError` means that nothing happened, `StorageTimeoutError` that it is not known.
    Reads are retried a few times before either is raised, and create nothing; appends are never repeated.
    """

    def head(self, key: str) -> Versioned | None:
        """Return the last entry, or None if the log has none and never had."""

    def tail(self, key: str) -> list[Versioned]:
        """Return the last entry and, where that costs little, some before it, in order and without gaps."""

    def append(self, key: str, expected_seqno: int | None, data: Data) -> AppendResult:
        """Add an entry after `expected_seqno`, or the very first one (seqno 0) after None.

        `MISMATCH` says that the last entry was another one and nothing was written. After a
        `StorageTimeoutError` the entry may have landed, so a retry may be answered with `MISMATCH` by its
        own first attempt: entries carry a commit's id, and the caller scans for it before retrying.
        """

    def scan(self, key: str, from_seqno: int = 0, limit: int | None = None) -> list[Versioned]:
        """Return the entries from `from_seqno` on, in order and without gaps, at most `limit`.

        If the first one returned is above `from_seqno`, then what lies between has been cut off.
        """

    def truncate(self, key: str, below: int) -> None:
        """Cut off the entries below a seqno, except the last entry of the log.

        Safe to repeat; if it is killed in the middle, nothing or a beginning of the log is cut off,
        and a writer that was asleep all the while cannot bring an entry back.
        """

    def keys(self, prefix: str = "") -> Iterator[str]:
        """List the keys that have entries and begin with `prefix` (any text), in byte order."""

    def close(self) -> None:
        """Let go of connections; a closed handle must not be used."""


@dataclass(slots=True)
class _Log:
    floor: int
    entries: list[bytes]

    @property
    def next_seqno(self) -> int:
        return self.floor + len(self.entries)


class MemoryConsensus:
    """The `Consensus` of one process's memory, for tests and throw-away stores."""

    _shared: ClassVar[dict[str, MemoryConsensus]] = {}

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logs: dict[str, _Log] = {}

    @classmethod
    def named(cls, name: str) -> MemoryConsensus:
        """Return the one of that name, the same for the whole process."""
        return cls._shared.setdefault(name, cls())

    def head(self, key: str) -> Versioned | None:
        check_key(key)
        with self._lock:
            log = self._logs.get(key)
            return Versioned(log.next_seqno - 1, log.entries[-1]) if log else None

    def tail(self, key: str) -> list[Versioned]:
        check_key(key)
        with self._lock:
            log = self._logs.get(key, _Log(0, []))
            first = max(len(log.entries) - TAIL, 0)
            return [Versioned(log.floor + at, log.entries[at]) for at in range(first, len(log.entries))]

    def append(self, key: str, expected_seqno: int | None, data: Data) -> AppendResult:
        check_key(key)
        with self._lock:
            log = self._logs.get(key, _Log(0, []))
            if log.next_seqno != (0 if expected_seqno is None else expected_seqno + 1):
                return AppendResult.MISMATCH
            log.entries.append(bytes(data))
            self._logs[key] = log
            return AppendResult.LANDED

    def scan(self, key: str, from_seqno: int = 0, limit: int | None = None) -> list[Versioned]:
        check_key(key)
        with self._lock:
            log = self._logs.get(key, _Log(0, []))
            start = max(from_seqno, log.floor)
            stop = log.next_seqno if limit is None else min(start + limit, log.next_seqno)
            return [Versioned(seqno, log.entries[seqno - log.floor]) for seqno in range(start, stop)]

    def truncate(self, key: str, below: int) -> None:
        check_key(key)
        with self._lock:
            log = self._logs.get(key)
            if log:
                gone = min(below, log.next_seqno - 1) - log.floor
                if gone > 0:
                    del log.entries[:gone]
                    log.floor += gone

    def keys(self, prefix: str = "") -> Iterator[str]:
        with self._lock:
            found = [key for key in self._logs if key.startswith(prefix)]
        return iter(sorted(found, key=str.encode))

    def close(self) -> None:
        pass
