"""Tables that begin with rows, and tables in the place of others: all of it in one commit, or nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from instar.api import Store
from instar.errors import (
    DataMismatchError,
    StorageError,
    TableExistsError,
    TableNotFoundError,
    UsageError,
)
from tests.faults import Faults, Outcome, UnreliableConsensus
from tests.unit.api.two_machines import Steps, between_requests

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.api import Table
    from tests.tables import World

DAY = 24 * 60 * 60 * 1000


def rows(*values: int) -> list[dict[str, int]]:
    """Return rows of one column."""
    return [{"id": value} for value in values]


def ids(table: Table) -> list[int]:
    """Return what a table of one column holds."""
    return sorted(value for row in table.to_arrow().to_pylist() for value in row.values())


def make(store: Store, name: str, *values: int) -> Table:
    """Create a table of one column in two commits."""
    table = store.create_table(name, "id int")
    table.append(rows(*values))
    return table


def rename_away(store: Store) -> None:
    """Let the log of a name belong to a table that is called otherwise."""
    make(store, "events", 8)
    store.rename_table("events", "other")


def rename_to(store: Store) -> None:
    """Let a table have a name that is not its first."""
    make(store, "first", 1)
    store.rename_table("first", "events")


def create_again(store: Store) -> None:
    """Let a table have a log of its own, because that of its name belongs to another."""
    rename_away(store)
    make(store, "events", 1)


def drop(store: Store) -> None:
    """Let a table be no more."""
    make(store, "events", 1)
    store.drop_table("events")


def create_once(store: Store) -> None:
    """Let a table have the log of its name."""
    make(store, "events", 1)


def create_nothing(_: Store) -> None:
    """Let the name never have been used."""


WITH_TABLE = [create_once, rename_to, create_again]
BEFORE = [*WITH_TABLE, create_nothing, rename_away, drop]


@pytest.mark.parametrize("before", BEFORE)
def test_a_table_takes_the_place_of_another(
    store: Store, world: World, before: Callable[[Store], object]
) -> None:
    """Whatever log the name is in, it means the new table from one commit on; others stay as they are."""
    before(store)
    old = store["events"] if before in WITH_TABLE else None
    held = None if old is None else old.snapshot()
    others = [name for name in store if name != "events"]
    for number in (1, 2):  # the second replaces the first
        new = store.create_table("events", "name int", data=[{"name": number}], replace=True)
        assert (
            ids(new) == ids(store["events"]) == ids(Store("memory", world.services())["events"]) == [number]
        )
        assert store["events"].schema.names == ("name",)
        assert [commit.what.partition(" at ")[0] for commit in new.history()] == ["created; appended 1 row"]
        assert new.snapshot(version=new.state.seqno).count() == 1
        assert sorted(store.tables()) == sorted(["events", *others])
    if old is not None and held is not None:
        with pytest.raises(TableNotFoundError, match="and another table has its name now"):
            old.append(rows(5))
        assert held.to_arrow().to_pylist() == rows(1)
    with pytest.raises(TableExistsError):
        store.undrop_table("events")
    new.append([{"name": 3}])
    held = None
    world.clock.now += 2 * DAY
    store.vacuum()
    assert ids(store["events"]) == [2, 3]
    assert {name: ids(store[name]) for name in others} == {name: [8] for name in others}
    store.rename_table("events", "later")
    assert ids(store["later"]) == [2, 3]
    assert "events" not in store


def test_a_table_begins_with_rows_or_not_at_all(store: Store, world: World) -> None:
    """Rows that do not fit create no table and replace none; what they left goes with a vacuum."""
    with pytest.raises(DataMismatchError):
        store.create_table("events", "id int not null", data=[{"id": 1}, {"id": None}])
    assert store.tables() == []
    old = store.create_table("events", "id int", data=rows(1, 2))
    assert ids(old) == [1, 2]
    with pytest.raises(DataMismatchError):
        store.create_table("events", "id int not null", data=[{"id": None}], replace=True)
    with pytest.raises(UsageError):
        store.create_table("events", "id int", options={"nothing": 1}, data=rows(3), replace=True)
    with pytest.raises(TableExistsError):
        store.create_table("events", "id int", data=rows(3))
    assert ids(old) == ids(store["events"]) == [1, 2]
    world.clock.now += 2 * DAY
    store.vacuum()
    owners = {stored.key.split("/")[1] for stored in store._services.blob.list("tables")}
    assert owners == {old.state.table_id}
    store.create_table("events", "id bigint", replace=True)
    assert ids(store["events"]) == []
    assert ids(store.create_table("more", "id int", data=rows(*range(5)))) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("before", BEFORE)
def test_nobody_finds_a_name_without_a_table(before: Callable[[Store], object]) -> None:
    """Between any two requests, a reader finds the old rows or the new ones, and a writer gets an answer."""
    acknowledged: list[list[int]] = []

    def prepare(store: Store) -> None:
        acknowledged.clear()
        before(store)

    def use(store: Store) -> None:
        if "events" not in store:
            assert before not in WITH_TABLE
            return
        assert ids(store["events"]) in ([1], [2])
        store["events"].append(rows(7))
        acknowledged.append(ids(store["events"]))

    def check(store: Store) -> None:
        assert ids(store["events"]) == ([2, 7] if acknowledged == [[2, 7]] else [2])

    def replace(store: Store) -> None:
        store.create_table("events", "id int", data=rows(2), replace=True)

    assert between_requests(Steps(prepare, replace, use, check)) >= 4


@pytest.mark.parametrize("other", ["drops", "renames", "replaces", "creates"])
def test_others_change_the_name_meanwhile(other: str) -> None:
    """The table that was committed last has the name, and none is lost that was renamed."""

    def meanwhile(store: Store) -> None:
        if other == "drops":
            store.drop_table("events")
        elif other == "renames":
            store.rename_table("events", "kept")
        elif other == "replaces":
            store.create_table("events", "id int", data=rows(3), replace=True)
        else:
            store.create_table("events", "id int", data=rows(3))

    def check(store: Store) -> None:
        assert {name: ids(store[name]) for name in store} in (
            {"events": [2]},
            {"events": [3]},
            {"events": [2], "kept": [1]},
            {"kept": [2]},
            {},
        )
        if other in {"replaces", "creates"}:
            assert "events" in store

    def replace(store: Store) -> None:
        store.create_table("events", "id int", data=rows(2), replace=True)

    def prepare(store: Store) -> None:
        if other != "creates":
            make(store, "events", 1)

    def attempt(store: Store) -> None:
        if other != "creates" or "events" not in store:
            meanwhile(store)

    assert between_requests(Steps(prepare, replace, attempt, check)) >= 4


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.DONE])
def test_a_replacement_whose_reply_is_lost(world: World, outcome: Outcome) -> None:
    """It has happened, or has not, and the caller is told which."""
    make(Store("memory", world.services()), "events", 1)
    faults = Faults(script=[("append", outcome)])
    store = Store("memory", world.services(consensus=lambda logs: UnreliableConsensus(logs, faults)))
    expected = [2]
    if outcome is Outcome.NOT_DONE:
        expected = [1]
        with pytest.raises(StorageError):
            store.create_table("events", "id int", data=rows(2), replace=True)
    else:
        store.create_table("events", "id int", data=rows(2), replace=True)
    assert ids(Store("memory", world.services())["events"]) == expected


def test_versions_of_a_former_table_are_not_those_of_its_successor(store: Store) -> None:
    """Numbers go on, and one that was of the former table is refused rather than read as nothing."""
    make(store, "events", 1)
    new = store.create_table("events", "id int", data=rows(2), replace=True)
    with pytest.raises(UsageError, match="version 1 is of another table"):
        new.snapshot(version=1)
    assert new.snapshot(version=2).count() == 1


def test_tables_of_a_stream_are_not_replaced(store: Store) -> None:
    """The stream says what they are."""
    stream = store.create_stream("s", "at timestamp, id int", time="at")
    stream.write([{"at": datetime(2026, 11, 15, tzinfo=UTC), "id": 1}])
    (name,) = store.tables()
    with pytest.raises(UsageError, match="stream"):
        store.create_table(name, "id int", replace=True)
