"""`Entries`: the commits in one table's log, as bytes in a consensus service.

Each is framed with a digest and its own place, so that an entry that was damaged or moved is refused.
The meaning of the commits is not known here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from instar.errors import CorruptTableError
from instar.state import CommitRecord, decode_commit, encode_commit
from instar.storage.frame import decode_frame, encode_frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.storage import Consensus, Versioned

__all__ = ["Entries", "Entry"]


class Entry(NamedTuple):
    """A commit and its place in the log."""

    seqno: int
    commit: CommitRecord


class Entries:
    """The entries of the log that has a key, of the table that has a name."""

    def __init__(self, consensus: Consensus, key: str, name: str) -> None:
        self._consensus = consensus
        self._key = key
        self._name = name

    def head(self) -> Entry | None:
        """Return the last entry, or None if there is none."""
        head = self._consensus.head(self._key)
        return None if head is None else self._decode(head)

    def tail(self) -> list[Entry]:
        """Return the last entry and perhaps some before it, in order; none if there is none."""
        return list(map(self._decode, self._consensus.tail(self._key)))

    def first_from(self, seqno: int) -> Entry | None:
        """Return the entry at a seqno or the first after it, or None if the log ends before."""
        found = self._consensus.scan(self._key, seqno, 1)
        return self._decode(found[0]) if found else None

    def scan(self, from_seqno: int, limit: int | None = None) -> Iterator[Entry]:
        """Return the entries from a seqno on that have not been truncated, at most so many."""
        return map(self._decode, self._consensus.scan(self._key, from_seqno, limit))

    def append(self, entry: Entry) -> bool:
        """Append an entry if its place is the next one, and return whether it was."""
        data = encode_frame("commit", self._identity(entry.seqno), encode_commit(entry.commit))
        expected = None if entry.seqno == 0 else entry.seqno - 1
        return bool(self._consensus.append(self._key, expected, data))

    def what(self, seqno: int) -> str:
        """Return what an error calls an entry."""
        return f"commit {seqno} of `{self._name}`"

    def lost(self, seqno: int, later: int) -> CorruptTableError:
        """Say that an entry is not there although a later one is."""
        return CorruptTableError(self.what(seqno), f"it is missing, and {later} is there")

    def check_last(self, seqno: int, commit_id: str) -> None:
        """Raise if an entry that has been seen is not there any more, or another is in its place.

        It may have been truncated, but then there are others after it.
        """
        found = self.first_from(seqno)
        if found is None or (found.seqno == seqno and commit_id not in ("", found.commit.id)):
            raise CorruptTableError(
                self.what(seqno),
                "it was there before, so the store was removed or replaced while this handle was open",
            )

    def _decode(self, versioned: Versioned) -> Entry:
        what = self.what(versioned.seqno)
        payload = decode_frame(versioned.data, "commit", self._identity(versioned.seqno), what=what)
        return Entry(versioned.seqno, decode_commit(payload, what=what))

    def _identity(self, seqno: int) -> str:
        return f"{self._key}@{seqno}"
