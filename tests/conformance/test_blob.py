"""What every blob backend promises."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from instar.errors import CorruptTableError, InvalidNameError, NotFoundError, UsageError
from instar.storage import open_blob

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.storage import Blob
    from tests.conformance.conftest import Place

ODD_KEYS = [
    "a",
    "a b/c d",
    "naïve/日本語/🦋",
    "100%/%2F%2e%00",
    "a+b&c=d?e#f",
    "x" * 240,
    "-/~_'\"<>|*:;,@!$()[]{}^`",
]
BAD_KEYS = [
    "",
    "/a",
    "a/",
    "a//b",
    ".",
    "..",
    "../a",
    "a/../b",
    "a/./b",
    "a/..",
    ".hidden",
    "a/.staging",
    "a\\b",
    "..\\a",
    "a\x00b",
    "a\nb",
    "a\x7fb",
    "a\x85b",
    "\ud800",
    "x" * 241,
    "/".join(["x"] * 500),
]


def test_an_object_comes_back_as_it_was_put(blob: Blob) -> None:
    """Any bytes survive, none and five megabytes of them too."""
    for data in (b"", b"\x00\xff\r\n" * 7, bytes(range(256)) * 20_000):
        blob.put("a/b", data)
        assert blob.find("a/b") == blob.get("a/b") == data


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_data_may_be_any_buffer(blob: Blob, kind: type[bytes | bytearray | memoryview]) -> None:
    """Both puts take whatever holds bytes."""
    blob.put("a", kind(b"one"))
    assert blob.put_if_absent("b", kind(b"two"))
    assert (blob.get("a"), blob.get("b")) == (b"one", b"two")


def test_nothing_is_found_where_nothing_was_put(blob: Blob) -> None:
    """A missing object is None to those who ask whether it exists, and an error to those who need it."""
    assert blob.find("a/b") is None
    assert blob.stat("a/b") is None
    assert list(blob.list()) == list(blob.list("a")) == []
    assert list(blob.list_prefixes()) == []
    assert list(blob.list_unfinished()) == []
    blob.delete(["a/b"])
    with pytest.raises(NotFoundError, match="a/b"):
        blob.get("a/b")
    with pytest.raises(NotFoundError, match="a/b"):
        blob.get_ranges("a/b", [(0, 1)])
    blob.put("a/b", b"")
    assert blob.find("a") is None
    assert blob.stat("a") is None


def test_put_overwrites_and_put_if_absent_does_not(blob: Blob) -> None:
    """Only the first creation of a key succeeds, and it says so."""
    assert blob.put_if_absent("a", b"1") is True
    assert blob.put_if_absent("a", b"2") is False
    assert blob.get("a") == b"1"
    blob.put("a", b"3")
    assert blob.get("a") == b"3"
    blob.delete(["a"])
    assert blob.put_if_absent("a", b"4") is True


def test_of_those_who_create_at_once_one_succeeds(blob_place: Place) -> None:
    """The object is the one of whoever was told True."""
    handles = [blob_place.open_blob() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for round_ in range(20):
            key = f"race/{round_}"
            results = list(
                pool.map(lambda writer: handles[writer].put_if_absent(key, bytes([writer])), range(8))  # noqa: B023 - done before the next round
            )
            assert results.count(True) == 1
            assert handles[0].get(key) == bytes([results.index(True)])


def test_ranges_come_in_the_order_asked_for(blob: Blob) -> None:
    """Near, far, empty, overlapping and repeated ranges are all exact."""
    data = bytes(range(256)) * 12_000
    blob.put("a", data)
    ranges = [
        (3_000_000, 5),
        (0, 10),
        (12, 10),
        (5, 0),
        (0, 10),
        (4, 100),
        (len(data) - 1, 1),
        (len(data), 0),
    ]
    assert blob.get_ranges("a", ranges) == [data[start : start + length] for start, length in ranges]
    assert blob.get_ranges("a", []) == []


@pytest.mark.parametrize("bad", [(95, 10), (100, 1), (1000, 1)])
def test_an_object_that_ends_too_early_is_corrupt(blob: Blob, bad: tuple[int, int]) -> None:
    """A range that is not there is never filled with less."""
    blob.put("a", bytes(100))
    with pytest.raises(CorruptTableError, match=f"a is corrupt: it ends before byte {sum(bad)}"):
        blob.get_ranges("a", [(0, 1), bad])


def test_stat_and_list_tell_size_and_age(blob: Blob) -> None:
    """Age is in UTC, to the second."""
    blob.put("a/b", b"123")
    stored = blob.stat("a/b")
    assert stored is not None
    assert (stored.key, stored.size) == ("a/b", 3)
    assert abs(datetime.now(UTC) - stored.last_modified) < timedelta(minutes=1)
    assert [(found.key, found.size) for found in blob.list()] == [("a/b", 3)]


def test_list_is_in_byte_order_and_goes_by_directories(blob: Blob) -> None:
    """A prefix is a directory, not a text: `a` has `a/b`, not `ab`."""
    keys = ["a-b", "a/b", "a/b-c", "a/c/d", "a0", "ab", "b/é", "b/z"]
    for key in reversed(keys):
        blob.put(key, b"")
    ordered = sorted(keys, key=str.encode)
    assert [found.key for found in blob.list()] == ordered
    assert [found.key for found in blob.list("a")] == ["a/b", "a/b-c", "a/c/d"]
    assert [found.key for found in blob.list("a/")] == ["a/b", "a/b-c", "a/c/d"]
    assert [found.key for found in blob.list("nothing")] == []
    assert list(blob.list_prefixes()) == ["a", "b"]
    assert list(blob.list_prefixes("a")) == ["a/c"]
    for after in [*keys, "a", "a/bb", "b", "zzz", "0"]:
        found = [found.key for found in blob.list(start_after=after)]
        assert found == [key for key in ordered if key.encode() > after.encode()], after
    assert [found.key for found in blob.list("a", start_after="a/b")] == ["a/b-c", "a/c/d"]


def test_long_lists_are_whole(blob: Blob) -> None:
    """More objects than a store sends in one answer are all listed, and deleted in one call."""
    keys = [f"n/{number:04d}" for number in range(1050 if blob.url.startswith("memory") else 130)]
    for key in keys:
        blob.put_if_absent(key, b"")
    assert [found.key for found in blob.list("n")] == keys
    assert blob.find_many([*keys[:20], "n/none"]) == [b""] * 20 + [None]
    blob.delete([*keys[1:], "n/none"])
    assert [found.key for found in blob.list("n")] == keys[:1]


@pytest.mark.parametrize("key", ODD_KEYS)
def test_odd_names_are_names(blob: Blob, key: str) -> None:
    """What a name means to a shell, a URL or a file system means nothing here."""
    blob.put(key, key.encode())
    assert not blob.put_if_absent(key, b"")
    assert blob.get(key) == key.encode()
    assert [found.key for found in blob.list()] == [key]
    assert blob.location(key).endswith(f"/{key}")
    blob.delete([key])
    assert blob.find(key) is None


@pytest.mark.parametrize("key", BAD_KEYS, ids=ascii)
def test_bad_names_are_refused_everywhere(blob: Blob, key: str) -> None:
    """No method takes a name that could lead elsewhere or that some backend could not hold."""
    calls: list[Callable[[], object]] = [
        lambda: blob.put(key, b""),
        lambda: blob.put_if_absent(key, b""),
        lambda: blob.find(key),
        lambda: blob.find_many([key]),
        lambda: blob.get(key),
        lambda: blob.get_ranges(key, [(0, 1)]),
        lambda: blob.stat(key),
        lambda: blob.delete([key]),
        lambda: blob.location(key),
    ]
    if key and not key.endswith("/"):
        calls += [lambda: list(blob.list(key)), lambda: list(blob.list_prefixes(key))]
    for call in calls:
        with pytest.raises(InvalidNameError):
            call()
    assert list(blob.list()) == []


def test_handles_share_the_place(blob_place: Place) -> None:
    """What one handle has put, another that was opened with the same URL finds."""
    first, second = blob_place.open_blob(), blob_place.open_blob()
    first.put("a", b"1")
    assert second.get("a") == b"1"
    assert open_blob(first.url, blob_place.options).get("a") == b"1"


def test_a_handle_can_be_sent_to_another_process(blob_place: Place) -> None:
    """Pickled, it opens the same place again; memory, which cannot, says so."""
    blob = blob_place.open_blob()
    blob.put("a", b"1")
    if blob_place.shared:
        copy: Blob = pickle.loads(pickle.dumps(blob))
        assert copy.get("a") == b"1"
    else:
        with pytest.raises(UsageError, match="memory of one process"):
            pickle.dumps(blob)
