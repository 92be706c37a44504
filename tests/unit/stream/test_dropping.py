"""A stream is dropped with all its tables, comes back with them, and leaves its name to another."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

import pytest

import instar
from instar.errors import StreamExistsError, StreamNotFoundError, TableExistsError
from instar.storage import MemoryConsensus
from instar.stream.dropping import drop_stream, undrop_stream
from instar.table import drop_table
from tests.streams import (
    FIRST,
    KINDS,
    NAME,
    DeadError,
    Mortal,
    day,
    events,
    make_stream,
    new_world,
    open_again,
    sorted_rows,
)

if TYPE_CHECKING:
    from instar.api.stream import Stream
    from tests.tables import World

WIDER = f"{FIRST}, country string"


def _store(world: World) -> instar.Store:
    return instar.Store("memory", world.services())


def _filled(world: World) -> Stream:
    stream = make_stream(world)
    stream.write(events([1, 0], amount=1), version="v0.0.1", token="t")
    stream.repartition(by="at")
    return stream


def test_a_stream_goes_with_its_tables_and_comes_back_with_them() -> None:
    """Nobody reads or writes it meanwhile; what writers and jobs remembered counts again afterwards."""
    world = new_world()
    stream, store = _filled(world), _store(world)
    rows, names = sorted_rows(stream.snapshot().to_arrow()), store.tables()
    held = stream.snapshot()
    store.drop_stream(NAME)
    assert (store.streams(), store.tables()) == ([], [])
    for call in (
        lambda: store.stream(NAME),
        stream.snapshot,
        lambda: stream.write(events([1, 0]), version="v0.0.1"),
        lambda: stream.write(events([0], each=1), version="v0.0.1"),
        lambda: stream.write(events([5], each=1), version="v0.0.1"),
        lambda: open_again(world).write(events([0]), version="v0.0.1"),
        lambda: stream.evolve(WIDER, version="v0.0.2"),
        lambda: stream.repartition(by="at"),
        lambda: store.evolver(NAME).run_once(),
        lambda: store.drop_stream(NAME),
    ):
        with pytest.raises(StreamNotFoundError, match="was dropped"):
            call()
    assert sorted_rows(held.to_arrow()) == rows
    assert not any(store.evolver().run_once())
    assert store.tables() == []
    back = store.undrop_stream(NAME)
    assert (store.streams(), store.tables()) == ([NAME], names)
    for reader in (back, stream):
        assert sorted_rows(reader.snapshot().to_arrow()) == rows
    stream.write(events([1, 0], amount=1), version="v0.0.1", token="t")
    assert back.repartition(by="at").rows == 0
    stream.write(events([1, 0]), version="v0.0.1")
    assert back.snapshot().to_arrow().num_rows == len(rows) + 4
    with pytest.raises(StreamExistsError):
        store.undrop_stream(NAME)


def test_another_stream_of_the_name_begins_with_nothing() -> None:
    """It has no rows, versions, tokens or cursors of the first, whose handles do not write to it."""
    world = new_world()
    first, store = _filled(world), _store(world)
    evolver = store.evolver(always=True)
    first.evolve(WIDER, version="v0.0.9")
    assert evolver.run_once().passes == 1
    store.drop_stream(NAME)
    second = store.create_stream(NAME, "at timestamp, n int", time="at", kinds=KINDS)
    assert (second.max_version, second.tables()) == ("v0.0.1", [])
    for call in (lambda: first.write(events([1, 0]), version="v0.0.1"), first.snapshot, first.tables):
        with pytest.raises(StreamNotFoundError, match="was dropped"):
            call()
    rows = events([1, 0]).select(["at"]).append_column("n", [[1, 2, 3, 4]])
    second.write(rows, version="v0.0.1", token="t")
    assert second.snapshot().to_arrow().num_rows == 4
    assert second.repartition(by="at").rows == 4
    second.evolve("at timestamp, n bigint", version="v0.0.2")
    assert [evolver.run_once().stamped for _ in range(2)] == [0, 4]  # the first look finds that one gone
    with pytest.raises(StreamExistsError):
        store.undrop_stream(NAME)


def test_what_cannot_come_back_is_said_before_anything_does() -> None:
    """A vacuum has taken a table, or another table has its name; tables dropped before stay away."""
    world = new_world()
    stream, store = _filled(world), _store(world)
    first, second = (table.name for table in stream.tables("regular"))
    drop_table(world.services(), first)
    store.drop_stream(NAME)
    assert [table.name for table in store.undrop_stream(NAME).tables("regular")] == [second]
    store.drop_stream(NAME)
    store.create_table("plain", "x int").append([{"x": 1}])
    store.rename_table("plain", second)
    with pytest.raises(TableExistsError):
        store.undrop_stream(NAME)
    assert store.tables() == [second]
    store.rename_table(second, "plain")
    assert [table.name for table in store.undrop_stream(NAME).tables("regular")] == [second]
    store.drop_stream(NAME)
    world.clock.now += 1000
    store.vacuum(grace_ms=0)
    with pytest.raises(StreamNotFoundError, match="held is gone"):
        store.undrop_stream(NAME)
    assert store.tables() == ["plain"]
    with pytest.raises(StreamNotFoundError, match="does not exist"):
        store.undrop_stream("nothing")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of leases, by the dead
@pytest.mark.parametrize("then", ["drop", "undrop", "create"])
def test_whoever_drops_may_die_at_every_request(then: str) -> None:
    """A drop is ended by another, undone, or forgotten by a new stream, wherever it was cut off."""
    for at in count(1):
        world = new_world(consensus=MemoryConsensus())
        rows = sorted_rows(_filled(world).snapshot().to_arrow())
        mortal = Mortal(at, after=bool(at % 2))
        with suppress(DeadError):
            drop_stream(open_again(world, mortal.services(world))._handle)
        store = _store(world)
        if not mortal.dead:
            return
        if then == "undrop":
            with suppress(StreamExistsError):
                store.undrop_stream(NAME)
            stream = store.stream(NAME)
            assert sorted_rows(stream.snapshot().to_arrow()) == rows
            stream.write(events([1, 0]), version="v0.0.1")
            assert stream.snapshot().to_arrow().num_rows == len(rows) + 4
            continue
        with suppress(StreamNotFoundError):
            store.drop_stream(NAME)
        assert (store.streams(), store.tables()) == ([], [])
        if then == "create":
            assert store.create_stream(NAME, FIRST, time="at").snapshot().to_arrow().num_rows == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of leases, by the dead
def test_whoever_brings_a_stream_back_may_die_at_every_request() -> None:
    """Repeated, all of it is back."""
    for at in count(1):
        world = new_world(consensus=MemoryConsensus())
        rows = sorted_rows(_filled(world).snapshot().to_arrow())
        store = _store(world)
        store.drop_stream(NAME)
        mortal = Mortal(at, after=bool(at % 2))
        with suppress(DeadError):
            undrop_stream(open_again(world, mortal.services(world))._handle)
        with suppress(StreamExistsError):
            store.undrop_stream(NAME)
        stream = store.stream(NAME)
        assert sorted_rows(stream.snapshot().to_arrow()) == rows
        stream.write(events([1, 0]), version="v0.0.1")
        if not mortal.dead:
            return


def test_a_write_on_its_way_is_dropped_whole_or_finds_the_stream_gone() -> None:
    """Dropped between any two requests of a writer, a stream has all of its rows or none when it is back."""
    for at in count(1):
        world = new_world(consensus=MemoryConsensus())
        _filled(world)
        store, late = _store(world), Mortal()
        seen = count(1)

        def meanwhile(
            operation: str, _: str, at: int = at, store: instar.Store = store, seen: count[int] = seen
        ) -> None:
            if operation in {"append", "put", "put_if_absent"} and next(seen) == at:
                store.drop_stream(NAME)

        late.faults.before = meanwhile
        writer = open_again(world, late.services(world))
        with suppress(StreamNotFoundError):
            writer.write(events([3, 2]), version="v0.0.1")
        if next(seen) <= at:
            return
        assert store.streams() == []
        for _ in range(2):
            found = store.undrop_stream(NAME)
            kinds = [found.snapshot(kind, end=day(1)).to_arrow().num_rows for kind in ("regular", "hourly")]
            assert kinds in ([0, 0], [4, 4])
            store.drop_stream(NAME)
