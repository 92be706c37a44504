"""Consensus without a server: each entry of a log is an object, created only if it is absent.

Objects of a key, below `log/<percent-encoded key>/`:

    00000000000000000042         the entry with seqno 42
    floor/00000000000000000040   empty; entries below 40 are cut off, whether or not they still exist
    hint                         a seqno the log has reached; only a place to start looking

The floor is the greatest of its markers. It never sinks, because a marker is deleted only once a greater
one exists, and a delayed request can bring back only a lesser one.

**Why a cut-off entry cannot come back.** Creating an entry if absent is a compare-and-set only as long as
entries are never deleted: a writer that slept since it saw entry 6 could create 7 anew after 7 had been
cut off, and believe that it had committed. Let `truncate` raise the floor before it deletes anything, and
let every reader and writer look at the floor *after* it has looked at entries. Take an entry n that was
seen while it existed, and a floor f read later:

- if f <= n, then at that moment nobody had begun to delete n, so n had been created only once, by
  somebody who knew n-1 to be the last entry. It is genuine.
- if f > n, then n is cut off, and a reader ignores it. A writer that has just created n cannot tell what it
  did: either n had been cut off before, and it has written a ghost; or n was genuine, and others have
  built upon it and cut it off since. So it deletes n, which is harmless, and says that the outcome is
  unknown. A ghost whose writer dies stays below the floor, where nobody looks, until the next `truncate`.

**Why the last entry found is the last.** By the same argument no entry from the floor up has ever been
deleted, so those entries are contiguous. If n exists, n+1 does not, and a floor read afterwards is at most
n, then n was the last entry at some moment in between. The order of deletions does not matter, and a
`truncate` that is killed anywhere leaves either the old floor, or the new one and some rubbish below it.

**What if an entry is lost all the same**, by a mistake or a broken disk? The log would seem to end before
it. So a reader that finds the end for the first time looks further. A short log is listed, which shows every
gap. In a long one, entries at growing distances tell of a gap, unless the log has only grown meanwhile: it
is found if at least as many entries follow it as are missing.

**Requests.** Where a list can begin anywhere, one that begins behind the last known entry tells what is new
and, because markers of the floor sort after entries, the floor as well: it is looked at no sooner than the
entries. Directories are listed whole, so there single objects are looked for.

All this assumes a linearizable blob store, which directories, S3, Google Cloud Storage and Azure are.
"""

# The protocol documents the methods.
# ruff: noqa: D102

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from instar.errors import CorruptTableError, StorageError, StorageTimeoutError
from instar.storage.consensus import TAIL, AppendResult, Versioned
from instar.storage.keys import decode_key, encode_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from instar.storage.blob import Blob, Data

__all__ = ["BlobConsensus"]

_LOGS = "log"
_SEQNO = re.compile(r"[0-9]{20}")
_HINT_EVERY = 32
_WIDEST_READ = 64
_BEYOND = (2, 3, 5, 9, 17, 33)
"""How far behind the last entry to look for others, which would tell of a gap."""


class BlobConsensus:
    """The `Consensus` that keeps its logs in a blob store; the module explains how.

    A handle remembers how far it has seen each log, so looking for news costs one list, or a read that
    misses and a look at the floor. A fresh handle lists the log if it is short; otherwise it starts from the
    hint, and lists or gallops.
    """

    def __init__(self, blob: Blob) -> None:
        self._blob = blob
        self._seen: dict[str, int] = {}  # a seqno that each log has certainly reached

    def __repr__(self) -> str:
        return f"BlobConsensus({self._blob!r})"

    def head(self, key: str) -> Versioned | None:
        found = self._last(_directory(key), 1)
        return found[-1] if found else None

    def tail(self, key: str) -> list[Versioned]:
        return self._last(_directory(key), TAIL)

    def append(self, key: str, expected_seqno: int | None, data: Data) -> AppendResult:
        log = _directory(key)
        seqno = 0 if expected_seqno is None else expected_seqno + 1
        if self._seen.get(log, -1) < seqno - 1:
            # A place beyond the end would leave a gap: the caller must be right about what comes before.
            self.head(key)
        if self._seen.get(log, -1) != seqno - 1:
            return AppendResult.MISMATCH
        if not self._blob.put_if_absent(_entry(log, seqno), data) or not self._confirm(log, seqno):
            return AppendResult.MISMATCH
        self._remember(log, seqno)
        if seqno and seqno % _HINT_EVERY == 0:
            with suppress(StorageError):
                self._blob.put(f"{log}/hint", str(seqno).encode())
        return AppendResult.LANDED

    def scan(self, key: str, from_seqno: int = 0, limit: int | None = None) -> list[Versioned]:
        log = _directory(key)
        start = max(from_seqno, 0)
        while True:
            wanted = limit
            if limit is None and self._blob.seeks:
                seqnos, floor = self._list_log(log, start)
                start = max(start, floor)
                wanted = _run_length(seqnos, start)
                if not wanted:
                    return []
            found = self._read_run(log, start, wanted)
            floor = self._floor(log)
            if floor <= start:
                if found:
                    self._remember(log, found[-1].seqno)
                return found
            start = floor

    def truncate(self, key: str, below: int) -> None:
        log = _directory(key)
        head = self.head(key)
        if head is None:
            return
        floor = max(self._floor(log), min(below, head.seqno))
        if floor:
            # Written even if it is there: another process may not have brought it to disk yet.
            self._blob.put(f"{log}/floor/{floor:020d}", b"")
            self._delete_below(log, floor)
            self._delete_below(f"{log}/floor", floor)

    def keys(self, prefix: str = "") -> Iterator[str]:
        found = (decode_key(path.rpartition("/")[2]) for path in self._blob.list_prefixes(_LOGS))
        return iter(sorted((key for key in found if key.startswith(prefix)), key=str.encode))

    def close(self) -> None:
        pass

    def _last(self, log: str, most: int) -> list[Versioned]:
        """Return the last entry, or all entries of a log not yet seen if they are no more than `most`."""
        start = self._seen.get(log)
        if start is None:
            start = self._hint(log)
        if not start or self._blob.seeks:
            return self._last_listed(log, start, most)
        while True:
            last = self._gallop(log, start)
            data = self._blob.find(_entry(log, last))
            floor = self._floor(log)
            if floor <= start and data is not None:
                if log not in self._seen:
                    self._check_end(log, last)
                self._remember(log, last)
                return [Versioned(last, data)]
            if floor == start:
                if floor or last:
                    raise CorruptTableError(self._blob.location(_entry(log, last)), "it is missing")
                return []
            start = floor  # entries were cut off meanwhile, or the hint was wrong

    def _last_listed(self, log: str, start: int, most: int) -> list[Versioned]:
        """Find the end of a log by listing it from where it has probably been, or whole if it is short.

        Entries that were there all the while are in the list, and so is the one that was last as it began,
        unless it was cut off. So the last one listed was the last of the log at some moment of the call, if
        it is not below a floor that is read afterwards.
        """
        while True:
            seqnos, before = self._list_log(log, start)
            if start and before <= start and start not in seqnos:
                start = 0  # the hint was wrong, or the log is gone
                continue
            wanted = seqnos if len(seqnos) <= most else seqnos[-1:]
            found = self._blob.find_many([_entry(log, seqno) for seqno in wanted]) if wanted else []
            floor = self._floor(log)
            if floor > before:
                continue  # entries were cut off meanwhile
            if not seqnos and not floor:
                return []
            self._check_run(log, max(floor, start), seqnos)
            entries = []
            for seqno, data in zip(wanted, found, strict=True):
                if data is None:
                    raise CorruptTableError(self._blob.location(_entry(log, seqno)), "it is missing")
                entries.append(Versioned(seqno, data))
            self._remember(log, seqnos[-1])
            return entries

    def _list_log(self, log: str, start: int = 0) -> tuple[list[int], int]:
        """List a log: the entries from a seqno on, or from its floor, and the floor."""
        after = _entry(log, start - 1) if start else None
        names = [stored.key.removeprefix(f"{log}/") for stored in self._blob.list(log, after)]
        floor = max(_numbers(name.removeprefix("floor/") for name in names if "/" in name), default=0)
        return [seqno for seqno in _numbers(names) if seqno >= floor], floor

    def _check_run(self, log: str, floor: int, seqnos: Sequence[int]) -> None:
        """Raise if an entry is missing between the floor and the last one."""
        end = seqnos[-1] if seqnos else floor
        for seqno in sorted(set(range(floor, end + 1)).difference(seqnos)):
            # A list that is made while the log grows may lack an entry before one that it has.
            if not self._exists(log, seqno) and self._floor(log) <= seqno:
                why = "it is missing, but later ones are there" if seqno < end else "it is missing"
                raise CorruptTableError(self._blob.location(_entry(log, seqno)), why)

    def _hint(self, log: str) -> int:
        """Return a seqno that the log has most probably reached, or 0."""
        hint = self._blob.find(f"{log}/hint") or b""
        return int(hint) if hint.isdigit() else 0

    def _gallop(self, log: str, start: int) -> int:
        """Return the last entry if `start` is one, in a logarithm of the distance."""
        step = 1
        while self._exists(log, start + step):
            start += step
            step *= 2
        absent = start + step
        while absent - start > 1:
            middle = (start + absent) // 2
            if self._exists(log, middle):
                start = middle
            else:
                absent = middle
        return start

    def _check_end(self, log: str, last: int) -> None:
        """Raise if there are entries after a gap behind what looks like the last one."""
        beyond = self._blob.find_many([_entry(log, last + distance) for distance in _BEYOND])
        if any(data is not None for data in beyond) and not self._exists(log, last + 1):
            raise CorruptTableError(
                self._blob.location(_entry(log, last + 1)), "it is missing, but later ones are there"
            )

    def _read_run(self, log: str, start: int, limit: int | None) -> list[Versioned]:
        """Read contiguous entries from `start` on, ever more at a time."""
        found: list[Versioned] = []
        width = 1 if limit is None else _WIDEST_READ
        while limit is None or len(found) < limit:
            begin = start + len(found)
            seqnos = range(begin, begin + (width if limit is None else min(width, limit - len(found))))
            entries = self._blob.find_many([_entry(log, seqno) for seqno in seqnos])
            for seqno, data in zip(seqnos, entries, strict=True):
                if data is None:
                    return found
                found.append(Versioned(seqno, data))
            width = min(width * 2, _WIDEST_READ)
        return found

    def _confirm(self, log: str, seqno: int) -> bool:
        """Make sure that an entry just created is part of the log; take it back if the log itself is gone.

        Then other hands have removed the whole store, and perhaps made another, since it was last looked at.
        """
        entry = _entry(log, seqno)
        try:
            follows, floor = self._look_behind(log, seqno)
        except StorageError as error:
            why = f"it was written, but could not be confirmed: {error}"
            raise StorageTimeoutError(f"appending {self._blob.location(entry)}", why) from error
        if floor > seqno:
            with suppress(StorageError):
                self._blob.delete([entry])
            why = f"the log was cut off below {floor} before the entry could be confirmed"
            raise StorageTimeoutError(f"appending {self._blob.location(entry)}", why)
        if not follows and floor < seqno:
            self._seen.pop(log, None)
            with suppress(StorageError):
                self._blob.delete([entry])
            return False
        return True

    def _look_behind(self, log: str, seqno: int) -> tuple[bool, int]:
        """Return whether the entry before one is there, and then the floor."""
        if self._blob.seeks:
            seqnos, floor = self._list_log(log, max(seqno - 1, 0))
            if not seqno or seqno - 1 in seqnos or floor >= seqno:
                return True, floor
        # A list need not have what comes or goes meanwhile.
        return seqno == 0 or self._exists(log, seqno - 1), self._floor(log)

    def _floor(self, log: str) -> int:
        names = [stored.key.rpartition("/")[2] for stored in self._blob.list(f"{log}/floor")]
        return max(_numbers(names), default=0)

    def _delete_below(self, directory: str, floor: int) -> None:
        """Delete the numbered objects of a directory below the floor, oldest first."""
        doomed = []
        for stored in self._blob.list(directory):
            name = stored.key.removeprefix(f"{directory}/")
            if not _SEQNO.fullmatch(name) or int(name) >= floor:
                break
            doomed.append(stored.key)
        if doomed:
            self._blob.delete(doomed)

    def _exists(self, log: str, seqno: int) -> bool:
        return self._blob.stat(_entry(log, seqno)) is not None

    def _remember(self, log: str, seqno: int) -> None:
        self._seen[log] = max(seqno, self._seen.get(log, seqno))


def _directory(key: str) -> str:
    return f"{_LOGS}/{encode_key(key)}"


def _entry(log: str, seqno: int) -> str:
    return f"{log}/{seqno:020d}"


def _run_length(seqnos: Sequence[int], start: int) -> int:
    """Return how many seqnos follow one another from one on."""
    return next((at for at, seqno in enumerate(seqnos) if seqno != start + at), len(seqnos))


def _numbers(names: Iterable[str]) -> list[int]:
    """Return the seqnos among the names of objects."""
    return [int(name) for name in names if _SEQNO.fullmatch(name)]
