"""Writing to a stream: tables, versions, and what each of them says of itself."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

import instar
from instar.errors import (
    ConflictError,
    DataMismatchError,
    IncompatibleSchemaError,
    InvalidNameError,
    ReaderFencedError,
    StreamExistsError,
    StreamNotFoundError,
    UsageError,
    VersionConflictError,
)
from instar.schema import SchemaUpdate
from instar.table import TableLog, create_table, drop_table
from tests.faults import Faults, UnreliableConsensus
from tests.streams import FIRST, NAME, day, events, make_stream, new_world, open_again, sorted_rows

SECOND = "user string not null, at timestamp, amount bigint, country string"


def test_rows_are_in_the_table_of_their_day_and_of_their_hours() -> None:
    """Each row is once in a regular and once in an hourly table; tables come into being when needed."""
    stream = make_stream(new_world())
    assert stream.tables() == []
    commit = stream.write(events([1, 0], amount=3), version="v0.0.1")
    assert (commit.version, commit.rows) == ("v0.0.1", 4)
    assert [table.start for table in stream.tables("regular")] == [day(1).date(), day(0).date()]
    assert [table.start for table in stream.tables("hourly")] == [
        day(number) + timedelta(hours=hour) for number in (1, 0) for hour in (0, 6)
    ]
    assert all(table.rows == 2 for table in stream.tables("regular"))
    regular, hourly = stream.snapshot().to_arrow(), stream.snapshot("hourly").to_arrow()
    assert sorted_rows(regular) == sorted_rows(hourly)
    assert regular.num_rows == 4


def test_late_rows_reach_their_day_and_rows_without_a_place_are_kept() -> None:
    """A row years late has a table; one without a time, or from the future, is in `unplaced`."""
    stream = make_stream(new_world(), {"regular": "1d"})
    times = [day(3000), None, day(-400), day(0)]
    rows = pa.table(
        {"user": ["late", "never", "soon", "now"], "at": pa.array(times, pa.timestamp("us", "UTC"))}
    )
    stream.write(rows, version="v0.0.1")
    names = [table.name.rpartition("/")[2] for table in stream.tables()]
    assert names == ["unplaced", day(3000).date().isoformat(), day(0).date().isoformat()]
    assert sorted(stream.snapshot().to_arrow()["user"].to_pylist()) == ["late", "never", "now", "soon"]
    assert stream.snapshot(start=day(3000), end=day(1)).to_arrow()["user"].to_pylist() == ["late"]


def test_a_range_is_of_event_times_also_within_a_table() -> None:
    """A range that begins or ends within a table has only its own rows, whatever columns are shown."""
    stream = make_stream(new_world(), {"regular": "1d"})
    stream.write(events([1, 0], each=3), version="v0.0.1")
    cut = stream.snapshot(
        start=day(1) + timedelta(hours=7), end=day(0) + timedelta(hours=7), columns=["user"]
    )
    assert cut.to_arrow().to_pydict() == {"user": ["u1-1", "u1-2", "u0-0"]}
    whole = stream.snapshot(start=day(0).date().isoformat(), columns=["user"])
    assert whole.to_arrow().num_rows == 3
    with pytest.raises(UsageError, match="ends before it starts"):
        stream.snapshot(start=day(0), end=day(1))


def test_each_column_is_defined_by_the_highest_version_that_has_it() -> None:
    """Versions may come in any order; a column that a later one lacks stays, and may be null."""
    stream = make_stream(new_world(), {"regular": "1d"})
    stream.evolve("at timestamp, amount bigint", version="v0.0.10")
    stream.evolve("user string not null, at timestamp, amount int, note string", version="v0.0.9")
    assert stream.max_version == "v0.0.10"
    assert str(stream.schema) == "user string, at timestamp, amount bigint, note string"
    stream.write(events([0], amount=1, note="x"), version="v0.0.9")
    stream.write(events([0], amount=2**40).drop_columns(["user"]), version="v0.0.10")
    stream.write(events([0], amount=7), version="v0.0.1")
    (table,) = stream.tables()
    assert table.version == "v0.0.10"
    assert table.versions == ("v0.0.1", "v0.0.9", "v0.0.10")
    found = stream.snapshot().to_arrow()
    assert sorted(found["amount"].to_pylist()) == [1, 1, 7, 7, 2**40, 2**40]
    assert found["user"].null_count == 2


def test_a_version_that_nobody_declared_has_the_schema_of_its_data() -> None:
    """A writer may bring a new version; its columns become the stream's."""
    stream = make_stream(new_world(), {"regular": "1d"})
    stream.write(events([0], amount=1, country="IT"), version="v0.0.2")
    assert stream.max_version == "v0.0.2"
    assert stream.schema.names == ("user", "at", "amount", "country")
    stream.write(events([0], amount=1, country="FR"))
    assert stream.tables()[0].versions == ("v0.0.2",)


def test_data_that_happens_to_have_no_nulls_makes_no_promise() -> None:
    """A version that data declares is as strict as the stream about columns that it knows, and no more."""
    known = "user string not null, at timestamp, tags array<string>, home struct<x: int not null, y: int>"
    stream = make_stream(new_world(), {"regular": "1d"}, known)

    def columns(*, nullable: bool) -> pa.Schema:
        inner = pa.struct([pa.field(name, pa.int32(), nullable) for name in "xyz"])
        types = {
            "user": pa.string(),
            "at": pa.timestamp("us", "UTC"),
            "tags": pa.list_(pa.field("element", pa.string(), nullable)),
            "home": inner,
            "more": pa.map_(pa.string(), pa.field("value", inner, nullable)),
        }
        return pa.schema([pa.field(name, type_, nullable) for name, type_ in types.items()])

    point = {"x": 1, "y": 2, "z": 3}
    row = {"user": "a", "at": day(0), "tags": ["t"], "home": point, "more": [("k", point)]}
    stream.write(pa.Table.from_pylist([row], columns(nullable=False)), version="v0.0.2")
    second = {"user": "b", "at": None, "tags": [None], "home": {"x": 1}, "more": [("k", None)]}
    third = {"user": "c", "at": None, "tags": None, "home": None, "more": None}
    stream.write(pa.Table.from_pylist([second, third], columns(nullable=True)), version="v0.0.2")
    assert stream.snapshot().to_arrow().num_rows == 3
    for bad in ({**second, "user": None}, {**second, "home": {"y": 1}}):
        with pytest.raises(DataMismatchError, match="null"):
            stream.write(pa.Table.from_pylist([bad], columns(nullable=True)), version="v0.0.2")


def test_a_renamed_column_keeps_its_values_and_old_writers_their_name() -> None:
    """A schema given by ids renames; rows of both names are in one column."""
    stream = make_stream(new_world(), {"regular": "1d"})
    history = stream._handle.load().history
    stream.evolve(SchemaUpdate(history).rename_column("user", "login").schema, version="v0.0.2")
    stream.write(events([0]), version="v0.0.1")
    stream.write(events([0]).rename_columns(["login", "at"]), version="v0.0.2")
    assert stream.snapshot().to_arrow()["login"].to_pylist() == ["u0-0", "u0-1"] * 2


def test_versions_never_lose_a_row_of_another() -> None:
    """A version that narrows or retypes a column is refused, also one that is lower than those known."""
    stream = make_stream(new_world())
    for version in ("v0.0.2", "v0.0.0"):
        with pytest.raises(IncompatibleSchemaError, match="amount"):
            stream.evolve("user string, at timestamp, amount string", version=version)
    stream.evolve(SECOND, version="v0.0.5")
    with pytest.raises(IncompatibleSchemaError, match="amount"):
        stream.evolve("user string, at timestamp, amount double", version="v0.0.3")
    assert list(stream.versions) == ["v0.0.1", "v0.0.5"]


def test_a_version_has_one_schema_for_ever() -> None:
    """The same version again changes nothing; with another schema it is refused."""
    stream = make_stream(new_world())
    assert stream.evolve(FIRST, version="v0.0.1") == "v0.0.1"
    with pytest.raises(VersionConflictError, match="another schema"):
        stream.evolve(SECOND, version="v0.0.1")
    with pytest.raises(DataMismatchError):
        stream.write(events([0], country="IT"), version="v0.0.1")


def test_hourly_tables_keep_the_schema_that_they_began_with() -> None:
    """Rows that need a newer schema get an hourly table of their own, so nothing is lost."""
    stream = make_stream(new_world())
    stream.write(events([0], amount=1), version="v0.0.1")
    stream.evolve(SECOND, version="v0.0.2")
    stream.write(events([0], amount=2**40, country="IT"), version="v0.0.2")
    stream.write(events([0], amount=5), version="v0.0.1")
    names = [table.name.rpartition("/")[2] for table in stream.tables("hourly")]
    date = day(0).date().isoformat()
    assert names == [f"{date}_000", f"{date}_000_v0.0.2", f"{date}_001", f"{date}_001_v0.0.2"]
    services = stream._handle.services
    for table in stream.tables("hourly"):
        assert TableLog(services, table.name).load().history.latest_id == 0
    assert sorted_rows(stream.snapshot("hourly").to_arrow()) == sorted_rows(stream.snapshot().to_arrow())


def test_a_reader_of_an_old_version_is_fenced_by_tables_that_cannot_honour_it() -> None:
    """A version may be read until a table of the range was brought past it in a way that matters."""
    stream = make_stream(new_world(), {"regular": "1d"})
    stream.write(events([1], amount=1), version="v0.0.1")
    stream.write(events([0], amount=2**40, country="IT").select([0, 1, 2, 3]), version="v0.0.2")
    old = stream.snapshot(end=day(0), schema="v0.0.1").to_arrow()
    assert old.schema.field("amount").type == pa.int32()
    with pytest.raises(ReaderFencedError, match="amount"):
        stream.snapshot(schema="v0.0.1")
    assert stream.snapshot(schema="v0.0.1", columns=["at"]).to_arrow().num_rows == 4


def test_the_schema_of_a_table_is_the_streams_business() -> None:
    """A table of a stream cannot be evolved by itself, and names of a store's own logs are refused."""
    world = new_world()
    stream = make_stream(world)
    stream.write(events([0]), version="v0.0.1")
    store = instar.Store("memory", world.services())
    table = store.table(stream.tables("regular")[0].name)
    with pytest.raises(UsageError, match="that of its stream"):
        table.evolve().add_column("x", "int").commit()
    assert store.streams() == [NAME]
    assert all(not name.startswith("@") for name in store.tables())
    with pytest.raises(InvalidNameError):
        store.create_table("@streams/x", "a int")


def test_a_table_that_stands_in_the_way_is_not_taken_for_the_streams_own() -> None:
    """A write that needs its name says so; the stream is read without it, and works once it is gone."""
    world = new_world()
    stream = make_stream(world, {"regular": "1d"})
    services = world.services()
    name = f"{NAME}/1d/{day(1):%Y-%m-%d}"
    create_table(services, name, "other int")
    stream.write(events([0]), version="v0.0.1")
    with pytest.raises(ConflictError, match="belongs to no stream"):
        stream.write(events([0, 1]), version="v0.0.1")
    assert stream.snapshot().to_arrow().num_rows == 2
    assert [table.name for table in stream.tables()] == [f"{NAME}/1d/{day(0):%Y-%m-%d}"]
    drop_table(services, name)
    stream.write(events([0, 1]), version="v0.0.1")
    assert stream.snapshot().to_arrow().num_rows == 6


def test_a_writer_that_knows_a_version_asks_nobody() -> None:
    """Writing a known version to a known table reads neither the stream nor anything but the table."""
    world = new_world()
    make_stream(world, {"regular": "1d"})
    faults = Faults()
    stream = open_again(world, world.services(consensus=lambda logs: UnreliableConsensus(logs, faults)))
    stream.write(events([0]), version="v0.0.1")
    faults.calls.clear()
    stream.write(events([0]), version="v0.0.1")
    assert {key for _, key in faults.calls} == {stream.tables()[0].name}


def test_streams_have_names_of_their_own() -> None:
    """A stream is created once, and one that is not there is not found."""
    world = new_world()
    make_stream(world)
    with pytest.raises(StreamExistsError):
        make_stream(world)
    store = instar.Store("memory", world.services())
    with pytest.raises(StreamNotFoundError, match="nowhere"):
        store.stream("nowhere")
    with pytest.raises(UsageError, match="cannot be routed by"):
        store.create_stream("s", FIRST, time="user")
    made = store.create_stream("s", "d date not null", time="d", kinds={"regular": "1M"})
    made.write(pa.table({"d": [day(0).date()]}))
    assert made.tables()[0].start == day(0).date().replace(day=1)
    assert made.kinds == {"regular": "1M"}
