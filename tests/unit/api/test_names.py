"""Names of tables: renaming and bringing back move nothing, and no name ever means two tables."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from instar.api import Store
from instar.errors import ConflictError, TableExistsError, TableNotFoundError, UsageError
from instar.state.commands import end_rename
from instar.table import TableLog
from instar.table.housekeeping.vacuum import vacuum_table
from instar.table.log import tables as naming
from instar.table.log.clone_notes import put_clone_note
from instar.table.write import clone as cloning
from tests.unit.api.two_machines import Steps, between_requests

if TYPE_CHECKING:
    from instar.api import Table
    from instar.state import Step, TableState
    from tests.tables import World

DAY = 24 * 60 * 60 * 1000


def ids(table: Table) -> list[int]:
    """Return what a table holds."""
    return sorted(table.snapshot().to_arrow().column("id").to_pylist())


def make(store: Store, name: str, *values: int) -> Table:
    """Create a table of numbers."""
    table = store.create_table(name, "id int", key=["id"])
    table.append(pa.table({"id": pa.array(values, pa.int32())}))
    return table


def test_a_renamed_table_keeps_everything(store: Store) -> None:
    """Rows, history and handles are the same under the new name, and no file is written or moved."""
    table = make(store, "events", 1, 2)
    files = {stored.key for stored in store._services.blob.list("tables")}
    renamed = store.rename_table("events", "sales/events")
    assert {stored.key for stored in store._services.blob.list("tables")} == files
    assert store.tables() == ["sales/events"]
    assert ids(renamed) == ids(store["sales/events"]) == ids(table) == [1, 2]
    assert table.name == renamed.name == "sales/events"
    assert table.history()[0].what == "renamed to sales/events"
    assert table.snapshot(version=1).count() == 2
    with pytest.raises(TableNotFoundError, match="renamed to `sales/events`"):
        store.table("events")
    table.append([{"id": 3}])
    assert ids(store["sales/events"]) == [1, 2, 3]


def test_the_old_name_is_free(store: Store) -> None:
    """Two tables can be swapped by way of a third name, and each of them is found and vacuumed."""
    make(store, "new", 1)
    make(store, "old", 2)
    store.rename_table("old", "spare")
    store.rename_table("new", "old")
    store.rename_table("spare", "new")
    assert {name: ids(store[name]) for name in store} == {"new": [2], "old": [1]}
    assert [table.name for table in store.find_tables()] == ["new", "old"]
    assert store.find_tables("ne")[0].state.name == "new"
    store.vacuum(grace_ms=0)
    assert {name: ids(store[name]) for name in store} == {"new": [2], "old": [1]}
    with pytest.raises(TableExistsError):
        store.rename_table("old", "new")
    with pytest.raises(TableExistsError):
        store.create_table("new", "id int")


def test_a_new_table_under_a_former_name(store: Store, world: World) -> None:
    """It can be written, dropped, brought back, renamed and vacuumed as any other."""
    make(store, "events", 1)
    store.rename_table("events", "events_old")
    second = make(store, "events", 2)
    assert {name: ids(store[name]) for name in store} == {"events": [2], "events_old": [1]}
    assert not any(store.maintenance(grace_ms=0).run_once().failures)
    store.drop_table("events")
    assert store.tables() == ["events_old"]
    store.undrop_table("events")
    assert ids(store["events"]) == ids(second) == [2]
    store.drop_table("events")
    world.clock.now += 2 * DAY
    store.vacuum()
    with pytest.raises(TableNotFoundError):
        store.undrop_table("events")
    store.rename_table("events_old", "events")
    assert {name: ids(store[name]) for name in store} == {"events": [1]}


def test_a_dropped_table_comes_back_until_a_vacuum_takes_it(store: Store, world: World) -> None:
    """A vacuum leaves it alone for the grace period; then it says that the table is gone."""
    table = make(store, "events", 1, 2)
    world.clock.now += 10 * DAY
    store.drop_table("events")
    store.vacuum()
    with pytest.raises(TableNotFoundError, match="`instar undrop events` or"):
        store["events"]
    assert ids(store.undrop_table("events")) == ids(table) == [1, 2]
    assert table.history()[0].what == "brought back"
    with pytest.raises(TableExistsError):
        store.undrop_table("events")
    store.drop_table("events")
    world.clock.now += 2 * DAY
    assert store.vacuum(dry_run=True).objects > 0
    store.vacuum()
    with pytest.raises(TableNotFoundError, match="a vacuum has removed what it held"):
        store.undrop_table("events")
    with pytest.raises(TableNotFoundError, match="does not exist"):
        store.undrop_table("nothing")
    assert ids(make(store, "events", 7)) == [7]


def entries_of(store: Store) -> dict[str, int]:
    """Return how many commits each log has left."""
    logs = store._services.consensus
    return {key: len(logs.scan(key)) for key in logs.keys("")}


def test_of_a_table_that_is_gone_one_commit_stays(store: Store, world: World) -> None:
    """It says all that there is to know: writers who slept find it, and a new table goes on behind it."""
    sleeper = make(store, "events", *range(5))
    for number in range(30):
        sleeper.append([{"id": 100 + number}])
    store.rename_table("events", "sales")
    make(store, "events", 1)
    store.drop_table("events")
    store.drop_table("sales")
    world.clock.now += 2 * DAY
    store.vacuum()
    world.clock.now += 2 * DAY
    store.vacuum()
    store.vacuum()
    assert set(entries_of(store).values()) == {1}
    assert list(store._services.blob.list("tables")) == []
    for again in (store, Store(store.location, world.services())):
        assert again.tables() == []
        for name in ("events", "sales"):
            with pytest.raises(TableNotFoundError):
                again.table(name)
            with pytest.raises(TableNotFoundError):
                again.undrop_table(name)
    for attempt in (lambda: sleeper.append([{"id": 1}]), sleeper.to_arrow):
        with pytest.raises(TableNotFoundError):
            attempt()
    assert ids(make(store, "events", 7)) == [7]
    store.rename_table("events", "sales")
    assert {name: ids(store[name]) for name in Store(store.location, world.services())} == {"sales": [7]}


def test_a_dropped_table_stays_while_somebody_reads_it(store: Store, world: World) -> None:
    """However long ago it was dropped; it can be brought back until the reader has finished."""
    table = make(store, "events", 1, 2)
    with table.snapshot() as snapshot:
        store.drop_table("events")
        world.clock.now += 2 * DAY
        store._services.leases.renew()
        store.vacuum()
        assert sorted(snapshot.to_arrow()["id"].to_pylist()) == [1, 2]
        assert ids(store.undrop_table("events")) == [1, 2]
        store.drop_table("events")
    world.clock.now += 2 * DAY
    store.vacuum()
    with pytest.raises(TableNotFoundError, match="a vacuum has removed what it held"):
        store.undrop_table("events")


def test_a_name_that_was_used_again_is_not_brought_back(store: Store) -> None:
    """The table that has the name now is not disturbed."""
    make(store, "events", 1)
    store.drop_table("events")
    make(store, "events", 2)
    with pytest.raises(TableExistsError):
        store.undrop_table("events")
    assert ids(store["events"]) == [2]


@pytest.mark.parametrize("kind", ["create", "rename", "undrop"])
def test_a_name_means_one_table(store: Store, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Whoever takes a name while a rename to it is on its way has it, and the rename fails."""
    make(store, "events", 1)
    make(store, "other", 2)
    if kind == "undrop":
        make(store, "taken", 3)
        store.drop_table("taken")
    real = end_rename
    rivals = {
        "create": lambda: make(store, "taken", 3),
        "rename": lambda: store.rename_table("other", "taken"),
        "undrop": lambda: store.undrop_table("taken"),
    }

    def late(state: TableState, name: str) -> tuple[Step, ...]:
        monkeypatch.setattr(naming, "end_rename", real)
        rivals[kind]()
        return real(state, name)

    monkeypatch.setattr(naming, "end_rename", late)
    with pytest.raises(ConflictError):
        store.rename_table("events", "taken")
    assert ids(store["taken"]) == ([2] if kind == "rename" else [3])
    assert ids(store["events"]) == [1]
    assert len(store.tables()) == {"create": 3, "rename": 2, "undrop": 3}[kind]


def test_a_rename_that_was_cut_short(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table has its old name, and either name can be used; the rename can be done again."""
    make(store, "events", 1)

    def killed(*_arguments: object) -> object:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(naming, "end_rename", killed)
        with pytest.raises(KeyboardInterrupt):
            store.rename_table("events", "later")
    assert store.tables() == ["events"]
    store.vacuum(grace_ms=0)
    make(store, "later", 2)
    assert {name: ids(store[name]) for name in store} == {"events": [1], "later": [2]}
    store.drop_table("later")
    store.rename_table("events", "later")
    assert {name: ids(store[name]) for name in store} == {"later": [1]}


def test_a_clone_is_a_table_of_its_own(store: Store) -> None:
    """It begins with the rows and the past of the other; from then on neither sees what the other does."""
    table = make(store, "events", 1, 2, 3)
    table.delete("id = 2")
    clone = table.clone("copy")
    assert ids(clone) == [1, 3]
    assert clone.snapshot(as_of=table.history()[-2].ts).count() == 3
    clone.append([{"id": 4}])
    clone.upsert([{"id": 1}])
    clone.delete("id = 3")
    table.append([{"id": 5}])
    table.evolve().add_column("more", "string").commit()
    assert ids(clone) == [1, 4]
    assert ids(table) == [1, 3, 5]
    assert clone.snapshot(version=0).count() == 2
    assert clone.schema.names == ("id",)
    assert clone.history()[-1].what.startswith("cloned from events at seqno")
    clone.compact(full=True)
    assert ids(clone) == [1, 4]
    with pytest.raises(TableExistsError):
        table.clone("copy")


def test_a_clone_of_rows_that_were_retracted_by_value(store: Store) -> None:
    """What was found out about rows of one table is not taken for the other, which has the same files."""
    table = make(store, "events", 1, 2, 3)
    table.apply(pa.table({"id": pa.array([2], pa.int32()), "_diff": [-1]}))
    assert ids(table) == [1, 3]
    clone = table.clone("copy")
    assert ids(clone) == [1, 3]
    table.delete("id = 1")
    clone.delete("id = 3")
    assert (ids(table), ids(clone)) == ([3], [1])


def test_a_table_that_is_renamed_while_it_is_dropped(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table has another name now, and nobody asked for it to be dropped under that; nor to be renamed."""
    make(store, "events", 1)
    real = naming.open_log

    def late(*arguments: object) -> TableLog:
        log = real(*arguments)  # type: ignore[arg-type]
        monkeypatch.setattr(naming, "open_log", real)
        store.rename_table("events", "sales")
        return log

    monkeypatch.setattr(naming, "open_log", late)
    with pytest.raises(TableNotFoundError, match="renamed to `sales`"):
        store.drop_table("events")
    store.rename_table("sales", "events")
    monkeypatch.setattr(naming, "open_log", late)
    with pytest.raises(TableNotFoundError, match="renamed to `sales`"):
        store.rename_table("events", "others")
    assert ids(store["sales"]) == [1]


def test_a_vacuum_keeps_what_clones_need(store: Store, world: World) -> None:
    """Also after a compaction or the drop of the other table, and for a clone of a clone."""
    table = make(store, "events", 1, 2)
    table.append([{"id": 3}])
    files = f"tables/{table.state.table_id}/parts"
    second = table.clone("second")
    third = second.clone("third")
    table.compact(full=True)
    store.drop_table("second")
    world.clock.now += 2 * DAY
    store.vacuum(grace_ms=0)
    world.clock.now += 2 * DAY
    store.drop_table("events")
    make(store, "events", 9)
    store.vacuum(grace_ms=0)
    assert ids(third) == [1, 2, 3]
    assert len(list(store._services.blob.list(files))) == 2
    third.compact(full=True)
    world.clock.now += 2 * DAY
    store.vacuum(grace_ms=0)
    assert list(store._services.blob.list(files)) == []
    assert ids(third) == [1, 2, 3]
    assert ids(store["events"]) == [9]


def test_a_vacuum_in_the_middle_of_a_clone() -> None:
    """It takes nothing that the clone has written or will refer to, whenever it comes."""

    def vacuum(store: Store) -> None:
        store["events"].compact(full=True)
        store.vacuum(grace_ms=0)

    def check(store: Store) -> None:
        assert ids(store["copy"]) == ids(store["events"]) == [1, 2]

    steps = Steps(
        lambda store: make(store, "events", 1, 2), lambda store: store["events"].clone("copy"), vacuum, check
    )
    assert between_requests(steps) > 10


@pytest.mark.parametrize("ended", ["compacted", "dropped"])
def test_a_clone_of_a_clone_in_the_middle_of_a_vacuum(ended: str) -> None:
    """The first clone gives its files up meanwhile; the second one has them all the same."""

    def prepare(store: Store) -> None:
        make(store, "events", 1, 2).clone("first")
        store["events"].compact(full=True)

    def clone(store: Store) -> None:
        store["first"].clone("second")
        if ended == "dropped":
            store.drop_table("first")
        else:
            store["first"].append([{"id": 3}])
            store["first"].compact(full=True)
        vacuum_table(store._services, "first", grace_ms=0)

    def check(store: Store) -> None:
        assert ids(store["second"]) == [1, 2]

    steps = Steps(prepare, lambda store: store["events"].vacuum(grace_ms=0), clone, check)
    assert between_requests(steps) > 10


def test_a_vacuum_in_the_middle_of_another() -> None:
    """Neither takes what the other one deletes for lost, though the table goes on."""

    def other(store: Store) -> None:
        store["events"].append([{"id": 3}])
        store["events"].compact(full=True)
        store.vacuum(grace_ms=0)

    def check(store: Store) -> None:
        assert ids(store["events"]) == [1, 2, 3]

    steps = Steps(
        lambda store: make(store, "events", 1, 2), lambda store: store.vacuum(grace_ms=0), other, check
    )
    assert between_requests(steps) > 10


def test_a_clone_that_slept_too_long(store: Store, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vacuum may have come while nobody renewed its lease, so it does not begin."""
    table = make(store, "events", 1)
    real = put_clone_note

    def late(*arguments: object) -> None:
        world.clock.now += DAY
        real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(cloning, "put_clone_note", late)
    with pytest.raises(ConflictError, match="longer than its lease lasts"):
        table.clone("copy")
    assert store.tables() == ["events"]


def test_a_clone_whose_name_was_taken_meanwhile() -> None:
    """It gets another log, and nothing that was written for the first one is taken for its own."""

    def prepare(store: Store) -> None:
        make(store, "events", 1)
        make(store, "copy", 7, 8)
        store.drop_table("copy")

    def take(store: Store) -> None:
        with suppress(TableNotFoundError, TableExistsError):
            store.undrop_table("copy")
            store.rename_table("copy", "away")

    def check(store: Store) -> None:
        copy = store["copy"]
        for value in range(2, 9):
            copy.append([{"id": value}])
            copy._log.checkpoint()
        assert ids(store["copy"]) == [1, 2, 3, 4, 5, 6, 7, 8]

    steps = Steps(prepare, lambda store: store["events"].clone("copy"), take, check)
    assert between_requests(steps) > 10


def test_a_dropped_table_comes_back_though_its_first_name_was_used_again(store: Store) -> None:
    """What is created or cloned under a name that it had before does not take its log."""
    make(store, "events", 1)
    store.rename_table("events", "sales")
    store.drop_table("sales")
    make(store, "events", 2)
    assert ids(store.undrop_table("sales")) == [1]
    store.drop_table("sales")
    store.drop_table("events")
    make(store, "other", 3).clone("events")
    store.undrop_table("sales")
    assert {name: ids(store[name]) for name in store} == {"events": [3], "other": [3], "sales": [1]}


def test_a_clone_under_a_former_name(store: Store) -> None:
    """A table can be renamed away and its clone take the name."""
    make(store, "events", 1)
    store.rename_table("events", "kept")
    store["kept"].clone("events").append([{"id": 2}])
    assert {name: ids(store[name]) for name in store} == {"events": [1, 2], "kept": [1]}
    again = TableLog(store._services, "events", store["events"]._log.key)
    assert again.load().name == "events"


def test_tables_of_a_stream_keep_their_names(store: Store) -> None:
    """The stream tells them."""
    stream = store.create_stream("s", "at timestamp, id int", time="at")
    stream.write(pa.table({"at": pa.array([0], pa.timestamp("us", "UTC")), "id": pa.array([1], pa.int32())}))
    name = store.tables()[0]
    with pytest.raises(UsageError, match="stream"):
        store.rename_table(name, "mine")
    with pytest.raises(UsageError, match="stream"):
        store[name].clone("mine")
