"""What every consensus backend promises."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from instar.errors import InvalidNameError, StorageTimeoutError
from instar.storage import AppendResult, Versioned
from tests.conformance.test_blob import BAD_KEYS

if TYPE_CHECKING:
    from instar.storage import Consensus
    from tests.conformance.conftest import Place

KEY = "billing/events/1d/2026-11-15"


def fill(consensus: Consensus, key: str, count: int) -> None:
    """Append entries 0 to count - 1, each holding its own number."""
    for seqno in range(count):
        assert consensus.append(key, seqno - 1 if seqno else None, str(seqno).encode())


def numbers(entries: list[Versioned]) -> list[int]:
    """Return the seqnos of entries, which must hold what `fill` wrote."""
    assert all(entry.data == str(entry.seqno).encode() for entry in entries)
    return [entry.seqno for entry in entries]


def test_a_log_that_nobody_wrote_is_empty(consensus: Consensus) -> None:
    """Reading or truncating it finds nothing and makes nothing."""
    assert consensus.head(KEY) is None
    assert consensus.scan(KEY) == consensus.scan(KEY, 7) == consensus.tail(KEY) == []
    consensus.truncate(KEY, 10)
    assert consensus.append(KEY, 0, b"") is AppendResult.MISMATCH
    assert list(consensus.keys()) == []
    assert consensus.head(KEY) is None


def test_entries_are_numbered_from_zero_without_gaps(consensus: Consensus) -> None:
    """Each append lands one above the one it expected."""
    fill(consensus, KEY, 5)
    assert consensus.head(KEY) == Versioned(4, b"4")
    assert numbers(consensus.scan(KEY)) == [0, 1, 2, 3, 4]
    assert numbers(consensus.scan(KEY, 3)) == [3, 4]
    assert numbers(consensus.scan(KEY, 1, limit=2)) == [1, 2]
    assert numbers(consensus.scan(KEY, 3, limit=99)) == [3, 4]
    assert consensus.scan(KEY, 5) == consensus.scan(KEY, 99) == consensus.scan(KEY, limit=0) == []


def test_a_tail_ends_with_the_head(place: Place) -> None:
    """A log of a few entries is its own tail; of a longer one, at least the head is there."""
    writer = place.open_consensus()
    for count in range(1, 12):
        assert writer.append(KEY, count - 2 if count > 1 else None, str(count - 1).encode())
        for handle in (writer, place.open_consensus()):
            found = numbers(handle.tail(KEY))
            assert found == list(range(count - len(found), count))
            assert found
    writer.truncate(KEY, 9)
    assert numbers(place.open_consensus().tail(KEY)) == [9, 10]


@pytest.mark.parametrize("expected", [None, 0, 1, 3, 100])
def test_an_append_that_expects_another_head_changes_nothing(
    place: Place, consensus: Consensus, expected: int | None
) -> None:
    """Neither an older place nor one beyond the end is written to, by an old handle or a new one."""
    fill(consensus, KEY, 3)
    for handle in (consensus, place.open_consensus()):
        assert handle.append(KEY, expected, b"x") is AppendResult.MISMATCH
        assert numbers(handle.scan(KEY)) == [0, 1, 2]
        assert handle.head(KEY) == Versioned(2, b"2")


def test_only_landed_is_true() -> None:
    """So `if consensus.append(…)` means what it seems to."""
    assert AppendResult.LANDED
    assert not AppendResult.MISMATCH


@pytest.mark.parametrize(
    "data", [b"", b"\x00\xff'\"\\", bytes(range(256)) * 20_000], ids=["none", "odd", "5 MB"]
)
def test_entries_are_any_bytes(place: Place, data: bytes) -> None:
    """They come back as they were, to another handle too."""
    consensus = place.open_consensus()
    assert consensus.append(KEY, None, data)
    assert consensus.append(KEY, 0, memoryview(data))
    assert place.open_consensus().head(KEY) == Versioned(1, data)
    assert consensus.scan(KEY) == [Versioned(0, data), Versioned(1, data)]


def test_truncation_cuts_off_the_beginning(place: Place, consensus: Consensus) -> None:
    """What is below is gone for everyone; the rest is untouched and goes on."""
    fill(consensus, KEY, 10)
    other = place.open_consensus()
    assert other.head(KEY) == Versioned(9, b"9")
    consensus.truncate(KEY, 4)
    for handle in (consensus, other, place.open_consensus()):
        assert numbers(handle.scan(KEY)) == [4, 5, 6, 7, 8, 9]
        assert numbers(handle.scan(KEY, 2, limit=3)) == [4, 5, 6]
        assert handle.head(KEY) == Versioned(9, b"9")
    consensus.truncate(KEY, 2)
    consensus.truncate(KEY, 4)
    assert numbers(other.scan(KEY)) == [4, 5, 6, 7, 8, 9]
    assert other.append(KEY, 9, b"10")
    assert place.open_consensus().head(KEY) == Versioned(10, b"10")


@pytest.mark.parametrize("below", [3, 4, 1000])
def test_truncation_never_takes_the_head(place: Place, below: int) -> None:
    """However much is asked for, the last entry stays, and the log goes on after it."""
    consensus = place.open_consensus()
    fill(consensus, KEY, 4)
    consensus.truncate(KEY, below)
    fresh = place.open_consensus()
    assert fresh.head(KEY) == Versioned(3, b"3")
    assert numbers(fresh.scan(KEY)) == [3]
    assert fresh.append(KEY, None, b"x") is AppendResult.MISMATCH
    assert fresh.append(KEY, 3, b"4")
    assert list(fresh.keys()) == [KEY]


@pytest.mark.parametrize("stale", [None, 0, 2, 4])
def test_a_writer_that_slept_through_a_truncation_writes_nothing(place: Place, stale: int | None) -> None:
    """It expected an entry that is cut off by now; the log must not show what it wrote, now or later."""
    sleeper, others = place.open_consensus(), place.open_consensus()
    if stale is not None:
        fill(sleeper, KEY, stale + 1)
        others.scan(KEY)
    for seqno in range(0 if stale is None else stale + 1, 9):
        assert others.append(KEY, seqno - 1 if seqno else None, str(seqno).encode())
    others.truncate(KEY, 7)
    try:
        assert sleeper.append(KEY, stale, b"ghost") is AppendResult.MISMATCH
    except StorageTimeoutError:
        assert place.name.startswith("blob-")  # they cannot tell, and say so
    for handle in (sleeper, others, place.open_consensus()):
        assert numbers(handle.scan(KEY)) == [7, 8]
        assert handle.head(KEY) == Versioned(8, b"8")
        assert handle.append(KEY, stale, b"ghost") is AppendResult.MISMATCH
    assert others.append(KEY, 8, b"9")
    assert numbers(sleeper.scan(KEY)) == [7, 8, 9]


def test_the_head_of_a_long_log_is_found_from_anywhere(place: Place) -> None:
    """A fresh handle, one that fell far behind, and one that starts above a truncation all find it."""
    writer = place.open_consensus()
    behind = place.open_consensus()
    count = 12 if place.name == "blob-s3" else 150
    for seqno in range(count):
        assert writer.append(KEY, seqno - 1 if seqno else None, str(seqno).encode())
        if seqno == 3:
            assert behind.head(KEY) == Versioned(3, b"3")
        if seqno in {5, 33, 64, 100, 149}:
            assert place.open_consensus().head(KEY) == Versioned(seqno, str(seqno).encode())
    assert behind.head(KEY) == Versioned(count - 1, str(count - 1).encode())
    assert numbers(behind.scan(KEY)) == list(range(count))
    writer.truncate(KEY, count - 2)
    assert place.open_consensus().head(KEY) == behind.head(KEY) == writer.head(KEY)


ODD_NAMES = [
    "a",
    "a/b",
    "a%2Fb",
    "a b",
    "A",
    "é",
    "e\u0301",
    "日本/語",
    "log",
    "floor",
    "hint",
    "a'b\"c",
    "%",
    "a%",
    "~",
]


def test_keys_do_not_interfere(consensus: Consensus) -> None:
    """Every name has a log of its own, whatever characters it is made of."""
    for name in ODD_NAMES:
        assert consensus.append(name, None, name.encode())
    for name in ODD_NAMES:
        assert consensus.scan(name) == [Versioned(0, name.encode())]
    assert list(consensus.keys()) == sorted(ODD_NAMES, key=str.encode)
    for prefix in ("a", "a/", "a%", "A", "é", "日", "zzz", "_"):
        expected = sorted((name for name in ODD_NAMES if name.startswith(prefix)), key=str.encode)
        assert list(consensus.keys(prefix)) == expected, prefix


@pytest.mark.parametrize("key", BAD_KEYS, ids=ascii)
def test_bad_names_are_refused(consensus: Consensus, key: str) -> None:
    """No method takes a name that could mean something else in a path."""
    for call in (
        lambda: consensus.head(key),
        lambda: consensus.append(key, None, b""),
        lambda: consensus.append(key, 1, b""),
        lambda: consensus.scan(key),
        lambda: consensus.truncate(key, 1),
    ):
        with pytest.raises(InvalidNameError):
            call()


def test_of_threads_that_append_at_once_one_lands(place: Place) -> None:
    """Through one handle or many, each seqno belongs to exactly one writer, the one who was told so."""
    shared = place.open_consensus()
    handles = [shared, shared, shared, place.open_consensus(), place.open_consensus(), place.open_consensus()]
    with ThreadPoolExecutor(len(handles)) as pool:
        for seqno in range(10):
            last = seqno - 1 if seqno else None

            def attempt(writer: int, last: int | None = last) -> AppendResult:
                return handles[writer].append(KEY, last, str(writer).encode())

            results = list(pool.map(attempt, range(len(handles))))
            assert results.count(AppendResult.LANDED) == 1
            winner = results.index(AppendResult.LANDED)
            assert shared.head(KEY) == Versioned(seqno, str(winner).encode())


def test_a_handle_can_be_sent_to_another_process(place: Place) -> None:
    """Pickled, it opens the same logs again."""
    if not place.shared:
        pytest.skip("memory belongs to one process")
    consensus = place.open_consensus()
    fill(consensus, KEY, 2)
    copy: Consensus = pickle.loads(pickle.dumps(consensus))
    place.opened.append(copy)
    assert copy.append(KEY, 1, b"2")
    assert numbers(consensus.scan(KEY)) == [0, 1, 2]


def test_eight_processes_append_to_one_log(place: Place) -> None:
    """Nothing is lost, nothing is doubled, and everyone's entries are in the order of writing."""
    if not place.shared:
        pytest.skip("memory belongs to one process")
    writers, count = 8, (6 if place.name == "blob-s3" else 100)  # the S3 server of these tests is slow
    task = {
        "blob_url": place.blob_url,
        "options": place.options,
        "consensus_url": place.consensus_url,
        "key": KEY,
        "count": count,
    }
    script = Path(__file__).with_name("append_in_a_loop.py")
    processes = [
        subprocess.Popen([sys.executable, script, json.dumps({**task, "writer": writer})])
        for writer in range(writers)
    ]
    assert [process.wait() for process in processes] == [0] * writers
    entries = place.open_consensus().scan(KEY)
    assert [entry.seqno for entry in entries] == list(range(writers * count))
    for writer in range(writers):
        mark = f"{writer}:"
        mine = [entry.data.decode() for entry in entries if entry.data.decode().startswith(mark)]
        assert mine == [f"{mark}{number}" for number in range(count)]
