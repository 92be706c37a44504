"""Blobs and consensus that fail in all the ways real ones do, at random or by a script.

A call is done or not done, and is answered or not: `Outcome` names the four. With a seed, the same calls meet
the same fate again.
"""

# The protocols document the methods.
# ruff: noqa: D102

from __future__ import annotations

import random
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from instar.errors import StorageError, StorageTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from instar.storage import AppendResult, Blob, Consensus, StoredObject, Versioned
    from instar.storage.blob import Data

__all__ = ["Faults", "Outcome", "UnreliableBlob", "UnreliableConsensus"]

_Answer = TypeVar("_Answer")


class Outcome(Enum):
    """What becomes of a call."""

    DONE = "done, answered"
    DONE_SILENT = "done, not answered"
    NOT_DONE = "not done, answered"
    NOT_DONE_SILENT = "not done, not answered"


class Faults:
    """Decides the outcome of each call to a service, and tells hooks about it.

    `script` is a list of (operation, outcome): each is used up by the next call of that operation. Calls that
    the script does not mention fail with probability `rate`, each way equally often. `before` and `after` are
    called with the operation and the key around what really happens; they may act on the service underneath.
    """

    def __init__(
        self,
        seed: int = 0,
        rate: float = 0.0,
        script: Iterable[tuple[str, Outcome]] = (),
        before: Callable[[str, str], None] | None = None,
        after: Callable[[str, str], None] | None = None,
    ) -> None:
        self._random = random.Random(seed)
        self._script = list(script)
        self.rate = rate
        self.before = before
        self.after = after
        self.calls: list[tuple[str, str]] = []

    def call(self, operation: str, key: str, do: Callable[[], _Answer]) -> _Answer:
        """Do something, or not, and answer, or not."""
        self.calls.append((operation, key))
        outcome = self._choose(operation)
        if self.before:
            self.before(operation, key)
        if outcome is Outcome.NOT_DONE:
            raise StorageError(f"{operation} {key}", "injected: it was not done")
        if outcome is Outcome.NOT_DONE_SILENT:
            raise StorageTimeoutError(f"{operation} {key}", "injected: no answer, not done")
        answer = do()
        if self.after:
            self.after(operation, key)
        if outcome is Outcome.DONE_SILENT:
            raise StorageTimeoutError(f"{operation} {key}", "injected: no answer, but done")
        return answer

    def _choose(self, operation: str) -> Outcome:
        if self._script and self._script[0][0] == operation:
            return self._script.pop(0)[1]
        if self._random.random() >= self.rate:
            return Outcome.DONE
        return self._random.choice([Outcome.DONE_SILENT, Outcome.NOT_DONE, Outcome.NOT_DONE_SILENT])


class UnreliableBlob:
    """A `Blob` around another one, with faults."""

    def __init__(self, blob: Blob, faults: Faults) -> None:
        self._blob = blob
        self._faults = faults

    @property
    def url(self) -> str:
        return self._blob.url

    @property
    def seeks(self) -> bool:
        return self._blob.seeks

    @property
    def settings(self) -> Mapping[str, str]:
        return self._blob.settings

    def location(self, key: str) -> str:
        return self._blob.location(key)

    def elsewhere(self, url: str) -> Blob:
        return UnreliableBlob(self._blob.elsewhere(url), self._faults)

    def put(self, key: str, data: Data, *, durable: bool = True) -> None:
        self._faults.call("put", key, lambda: self._blob.put(key, data, durable=durable))

    def put_if_absent(self, key: str, data: Data) -> bool:
        return self._faults.call("put_if_absent", key, lambda: self._blob.put_if_absent(key, data))

    def find(self, key: str) -> bytes | None:
        return self._faults.call("find", key, lambda: self._blob.find(key))

    def find_many(self, keys: Sequence[str]) -> Sequence[bytes | None]:
        return self._faults.call("find_many", " ".join(keys), lambda: self._blob.find_many(keys))

    def get(self, key: str) -> bytes:
        return self._faults.call("get", key, lambda: self._blob.get(key))

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> Sequence[bytes]:
        return self._faults.call("get_ranges", key, lambda: self._blob.get_ranges(key, ranges))

    def stat(self, key: str) -> StoredObject | None:
        return self._faults.call("stat", key, lambda: self._blob.stat(key))

    def delete(self, keys: Iterable[str]) -> None:
        doomed = list(keys)
        self._faults.call("delete", " ".join(doomed), lambda: self._blob.delete(doomed))

    def list(self, prefix: str = "", start_after: str | None = None) -> Iterator[StoredObject]:
        return self._faults.call("list", prefix, lambda: self._blob.list(prefix, start_after))

    def list_prefixes(self, prefix: str = "") -> Iterator[str]:
        return self._faults.call("list_prefixes", prefix, lambda: self._blob.list_prefixes(prefix))

    def list_unfinished(self) -> Iterator[StoredObject]:
        return self._faults.call("list_unfinished", "", self._blob.list_unfinished)


class UnreliableConsensus:
    """A `Consensus` around another one, with faults."""

    def __init__(self, consensus: Consensus, faults: Faults) -> None:
        self._consensus = consensus
        self._faults = faults

    def head(self, key: str) -> Versioned | None:
        return self._faults.call("head", key, lambda: self._consensus.head(key))

    def tail(self, key: str) -> list[Versioned]:
        return self._faults.call("tail", key, lambda: self._consensus.tail(key))

    def append(self, key: str, expected_seqno: int | None, data: Data) -> AppendResult:
        return self._faults.call("append", key, lambda: self._consensus.append(key, expected_seqno, data))

    def scan(self, key: str, from_seqno: int = 0, limit: int | None = None) -> list[Versioned]:
        return self._faults.call("scan", key, lambda: self._consensus.scan(key, from_seqno, limit))

    def truncate(self, key: str, below: int) -> None:
        self._faults.call("truncate", key, lambda: self._consensus.truncate(key, below))

    def keys(self, prefix: str = "") -> Iterator[str]:
        return self._faults.call("keys", prefix, lambda: self._consensus.keys(prefix))

    def close(self) -> None:
        self._consensus.close()
