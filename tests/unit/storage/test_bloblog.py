"""Logs made of objects: what happens between two requests of one operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from instar.errors import CorruptTableError, StorageError, StorageTimeoutError
from instar.storage import AppendResult, BlobConsensus, ObjectBlob, Versioned
from tests.faults import Faults, Outcome, UnreliableBlob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from instar.storage import StoredObject

KEY = "a/b"
LOG = "log/a%2Fb"


class KilledError(BaseException):
    """Nothing of ours catches this, as nothing catches a kill."""


class Walked(ObjectBlob):
    """A blob that goes through all keys to list some, as a directory does."""

    @property
    def seeks(self) -> bool:
        """Say that lists are slow."""
        return False


@pytest.fixture(params=[ObjectBlob, Walked], ids=["seeks", "walks"])
def blob(request: pytest.FixtureRequest) -> ObjectBlob:
    """Return blobs that nobody else has."""
    kind: type[ObjectBlob] = request.param
    return kind.in_memory()


def filled(blob: ObjectBlob, count: int) -> BlobConsensus:
    """Return a handle that has just appended entries 0 to count - 1."""
    consensus = BlobConsensus(blob)
    for seqno in range(count):
        assert consensus.append(KEY, seqno - 1 if seqno else None, str(seqno).encode())
    return consensus


def numbers(entries: list[Versioned]) -> list[int]:
    """Return the seqnos of entries, none of which may be a ghost."""
    assert all(entry.data == str(entry.seqno).encode() for entry in entries)
    return [entry.seqno for entry in entries]


def interrupted(blob: ObjectBlob, operation: str, do: Callable[[], object]) -> tuple[BlobConsensus, Faults]:
    """Return a handle during whose next such operation, after it was done, others do something."""
    faults = Faults()

    def act(called: str, _: str) -> None:
        if called == operation:
            faults.after = None
            do()

    faults.after = act
    return BlobConsensus(UnreliableBlob(blob, faults)), faults


def once(faults: Faults, do: Callable[[], object]) -> Callable[[str, str], None]:
    """Return a hook that does something before the next entry is put."""

    def act(called: str, _: str) -> None:
        if called == "put_if_absent":
            faults.before = None
            do()

    return act


def run_ahead(others: BlobConsensus, seqnos: range, floor: int) -> None:
    """Append some entries, and cut off those before one of them."""
    for seqno in seqnos:
        assert others.append(KEY, seqno - 1, str(seqno).encode())
    others.truncate(KEY, floor)


def test_the_layout_is_the_documented_one(blob: ObjectBlob) -> None:
    """Entries, the floor and the hint are where other readers of the format will look for them."""
    consensus = filled(blob, 34)
    consensus.truncate(KEY, 32)
    assert [(stored.key, stored.size) for stored in blob.list()] == [
        (f"{LOG}/00000000000000000032", 2),
        (f"{LOG}/00000000000000000033", 2),
        (f"{LOG}/floor/00000000000000000032", 0),
        (f"{LOG}/hint", 2),
    ]
    assert blob.get(f"{LOG}/hint") == b"32"


def test_a_ghost_is_not_acknowledged_and_not_seen(blob: ObjectBlob) -> None:
    """A writer wakes up after the entry that it is about to create has been cut off.

    It has just seen entry 6; the others append 7, 8, 9 and cut off what is below 9, so 7 can come again.
    """
    others = filled(blob, 7)
    faults = Faults()
    sleeper = BlobConsensus(UnreliableBlob(blob, faults))
    assert sleeper.head(KEY) == Versioned(6, b"6")
    faults.before = once(faults, lambda: run_ahead(others, range(7, 10), 9))
    with pytest.raises(StorageTimeoutError, match="cut off below 9"):
        sleeper.append(KEY, 6, b"ghost")
    assert blob.find(f"{LOG}/{7:020d}") is None
    for handle in (sleeper, others, BlobConsensus(blob)):
        assert numbers(handle.scan(KEY)) == [9]
        assert handle.head(KEY) == Versioned(9, b"9")
        assert handle.append(KEY, 6, b"ghost") is AppendResult.MISMATCH


def test_a_ghost_whose_writer_died_is_never_seen_and_goes_away(blob: ObjectBlob) -> None:
    """It lies below the floor, where no reader looks and the next truncation cleans up."""
    others = filled(blob, 7)
    faults = Faults()
    sleeper = BlobConsensus(UnreliableBlob(blob, faults))
    assert sleeper.head(KEY) == Versioned(6, b"6")
    reader = BlobConsensus(blob)
    assert reader.head(KEY) == Versioned(6, b"6")
    faults.before = once(faults, lambda: run_ahead(others, range(7, 22), 20))

    def die(operation: str, _: str) -> None:
        if operation == "put_if_absent":
            raise KilledError

    faults.after = die
    with pytest.raises(KilledError):
        sleeper.append(KEY, 6, b"ghost")
    assert blob.find(f"{LOG}/{7:020d}") == b"ghost"
    for handle in (reader, others, BlobConsensus(blob)):
        assert handle.head(KEY) == Versioned(21, b"21")
        assert numbers(handle.scan(KEY)) == [20, 21]
        assert numbers(handle.scan(KEY, 7)) == [20, 21]
    others.truncate(KEY, 20)
    assert blob.find(f"{LOG}/{7:020d}") is None


@pytest.mark.parametrize("left", [0, 3])
def test_nothing_is_appended_to_a_log_that_was_removed(blob: ObjectBlob, left: int) -> None:
    """Somebody has deleted the store, and perhaps made another: an entry there would float in the air."""
    consensus = filled(blob, 7)
    blob.delete([stored.key for stored in blob.list()])
    filled(blob, left)
    assert consensus.append(KEY, 6, b"7") is AppendResult.MISMATCH
    assert numbers(consensus.scan(KEY)) == list(range(left))
    assert numbers(BlobConsensus(blob).scan(KEY)) == list(range(left))


def test_two_ghosts_in_a_row_do_not_vouch_for_each_other(blob: ObjectBlob) -> None:
    """Entry 7 is a ghost whose writer is asleep again, and another sleeper builds 8 upon it."""
    others = filled(blob, 8)
    second = BlobConsensus(blob)
    assert second.head(KEY) == Versioned(7, b"7")
    for seqno in (8, 9):
        assert others.append(KEY, seqno - 1, str(seqno).encode())
    others.truncate(KEY, 9)
    blob.put(f"{LOG}/{7:020d}", b"ghost")
    with pytest.raises(StorageTimeoutError):
        second.append(KEY, 7, b"ghost")
    assert numbers(second.scan(KEY)) == [9]


def test_an_entry_that_others_built_upon_and_cut_off_is_not_called_a_mismatch(blob: ObjectBlob) -> None:
    """A writer creates entry 3 and falls asleep before it confirms it; by then 3 has come and gone.

    It did land. To say that it did not would make the caller write it twice.
    """
    others = filled(blob, 3)

    def meanwhile() -> None:
        assert numbers(others.scan(KEY)) == [0, 1, 2, 3]
        for seqno in (4, 5):
            assert others.append(KEY, seqno - 1, str(seqno).encode())
        others.truncate(KEY, 5)

    writer, _ = interrupted(blob, "put_if_absent", meanwhile)
    with pytest.raises(StorageTimeoutError, match="cut off below 5"):
        writer.append(KEY, 2, b"3")
    assert numbers(others.scan(KEY)) == [5]


@pytest.mark.parametrize(
    ("operation", "seen"),
    [
        *[(operation, None) for operation in ("find", "find_many", "list")],
        *[(operation, seen) for operation in ("find", "find_many", "stat", "list") for seen in (2, 19)],
    ],
)
def test_a_head_is_right_though_the_log_moves_on_and_is_cut_off_meanwhile(
    blob: ObjectBlob, operation: str, seen: int | None
) -> None:
    """The answer was the head at some moment of the call, whichever request the change comes after."""
    others = filled(blob, 20)

    def meanwhile() -> None:
        for seqno in range(20, 30):
            assert others.append(KEY, seqno - 1, str(seqno).encode())
        others.truncate(KEY, 28)

    reader, faults = interrupted(blob, operation, meanwhile)
    if seen is not None:
        act, faults.after = faults.after, None
        reader.scan(KEY, limit=seen + 1)
        faults.after = act
    assert reader.head(KEY) in {Versioned(19, b"19"), Versioned(29, b"29")}
    happened = faults.after is None
    assert happened or operation not in {"find_many", "list"} or not blob.seeks
    assert reader.head(KEY) == (Versioned(29, b"29") if happened else Versioned(19, b"19"))


@pytest.mark.parametrize("operation", ["find_many", "list"])
@pytest.mark.parametrize("below", [3, 12, 28])
def test_a_scan_is_right_though_the_log_moves_on_and_is_cut_off_meanwhile(
    blob: ObjectBlob, operation: str, below: int
) -> None:
    """It returns entries without gaps up to what was the head at some moment of the call."""
    others = filled(blob, 10)

    def meanwhile() -> None:
        for seqno in range(10, 30):
            assert others.append(KEY, seqno - 1, str(seqno).encode())
        others.truncate(KEY, below)

    reader, _ = interrupted(blob, operation, meanwhile)
    found = numbers(reader.scan(KEY, 1))
    assert found in (list(range(1, 10)), list(range(1, 30)), list(range(below, 30)))
    assert numbers(reader.scan(KEY)) == list(range(below, 30))


def test_a_truncation_may_die_anywhere(blob: ObjectBlob) -> None:
    """Whatever request is its last, the log is whole above one floor or the other, and repeating it helps."""
    for last in range(1, 30):
        name = f"{KEY}/{last}"
        before = BlobConsensus(blob)
        for seqno in range(8):
            assert before.append(name, seqno - 1 if seqno else None, str(seqno).encode())
        before.truncate(name, 2)
        faults = Faults()

        def die(*_: str, faults: Faults = faults, last: int = last) -> None:
            if len(faults.calls) == last:
                raise KilledError

        faults.after = die
        try:
            BlobConsensus(UnreliableBlob(blob, faults)).truncate(name, 5)
        except KilledError:
            handle = BlobConsensus(blob)
            assert numbers(handle.scan(name)) in ([2, 3, 4, 5, 6, 7], [5, 6, 7])
            assert handle.head(name) == Versioned(7, b"7")
            handle.truncate(name, 5)
        else:
            assert last > 5
        after = BlobConsensus(blob)
        assert numbers(after.scan(name)) == [5, 6, 7]
        assert [stored.key.rpartition("/")[2] for stored in blob.list(f"log/a%2Fb%2F{last}")] == [
            f"{seqno:020d}" for seqno in (5, 6, 7)
        ] + [f"{5:020d}"]


def test_the_floor_rises_before_anything_is_deleted(blob: ObjectBlob) -> None:
    """Otherwise a sleeper could create an entry anew and see no reason to doubt it."""
    filled(blob, 5)
    faults = Faults()
    BlobConsensus(UnreliableBlob(blob, faults)).truncate(KEY, 3)
    operations = [operation for operation, _ in faults.calls]
    assert operations.index("put") < operations.index("delete")


def test_a_floor_that_comes_late_does_not_sink_the_floor(blob: ObjectBlob) -> None:
    """A request of a truncation long ago, delayed on its way, changes nothing."""
    consensus = filled(blob, 9)
    consensus.truncate(KEY, 6)
    blob.put(f"{LOG}/floor/{2:020d}", b"")
    assert numbers(BlobConsensus(blob).scan(KEY)) == [6, 7, 8]


@pytest.mark.parametrize(
    ("outcome", "landed"),
    [(Outcome.NOT_DONE, False), (Outcome.NOT_DONE_SILENT, False), (Outcome.DONE_SILENT, True)],
)
def test_an_append_says_what_is_known(blob: ObjectBlob, outcome: Outcome, *, landed: bool) -> None:
    """A refused put is certain; one without answer is not, and then the caller finds its own entry."""
    faults = Faults(script=[("put_if_absent", outcome)])
    consensus = BlobConsensus(UnreliableBlob(blob, faults))
    with pytest.raises(StorageError) as raised:
        consensus.append(KEY, None, b"0")
    certain = outcome is Outcome.NOT_DONE
    assert type(raised.value) is (StorageError if certain else StorageTimeoutError)
    assert numbers(consensus.scan(KEY)) == ([0] if landed else [])
    assert consensus.append(KEY, None, b"0") is (AppendResult.MISMATCH if landed else AppendResult.LANDED)


@pytest.mark.parametrize("outcome", [Outcome.NOT_DONE, Outcome.NOT_DONE_SILENT])
def test_an_entry_that_cannot_be_confirmed_is_indeterminate(blob: ObjectBlob, outcome: Outcome) -> None:
    """It is written, so even a certain failure to read the floor leaves the outcome unknown."""
    faults = Faults(script=[("list", outcome)])
    consensus = BlobConsensus(UnreliableBlob(blob, faults))
    with pytest.raises(StorageTimeoutError, match="could not be confirmed"):
        consensus.append(KEY, None, b"0")
    assert consensus.head(KEY) == Versioned(0, b"0")


@pytest.mark.parametrize("hint", [b"", b"0", b"3", b"7", b"8", b"1000", b"garbage", b"-1", "٣".encode()])
def test_a_wrong_hint_is_only_slower(blob: ObjectBlob, hint: bytes) -> None:
    """It says where to look first, not what is there."""
    consensus = filled(blob, 8)
    consensus.truncate(KEY, 2)
    blob.put(f"{LOG}/hint", hint)
    assert BlobConsensus(blob).head(KEY) == Versioned(7, b"7")


def test_a_hint_that_cannot_be_written_is_no_failure(blob: ObjectBlob) -> None:
    """The append has landed, whatever becomes of the hint."""
    faults = Faults(script=[("put", Outcome.NOT_DONE), ("put", Outcome.NOT_DONE_SILENT)])
    consensus = BlobConsensus(UnreliableBlob(blob, faults))
    for seqno in range(40):
        assert consensus.append(KEY, seqno - 1 if seqno else None, b"")


def test_lost_entries_are_noticed(blob: ObjectBlob) -> None:
    """The entry at the floor is always there; a log without it has been damaged, not emptied."""
    consensus = filled(blob, 5)
    consensus.truncate(KEY, 3)
    blob.delete([f"{LOG}/{3:020d}", f"{LOG}/{4:020d}"])
    with pytest.raises(CorruptTableError, match=f"{3:020d} is corrupt: it is missing"):
        BlobConsensus(blob).head(KEY)


@pytest.mark.parametrize("lost", [0, 3, 5])
@pytest.mark.parametrize("length", [7, 8])
def test_a_gap_in_a_short_log_is_noticed(blob: ObjectBlob, lost: int, length: int) -> None:
    """The list of a log shows that an entry is missing, wherever it was."""
    filled(blob, length)
    blob.delete([f"{LOG}/{lost:020d}"])
    with pytest.raises(
        CorruptTableError, match=f"{lost:020d} is corrupt: it is missing, but later ones are there"
    ):
        BlobConsensus(blob).tail(KEY)


def test_a_list_that_is_made_while_a_log_grows_is_no_gap(blob: ObjectBlob) -> None:
    """It may have an entry and lack the one before, which was created after the list had passed its place."""
    others = filled(blob, 2)

    class Growing(UnreliableBlob):
        """A blob whose first list has only the later one of two entries that come meanwhile."""

        def list(self, prefix: str = "", start_after: str | None = None) -> Iterator[StoredObject]:
            found = [*super().list(prefix, start_after)]
            if len(found) == 2 and others.append(KEY, 1, b"2") and others.append(KEY, 2, b"3"):
                found += [*super().list(prefix, f"{LOG}/{2:020d}")]
            return iter(found)

    faults = Faults()
    reader = BlobConsensus(Growing(blob, faults))
    assert reader.head(KEY) == Versioned(3, b"3")
    assert numbers(reader.scan(KEY)) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("length", "fresh", "steady"),
    [(1, 4, 3), (30, 4, 3), (100, 14, 3), (1000, 18, 3)],
)
def test_requests_do_not_grow_with_the_log(blob: ObjectBlob, length: int, fresh: int, steady: int) -> None:
    """A fresh handle finds the head in a few requests; one that follows the log needs even fewer."""
    fresh = 4 if blob.seeks else fresh
    filled(blob, length)
    faults = Faults()
    consensus = BlobConsensus(UnreliableBlob(blob, faults))
    assert consensus.head(KEY) is not None
    assert len(faults.calls) <= fresh
    faults.calls.clear()
    assert consensus.head(KEY) is not None
    assert len(faults.calls) == steady
    faults.calls.clear()
    assert consensus.scan(KEY, length) == []
    assert [operation for operation, _ in faults.calls] == (["list"] if blob.seeks else ["find_many", "list"])
    faults.calls.clear()
    assert consensus.append(KEY, length - 1, b"")
    behind = ["list"] if blob.seeks else ["stat", "list"]
    assert [operation for operation, _ in faults.calls] == ["put_if_absent", *behind]
