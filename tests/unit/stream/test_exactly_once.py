"""A write to several tables is in all of them or in none, once, however often somebody dies in it."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

import instar
from instar.errors import CommitOutcomeUnknownError, ConflictError, StorageError
from instar.storage import MemoryConsensus
from instar.stream import reading
from instar.stream.writing import finish_pending
from instar.table import drop_table
from tests.faults import Faults, UnreliableBlob, UnreliableConsensus
from tests.streams import DeadError, Mortal, day, events, make_stream, new_world, open_again, sorted_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.api.stream import Stream
    from instar.state import TableState
    from instar.stream.catalog import TableRecord
    from tests.tables import World

KINDS = {"regular": "1d", "hourly": "6h"}
ROWS = 4


def _check_whole(stream: Stream, allowed: set[int]) -> int:
    """Return how many rows there are: the same of both kinds, and no half of a write."""
    regular, hourly = stream.snapshot().to_arrow(), stream.snapshot("hourly").to_arrow()
    assert sorted_rows(regular) == sorted_rows(hourly)
    rows: int = regular.num_rows
    assert rows in allowed
    return rows


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of leases, by the dead
@pytest.mark.parametrize(("after", "spill"), [(False, False), (True, True)])
def test_a_writer_may_die_at_every_request(after: bool, spill: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads next sees all rows of a write or none; repeated with its token, it has happened once."""
    if spill:
        monkeypatch.setattr("instar.stream.writing.INLINE_BYTES", 0)
    seen = set()
    for at in count(1):
        world = new_world(consensus=MemoryConsensus())
        make_stream(world, KINDS).write(events([1], each=1), version="v0.0.1", token="before")
        mortal = Mortal(at, after=after)
        with suppress(DeadError):
            open_again(world, mortal.services(world)).write(events([1, 0]), version="v0.0.1", token="t")
        if not mortal.dead:
            break
        seen.add(_check_whole(open_again(world), {1, 1 + ROWS}))
        for _ in range(2):
            commit = open_again(world).write(events([1, 0]), version="v0.0.1", token="t")
            assert commit.rows == ROWS
        assert _check_whole(open_again(world), {1 + ROWS}) == 1 + ROWS
        left = [stored.key for stored in world.blob.list("streams")]
        assert not left or spill
    assert seen == {1, 1 + ROWS}


def test_a_lost_answer_is_found_out() -> None:
    """With requests that fail or get no answer at random, each write happens once or says that it did not."""
    world = new_world()
    make_stream(world, KINDS)
    faults = Faults(seed=7)
    services = world.services(
        lambda blob: UnreliableBlob(blob, faults), lambda logs: UnreliableConsensus(logs, faults)
    )
    stream = open_again(world, services)
    done = 0
    for number in range(12):
        for _ in range(100):
            faults.rate = 0.05
            try:
                stream.write(events([number]), version="v0.0.1", token=f"t{number}")
            except (StorageError, CommitOutcomeUnknownError):
                continue
            finally:
                faults.rate = 0
            done += 1
            break
    assert done == 12
    _check_whole(open_again(world), {24})


def test_a_table_that_is_dropped_meanwhile_is_made_anew() -> None:
    """Rows on their way to a table that somebody drops are not lost: they are in a new table of its name."""
    world = new_world()
    stream = make_stream(world, KINDS)
    stream.write(events([1, 0], each=1), version="v0.0.1")
    counter = Mortal()
    rival = world.services()
    dropped = stream.tables("regular")[0].name

    def drop(operation: str, key: str) -> None:
        if operation == "append" and key.startswith("@batches") and not gone:
            gone.append(key)
            drop_table(rival, dropped)

    gone: list[str] = []
    counter.faults.after = drop
    open_again(world, counter.services(world)).write(events([1, 0]), version="v0.0.1", token="t")
    assert gone
    assert stream.snapshot().to_arrow().num_rows == ROWS + 1
    assert stream.snapshot("hourly").to_arrow().num_rows == ROWS + 2


def test_a_write_to_a_dropped_table_makes_it_anew() -> None:
    """A writer that remembers a table which is gone creates it again, known to the stream."""
    world = new_world()
    stream = make_stream(world, {"regular": "1d"})
    stream.write(events([0]), version="v0.0.1")
    drop_table(world.services(), stream.tables()[0].name)
    assert stream.tables() == []
    stream.write(events([0]), version="v0.0.1")
    assert [table.rows for table in open_again(world).tables()] == [2]


def test_readers_see_no_half_of_a_write_that_is_going_on() -> None:
    """However a reader and a writer meet, each write is in all tables that are read, or in none."""
    world = new_world()
    make_stream(world, KINDS)
    stop = False
    errors: list[BaseException] = []

    def write() -> None:
        try:
            stream = open_again(world)
            for number in range(25):
                stream.write(events([1, 0], each=1, amount=number), version="v0.0.1")
        except BaseException as error:  # noqa: BLE001 -- the test shows it
            errors.append(error)

    writers = [Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    stream = open_again(world)
    looks = 0
    while any(writer.is_alive() for writer in writers) or not stop:
        stop = not any(writer.is_alive() for writer in writers)
        found = stream.snapshot().to_arrow()
        per_day = found.group_by("user").aggregate([("amount", "count")]).to_pylist()
        assert len({row["amount_count"] for row in per_day}) <= 1
        looks += 1
    assert not errors
    assert stream.snapshot().to_arrow().num_rows == 100
    assert looks > 1
    assert finish_pending(stream._handle) == 50


def _die_in_a_write(world: World) -> None:
    """Let a writer die as soon as its intent is recorded."""
    mortal = Mortal()

    def die(operation: str, key: str) -> None:
        if operation == "append" and "batches" in key:
            mortal.dead = True
            raise DeadError

    mortal.faults.after = die
    with suppress(DeadError):
        open_again(world, mortal.services(world)).write(events([1, 0]), version="v0.0.1", token="t")


VACUUMS: dict[str, Callable[[instar.Store], object]] = {
    "store": lambda store: store.vacuum(grace_ms=0),
    "tables": lambda store: [store.table(name).vacuum(grace_ms=0) for name in store.tables()],
    "purge": lambda store: [store.table(name).purge(where="amount = 1") for name in store.tables()],
    "maintenance": lambda store: store.maintenance(grace_ms=0).run_once(),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of leases, by the dead
@pytest.mark.parametrize("vacuum", VACUUMS)
def test_a_vacuum_finishes_what_was_begun(vacuum: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It finishes what a dead writer began before it deletes anything, however long ago that was."""
    monkeypatch.setattr("instar.stream.writing.INLINE_BYTES", 0)
    world = new_world()
    stream = make_stream(world, KINDS)
    stream.write(events([1], each=1), version="v0.0.1")
    _die_in_a_write(world)
    assert list(world.blob.list("streams"))
    world.clock.now += 48 * 60 * 60_000
    VACUUMS[vacuum](instar.Store("memory", world.services()))
    assert not list(world.blob.list("streams"))
    _check_whole(open_again(world), {1 + ROWS})


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of leases, by the dead
@pytest.mark.parametrize("meanwhile", ["archived", "written to"])
def test_whoever_finishes_a_write_late_doubles_nothing(
    meanwhile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others finish it first; then its tables are dropped, or have so many writes that they forget it."""
    monkeypatch.setattr("instar.state.table_state.TOKEN_WINDOW", 3)
    monkeypatch.setattr("instar.stream.writing.TOKEN_WINDOW", 3)
    world = new_world()
    stream = make_stream(world, {"regular": "1d", "archive": "1y"})
    _die_in_a_write(world)
    slow, seen = Mortal(), list[str]()

    def overtake(operation: str, key: str) -> None:
        if operation == "append" and not key.startswith("@") and not seen:
            seen.append(key)
            finish_pending(stream._handle)
            if meanwhile == "archived":
                stream.archive(before=day(-1), drop=True)
                assert stream.tables("regular") == []
            else:
                for number in range(4):
                    stream.write(events([1, 0], each=1), version="v0.0.1", token=f"t{number}")

    slow.faults.before = overtake
    finish_pending(open_again(world, slow.services(world))._handle)
    assert seen
    stream.archive(before=day(-1))
    assert stream.snapshot("archive").to_arrow().num_rows == ROWS + (0 if meanwhile == "archived" else 8)


def test_a_writer_that_slept_for_too_long_has_written_nothing() -> None:
    """What it stored may be gone by then, so nothing is recorded; written again, rows are there once."""
    world = new_world()
    stream = make_stream(world, KINDS)
    sleepy, slept = Mortal(), list[str]()

    def sleep(operation: str, key: str) -> None:
        if operation == "put" and "/parts/" in key and not slept:
            slept.append(key)
            world.clock.now += 60 * 60_000

    sleepy.faults.after = sleep
    writer = open_again(world, sleepy.services(world))
    with pytest.raises(ConflictError, match="write again"):
        writer.write(events([1, 0]), version="v0.0.1")
    _check_whole(stream, {0})
    writer.write(events([1, 0]), version="v0.0.1")
    _check_whole(stream, {ROWS})


def test_rows_find_a_table_that_is_dropped_again_and_again() -> None:
    """A write that is recorded is finished by whoever began it, though others drop its table."""
    world = new_world()
    stream = make_stream(world, {"regular": "1d", "archive": "1y"})
    stream.write(events([1, 0], each=1), version="v0.0.1")
    name = stream.tables("regular")[0].name
    rival = world.services()
    harried, dropped = Mortal(), list[str]()

    def drop(operation: str, key: str) -> None:
        recorded = operation == "append" and (key.startswith("@batches") or (dropped and key == name))
        if recorded and len(dropped) < 3:
            dropped.append(key)
            drop_table(rival, name)

    harried.faults.after = drop
    open_again(world, harried.services(world)).write(events([1, 0]), version="v0.0.1")
    assert len(dropped) == 3
    assert stream.snapshot().to_arrow().num_rows == ROWS + 1


def test_a_vacuum_spares_what_a_reader_of_the_stream_holds() -> None:
    """One lease holds all tables of a range; once it is given back, what was replaced goes."""
    world = new_world()
    stream = make_stream(world, {"regular": "1d"})
    stream.write(events([0]), version="v0.0.1")
    stream.write(events([0]), version="v0.0.1")
    held = stream.snapshot()
    store = instar.Store("memory", world.services())
    store.table(stream.tables()[0].name).compact(full=True)
    store.vacuum(grace_ms=0)
    assert held.to_arrow().num_rows == 4
    held.close()
    assert store.vacuum(grace_ms=0).objects > 0
    assert stream.snapshot().to_arrow().num_rows == 4


def test_a_reader_of_the_latest_schema_is_not_fenced_by_one_that_comes_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A version that is raised between two looks is found, and the range is read under it."""
    world = new_world()
    stream, other = make_stream(world, {"regular": "1d"}), open_again(world)
    stream.write(events([1, 0], amount=1), version="v0.0.1")
    load = reading.load_states
    news = [events([1, 0], amount=2**40)]

    def write_then_load(*args: Any) -> list[tuple[TableRecord, TableState]]:  # noqa: ANN401 -- whatever it takes
        if news:
            other.write(news.pop(), version="v0.0.2")
        return load(*args)

    monkeypatch.setattr(reading, "load_states", write_then_load)
    assert sorted(stream.snapshot().to_arrow()["amount"].to_pylist()) == [1] * 4 + [2**40] * 4


def test_a_micro_batch_is_known_however_many_writes_came_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tokens are remembered for a while, and never crowded out by writes that were given none."""
    monkeypatch.setattr("instar.stream.batches.REMEMBERED", 3)
    world = new_world()
    stream = make_stream(world, KINDS)
    stream.write(events([0], each=1), version="v0.0.1", token="@sink/q/v0.0.1/7")
    stream.write(events([0], each=1), version="v0.0.1", token="mine")
    for number in range(70):  # so many that the journal begins anew
        stream.write(events([1], each=1), version="v0.0.1", token=f"t{number}" if number > 67 else None)
    rows = stream.snapshot().to_arrow().num_rows
    for reader in (stream, open_again(world)):
        for token in ("@sink/q/v0.0.1/7", "@sink/q/v0.0.1/6", "mine"):
            reader.write(events([0], each=1), version="v0.0.1", token=token)
    assert stream.snapshot().to_arrow().num_rows == rows
    for token in ("@sink/q/v0.0.1/8", "@sink/q/v0.0.2/7"):
        stream.write(events([0], each=1), version="v0.0.1", token=token)
    assert stream.snapshot().to_arrow().num_rows == rows + 2
