"""A table with `compact="auto"` looks after itself, and nobody who writes or reads notices."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from instar.api.store import Store
from instar.errors import StorageError, UsageError
from instar.table.housekeeping import upkeep

if TYPE_CHECKING:
    from instar.api.table import Table
    from instar.table.housekeeping.rewrite import Work
    from tests.tables import World


@pytest.fixture(autouse=True)
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few commits be many, and take no rest."""
    monkeypatch.setattr(upkeep, "EVERY", 16)
    monkeypatch.setattr(upkeep, "FAN_IN", 4)
    monkeypatch.setattr(upkeep, "REST", 0)


def add(table: Table, commits: int) -> None:
    """Append rows one by one, out of order."""
    for number in range(commits):
        table.append(pa.table({"id": [number * 7919 % 1000], "v": [f"v{number}"]}))


def wait(table: Table) -> None:
    """Wait until nothing goes on in the background."""
    for task in table._services._tasks:
        task.join()


@pytest.mark.parametrize("layout", [{}, {"order_by": ["id"]}, {"cluster_by": ["id", "v"]}])
def test_many_small_appends_leave_few_parts(store: Store, layout: dict[str, list[str]]) -> None:
    """And every row, as of every time."""
    table = store.create_table("t", "id bigint, v string", options={"compact": "auto"}, **layout)
    times = []
    for number in range(100):
        times.append(table.append(pa.table({"id": [number * 37 % 101], "v": [f"v{number}"]})).ts)
        assert table.count() == number + 1
    wait(table)
    assert table.state.totals.parts < 40
    assert any(commit.what.startswith("compacted") for commit in table.history())
    for number in (0, 13, 60, 99):
        with table.snapshot(as_of=times[number]) as snapshot:
            assert sorted(snapshot.to_arrow()["v"].to_pylist()) == sorted(
                f"v{it}" for it in range(number + 1)
            )


def test_a_table_that_does_not_want_it_is_left_alone(store: Store, world: World) -> None:
    """Off is the default. A store may choose otherwise for its tables, and a table for itself."""
    plain = store.create_table("plain", "id bigint, v string")
    add(plain, 20)
    assert plain.state.totals.parts == 20
    services = world.services()
    object.__setattr__(services, "defaults", {"compact": "auto"})
    caring = Store("memory", services)
    kept = caring.create_table("kept", "id bigint, v string", options={"compact": "off"})
    add(kept, 20)
    assert kept.state.totals.parts == 20
    other = caring.table("plain")
    add(other, 20)
    wait(other)
    assert other.state.totals.parts < 40
    with pytest.raises(UsageError, match="off, auto"):
        plain.configure(compact="always")


def test_what_goes_wrong_is_logged_and_no_append_fails(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The table is as it was, and it is tried again later."""

    def fail(_work: Work, /) -> list[object]:
        raise StorageError("writing a part", "the disk is full")

    monkeypatch.setattr(upkeep, "rewrite_parts", fail)
    table = store.create_table("t", "id bigint, v string", options={"compact": "auto"})
    with caplog.at_level(logging.WARNING, "instar.upkeep"):
        add(table, 40)
        wait(table)
    assert table.count() == table.state.totals.parts == 40
    assert "the disk is full" in caplog.text
    monkeypatch.undo()


def test_it_ends_when_the_store_is_closed(store: Store, world: World) -> None:
    """Nothing is begun any more, and nothing is left running."""
    table = store.create_table("t", "id bigint, v string", options={"compact": "auto"})
    add(table, 40)
    services = table._services
    services.close()
    assert not any(task.is_alive() for task in services._tasks)
    assert Store("memory", world.services()).table("t").count() == 40


def test_deletes_and_upserts_go_on_meanwhile(store: Store) -> None:
    """Parts that are replaced under them are looked for again."""
    table = store.create_table(
        "t", "id bigint, v string", order_by=["id"], key=["id"], options={"compact": "auto"}
    )
    expected: dict[int, str] = {}
    for number in range(120):
        key = number * 31 % 50
        table.upsert(pa.table({"id": [key], "v": [f"v{number}"]}))
        expected[key] = f"v{number}"
        if number % 11 == 0:
            table.delete(f"id = {number % 50}")
            expected.pop(number % 50, None)
    wait(table)
    assert dict(zip(*table.snapshot().to_arrow().to_pydict().values(), strict=True)) == expected
    assert table.state.totals.parts < 80
