"""What planning costs, counted: the calls between Python and the JVM do not grow with a table."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from py4j.java_gateway import GatewayClient

from instar.storage.directory import DirectoryBlob
from tests.tables import append_parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from instar import Store, Table


@pytest.fixture
def count_calls(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], int]:
    """Return what counts the calls into the JVM that something makes."""
    made = []
    original = GatewayClient.send_command

    def send_command(self: GatewayClient, command: str, *args: object, **kwargs: object) -> object:
        # Not those of the garbage collector, or of who looks after connections, whenever they like.
        if not command.startswith("m\n") and threading.current_thread().name != "instar-caretaker":
            made.append(command)
        return original(self, command, *args, **kwargs)

    monkeypatch.setattr(GatewayClient, "send_command", send_command)

    def count(action: Callable[[], object]) -> int:
        # The least of three: a thread of Spark's that calls back meanwhile only ever adds.
        counts = []
        for _ in range(3):
            made.clear()
            action()
            counts.append(len(made))
        return min(counts)

    return count


def table_of(store: Store, parts: int) -> Table:
    """Return a table that says it has so many parts; nobody opens them."""
    table = store.create_table(f"t{parts}", "k int, v string")
    append_parts(table._services, table._log, parts)
    assert table.state.totals.parts == parts
    return table


def plan(frame: DataFrame) -> str:
    """Let Spark plan a query down to its tasks."""
    return str(frame._jdf.queryExecution().executedPlan().execute().getNumPartitions())


def test_calls_do_not_grow_with_parts(
    spark: SparkSession, store: Store, count_calls: Callable[[Callable[[], object]], int]
) -> None:
    """A snapshot of 2,000 parts, a view of them and a plan of either take as many calls as of 10."""
    few, many = table_of(store, 10), table_of(store, 2000)
    actions: dict[str, Callable[[Table], object]] = {
        "a frame": lambda table: table.read(spark),
        "a plan": lambda table: plan(table.read(spark).where("k > 5 and v like 'a%'")),
        "a plan of a view": lambda table: plan(table.follow(spark).where("k > 5")),
    }
    for name, action in actions.items():
        action(few)  # what is done once for the process is not counted
        small, large = (count_calls(partial(action, table)) for table in (few, many))
        assert 0 < large <= small + 5, name
        assert large < 1000, name


def test_calls_do_not_grow_with_parts_that_have_gaps(
    spark: SparkSession, store: Store, count_calls: Callable[[Callable[[], object]], int]
) -> None:
    """Nor with the number of parts of which rows were deleted, in a snapshot and in a view."""
    few, many = gaps_in(store, 3), gaps_in(store, 30)
    actions: dict[str, Callable[[Table], object]] = {
        "a plan": lambda table: plan(table.read(spark).where("k > 5")),
        "a query of a view": lambda table: table.follow(spark).where("k > 5").collect(),
    }
    for name, action in actions.items():
        action(few)
        small, large = (count_calls(partial(action, table)) for table in (few, many))
        assert 0 < large <= small + 60, name  # and not a dozen for each of 27 parts more
    assert many.read(spark).count() == many.follow(spark).count() == 30


def gaps_in(store: Store, parts: int) -> Table:
    """Return a table of so many parts, half the rows of each of which were deleted."""
    table = store.create_table(f"gaps{parts}", "k int")
    for number in range(parts):
        table.append(pa.table({"k": pa.array([2 * number, 2 * number + 1], pa.int32())}))
    table.delete("k % 2 = 1")
    return table


def test_requests_do_not_grow_with_parts(
    spark: SparkSession, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planning asks the store for the state and some chunks, never for a part, and a listing not at all."""
    asked: list[str] = []
    for name in ("find", "find_many", "get", "get_ranges", "stat", "list"):
        original = getattr(DirectoryBlob, name)

        def spying(
            self: DirectoryBlob, *args: object, _name: str = name, _original: object = original
        ) -> object:
            asked.append(f"{_name} {args[:1]}")
            return _original(self, *args)  # type: ignore[operator]

        monkeypatch.setattr(DirectoryBlob, name, spying)
    counts = []
    for parts in (10, 2000):
        table = table_of(store, parts)
        asked.clear()
        plan(table.read(spark))
        counts.append(len(asked))
        assert not [what for what in asked if "/parts/" in what]
    assert counts[1] <= counts[0] + 10
