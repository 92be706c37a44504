"""Names: tables of a stream keep theirs, and tables of others may come and go where a stream needs a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import instar
from instar.errors import ConflictError, TableExistsError, UsageError
from tests.streams import NAME, day, events, make_stream, new_world, open_again, sorted_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.tables import World

YESTERDAY = f"{NAME}/1d/{day(1):%Y-%m-%d}"
WIDER = "user string, at timestamp, amount bigint"


def _store(world: World) -> instar.Store:
    return instar.Store("memory", world.services())


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.rename_table(YESTERDAY, "elsewhere"),
        lambda store: store.table(YESTERDAY).clone("elsewhere"),
    ],
)
def test_tables_of_a_stream_keep_their_names(change: Callable[[instar.Store], object]) -> None:
    """A table of a stream is neither renamed nor cloned, and no other table takes its name."""
    world = new_world()
    stream = make_stream(world, {"regular": "1d"})
    stream.write(events([1]), version="v0.0.1")
    store = _store(world)
    with pytest.raises(UsageError, match="belongs to"):
        change(store)
    store.create_table("plain", "x int")
    with pytest.raises(TableExistsError):
        store.rename_table("plain", YESTERDAY)
    with pytest.raises(TableExistsError):
        store.table("plain").clone(YESTERDAY)
    assert stream.snapshot().to_arrow().num_rows == 2


def test_a_table_of_a_stream_that_was_dropped_is_not_brought_back() -> None:
    """The stream may have forgotten it by now, so its rows would be in no range."""
    world = new_world()
    stream = make_stream(world, {"regular": "1d"})
    stream.write(events([0, 1]), version="v0.0.1")
    store = _store(world)
    store.drop_table(YESTERDAY)
    with pytest.raises(UsageError, match="belongs to the stream"):
        store.undrop_table(YESTERDAY)
    assert stream.snapshot().to_arrow().num_rows == 2


@pytest.mark.parametrize("was_there", [False, True])
def test_a_table_that_was_renamed_to_a_name_of_a_stream_is_not_hidden(was_there: bool) -> None:
    """A write that needs the name says who has it, and the other table keeps its rows and its name."""
    world = new_world()
    stream = make_stream(world, {"regular": "1d"})
    store = _store(world)
    if was_there:
        stream.write(events([1]), version="v0.0.1")
        store.drop_table(YESTERDAY)
    store.create_table("plain", "x int").append([{"x": 1}])
    store.rename_table("plain", YESTERDAY)
    for writer in (stream, open_again(world)):
        with pytest.raises(ConflictError, match="belongs to no stream"):
            writer.write(events([0, 1]), version="v0.0.1")
        assert writer.snapshot().to_arrow().num_rows == 0
    assert store.table(YESTERDAY).count() == 1
    store.rename_table(YESTERDAY, "plain")
    stream.write(events([0, 1]), version="v0.0.1")
    assert stream.snapshot().to_arrow().num_rows == 4
    assert store.table("plain").count() == 1


def test_a_stream_takes_a_name_that_another_table_had_first() -> None:
    """The other table goes on under its new name; the stream's is written, read, evolved and dropped."""
    world = new_world()
    stream = make_stream(world, {"regular": "1d", "archive": "1y"})
    store = _store(world)
    store.create_table(YESTERDAY, "x int").append([{"x": 1}])
    store.rename_table(YESTERDAY, "plain")
    stream.write(events([0, 1]), version="v0.0.1")
    other = open_again(world)
    other.write(events([0, 1], each=3), version="v0.0.1", token="again")
    other.write(events([0, 1], each=3), version="v0.0.1", token="again")
    for reader in (stream, other, open_again(world)):
        assert reader.snapshot().to_arrow().num_rows == 10
        assert [table.rows for table in reader.tables()] == [5, 5]
    stream.evolve(WIDER, version="v0.0.2")
    assert store.evolver(always=True).run_once().stamped == 2
    assert {table.version for table in stream.tables()} == {"v0.0.2"}
    assert stream.archive(before=day(0), drop=True).rows == 5
    assert [table.start for table in stream.tables("regular")] == [day(0).date()]
    stream.write(events([1]), version="v0.0.1")
    assert open_again(world).snapshot(end=day(0)).to_arrow().num_rows == 2
    assert store.table("plain").count() == 1
    assert sorted(store.tables()) == sorted(["plain", *(table.name for table in stream.tables())])


def test_a_table_that_others_dropped_and_made_anew_is_stamped() -> None:
    """An evolver that remembers the table before looks at the one that has the name now."""
    world = new_world()
    stream = make_stream(world, {"regular": "1d"})
    store = _store(world)
    evolver = store.evolver(always=True)
    stream.write(events([0, 1]), version="v0.0.1")
    (inside,) = evolver.streams()
    inside._handle.find_table(YESTERDAY)
    instar.Stream(inside._handle).write(events([1]), version="v0.0.1")  # it has the table open now
    store.drop_table(YESTERDAY)
    stream.write(events([1], each=3), version="v0.0.1")
    stream.evolve(WIDER, version="v0.0.2")
    report = evolver.run_once()
    assert (report.stamped, report.failed) == (2, 0)
    assert sorted_rows(stream.snapshot().to_arrow()) == sorted_rows(open_again(world).snapshot().to_arrow())
