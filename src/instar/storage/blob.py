"""The blob service: immutable objects by key, and what every backend promises about them.

The contract lives here; `directory` and `objects` fulfil it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from instar.errors import StorageUnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

__all__ = ["Blob", "Data", "StoredObject", "creates_twice", "put_if_missing"]

Data = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class StoredObject:
    """What a store says of an object without opening it."""

    key: str
    size: int
    last_modified: datetime

    @property
    def modified_ms(self) -> int:
        """When it was last put, by the store's clock, in milliseconds since 1970."""
        return int(self.last_modified.timestamp() * 1000)


class Blob(Protocol):
    """Objects by key, in one root that no key can leave.

    Every method is linearizable and may be called from many threads. An object appears whole or not at
    all, and an acknowledged put survives a crash of the machine (except in memory).

    A key is relative and `/`-separated (`instar.storage.keys` has the rules); a bad one raises
    `InvalidNameError`. A key must not also be a directory of another: a file system cannot have both.

    `StorageError` means that nothing happened. `StorageTimeoutError` means that it is not known: the
    write may have landed, may land later, or may not. Reads are retried by the backend a few times
    before either is raised, and create nothing, not even the root.
    """

    @property
    def url(self) -> str:
        """Where the root is: an absolute path or a URL, fit for `open_blob`."""

    @property
    def settings(self) -> Mapping[str, str]:
        """How it was opened, such as `aws_region`: what Spark has to be told to find the same objects."""

    @property
    def seeks(self) -> bool:
        """Whether a list that starts after a key costs nothing for the keys before it: it is one request."""

    def location(self, key: str) -> str:
        """Return where the object is for others, such as Spark: an absolute path or a URL."""

    def elsewhere(self, url: str) -> Blob:
        """Return the blobs at another place, opened with the same options."""

    def put(self, key: str, data: Data, *, durable: bool = True) -> None:
        """Write or overwrite an object. The backend may repeat the request: the result is the same.

        What is not `durable` may be lost, or found empty, when the machine loses its power.
        """

    def put_if_absent(self, key: str, data: Data) -> bool:
        """Create an object; False if there already is one, which is left as it is.

        The request is sent once. After a `StorageTimeoutError` the object may exist, and a second call
        then answers False to its own first: the caller compares the content (a commit's id)
        before believing that somebody else was first. A service that does not know the condition raises
        `StorageUnsupportedError`, or overwrites the object.
        """

    def find(self, key: str) -> bytes | None:
        """Return an object's content, or None if there is no such object."""

    def find_many(self, keys: Sequence[str]) -> Sequence[bytes | None]:
        """`find` for several objects, at the same time where that is faster."""

    def get(self, key: str) -> bytes:
        """Return an object's content, or raise `NotFoundError`."""

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> Sequence[bytes]:
        """Return the bytes of each (offset, length), joining near ranges into one request.

        Raises `NotFoundError` for a missing object, and `CorruptTableError` if it ends too early.
        """

    def stat(self, key: str) -> StoredObject | None:
        """Return size and age of an object, or None if there is no such object."""

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; those that do not exist are none the worse.

        A deletion may come undone if the machine crashes.
        """

    def list(self, prefix: str = "", start_after: str | None = None) -> Iterator[StoredObject]:
        """List the objects below the directory `prefix`, in the byte order of their keys.

        With `start_after`, a key, only those that are greater. Objects that come or go meanwhile may be in
        the list or not.
        """

    def list_prefixes(self, prefix: str = "") -> Iterator[str]:
        """List the directories directly below `prefix` that hold objects, as full prefixes."""

    def list_unfinished(self) -> Iterator[StoredObject]:
        """List what puts have left behind that never finished; `delete` takes these keys too.

        A put in progress is among them: delete only what is old.
        """


def creates_twice(blob: Blob, key: str, data: Data) -> bool:
    """Whether a service creates an object that is there already, or does not know how not to."""
    try:
        return blob.put_if_absent(key, data)
    except StorageUnsupportedError:
        return True


def put_if_missing(blob: Blob, key: str, data: Data) -> bool:
    """Create an object of which any of several writers' will do, whatever the service knows of conditions."""
    try:
        return blob.put_if_absent(key, data)
    except StorageUnsupportedError:
        if blob.stat(key) is not None:
            return False
        blob.put(key, data)
        return True
