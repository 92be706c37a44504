"""A table with `compact="auto"` looks after itself, and nobody who writes or reads notices."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import instar as library
from instar.api.store import Store
from instar.errors import StorageError, UsageError
from instar.table.housekeeping import upkeep
from instar.table.write.append import begin_write
from instar.table.write.store import store_parts

if TYPE_CHECKING:
    from pathlib import Path

    from instar.api.table import Table
    from instar.state import TableState
    from instar.table import Services
    from instar.table.housekeeping.plan import CompactionJob
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
    order_by, cluster_by = layout.get("order_by", []), layout.get("cluster_by", [])
    table = store.create_table(
        "t", "id bigint, v string", options={"compact": "auto"}, order_by=order_by, cluster_by=cluster_by
    )
    times = []
    for number in range(100):
        times.append(table.append(pa.table({"id": [number * 37 % 101], "v": [f"v{number}"]})).ts)
        assert table.count() == number + 1
        if number % 20 == 0:
            wait(table)  # however slow it is, it shall have its turns
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


def test_a_table_whose_writer_is_faster_gets_no_rest(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is left alone for some commits only, and what is left then is done when the store is closed."""
    monkeypatch.setattr(upkeep, "REST", 10**9)
    monkeypatch.setattr(upkeep, "BEHIND", 32)
    table = store.create_table("t", "id bigint, v string", options={"compact": "auto"})
    most = 0
    for _ in range(8):
        add(table, 16)
        most = max(most, table.state.totals.parts)
        wait(table)
    assert most < 80
    monkeypatch.setattr(upkeep, "BEHIND", 10**9)
    add(table, 40)
    assert table.state.totals.parts >= 40
    store.close()
    assert table._log.load().totals.parts < 16


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


def test_writers_that_end_after_each_commit_leave_few_parts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose turn it is finishes one job, even if the store is being closed before it was begun."""

    def choose(services: Services, state: TableState) -> list[CompactionJob]:
        services.closing.wait()
        return upkeep_choose(services, state)

    upkeep_choose = upkeep._choose
    monkeypatch.setattr(upkeep, "_choose", choose)
    Store("memory", world.services()).create_table("t", "id bigint, v string", options={"compact": "auto"})
    for number in range(64):
        services = world.services()
        Store("memory", services).table("t").append(pa.table({"id": [number], "v": ["v"]}))
        services.close()
    table = Store("memory", world.services()).table("t")
    assert table.count() == 64
    assert table.state.totals.parts < 20


def test_a_process_that_ends_finishes_what_it_has_begun(tmp_path: Path) -> None:
    """It starts no more threads then, says nothing, and reads metadata of several chunks all the same."""
    lake = tmp_path / "lake"
    with library.open(lake) as store:
        table = store.create_table("t", "id bigint", options={"compact": "auto"})
        for start in (0, 100):
            with begin_write(table._services, table._log) as write:
                plan = write.plan(table.schema)
                stored = [
                    one
                    for number in range(start, start + 100)
                    for one in store_parts(plan, [pa.record_batch({"f1": [number]})], str(number))
                ]
                write.commit(stored, 0)
        while table.state.seqno < 63:
            table.configure(retention=f"{table.state.seqno}d")
    program = (
        "import sys, threading, instar, pyarrow as pa\n"
        "from instar.table.housekeeping import upkeep\n"
        "choose = upkeep._choose\n"
        "def late(*given):\n"
        "    threading.main_thread().join()\n"  # so that it has only begun when the process ends
        "    return choose(*given)\n"
        "upkeep._choose = late\n"
        "instar.open(sys.argv[1]).table('t').append(pa.table({'id': [-1]}))\n"
    )
    command = [sys.executable, "-c", program, str(lake)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with library.open(lake) as store:
        assert sorted(store.table("t").to_pandas()["id"]) == list(range(-1, 200))
        assert store.table("t").state.totals.parts < 20


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
