"""What a commit and a cold start cost, in requests and bytes: neither grows with the table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from instar.api import Table
from instar.state.chunk import FILES
from instar.stats import FieldStats, bounds_columns
from instar.storage import BlobConsensus
from instar.table import TableLog, create_table, load_parts
from tests.faults import Faults, UnreliableBlob, UnreliableConsensus
from tests.tables import World, append_parts, small_numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.table import Services

MANY = 100_000
COLUMNS = 8


class Meter(UnreliableBlob):
    """Counts the bytes that are written and read."""

    written = 0
    read = 0

    def put(self, key: str, data: Any, *, durable: bool = True) -> None:  # noqa: ANN401 - bytes of some sort
        """Count, and put."""
        self.written += len(data)
        super().put(key, data, durable=durable)

    def put_if_absent(self, key: str, data: Any) -> bool:  # noqa: ANN401 - bytes of some sort
        """Count, and put."""
        self.written += len(data)
        return super().put_if_absent(key, data)


def bounds(number: int) -> dict[int, FieldStats]:
    """Make up bounds that do not compress to nothing."""
    value = number * 2654435761 % 2**31
    return {field: FieldStats(number % 7, 0, value - field, value + field) for field in range(1, COLUMNS + 1)}


def drop(value: int, _: int) -> dict[int, FieldStats]:
    """Say that a part holds one value."""
    return {1: FieldStats(0, 0, value, value)}


def fill(world: World, name: str, count: int) -> None:
    """Make a table with so many parts, in chunks of a rollup."""
    services = world.services()
    log = create_table(services, name, ", ".join(f"c{number} bigint" for number in range(COLUMNS)))
    append_parts(services, log, count, bounds)
    log.checkpoint()


@pytest.fixture(scope="module")
def grown() -> World:
    """Return a place with a small table and a large one."""
    world = World()
    fill(world, "small", 100)
    fill(world, "large", MANY)
    world.close()
    return world


def metered(world: World) -> tuple[Services, Faults, Meter]:
    """Open the place anew, and count."""
    faults = Faults()
    meter = Meter(world.blob, faults)
    services = world.services(
        blob=lambda _: meter, consensus=lambda _: UnreliableConsensus(BlobConsensus(meter), faults)
    )
    return services, faults, meter


def cost(
    world: World, name: str, act: Callable[[Services, TableLog], object], *, warm: bool = True
) -> tuple[list[str], int]:
    """Return the requests that something makes, by name, and the bytes that it writes."""
    services, faults, meter = metered(world)
    log = TableLog(services, name)
    if warm:
        log.load()
    faults.calls.clear()
    meter.written = 0
    act(services, log)
    services.close()
    return [operation for operation, _ in faults.calls], meter.written


@pytest.mark.parametrize("count", [1, 70], ids=["inline", "chunk"])
def test_a_commit_costs_the_same_in_a_table_of_any_size(grown: World, count: int) -> None:
    """With 100 parts or with 100,000, an append makes the same requests and writes as many bytes."""
    small, large = (
        cost(grown, name, lambda services, log: append_parts(services, log, count, bounds))
        for name in ("small", "large")
    )
    assert small[0] == large[0]
    assert large[1] <= small[1] + 100


def test_an_evolution_costs_the_same_in_a_table_of_any_size(grown: World) -> None:
    """A change of schema writes the schema, and nothing about parts."""
    small, large = (
        cost(
            grown,
            name,
            lambda services, log: (
                Table(services, log).evolve().make_nullable("c1").rename_column("c1", "d1").commit()
            ),
        )
        for name in ("small", "large")
    )
    assert small[0] == large[0]
    assert large[1] <= small[1] + 100


def test_a_rollup_writes_what_has_changed(grown: World) -> None:
    """It shares the large chunks with the rollup before, and refers to each in a few bytes."""

    def act(services: Services, log: TableLog) -> None:
        append_parts(services, log, 3, bounds)
        log.checkpoint()

    operations, written = cost(grown, "large", act)
    assert written < 20_000
    assert len(operations) < 60


def test_a_cold_start_reads_a_rollup_and_the_commits_after_it(grown: World) -> None:
    """Opening a table of 100,000 parts reads no metadata of parts."""
    small, _ = cost(grown, "small", lambda _, log: log.load(), warm=False)
    large, _ = cost(grown, "large", lambda _, log: log.load(), warm=False)
    assert "get_ranges" not in large
    assert len(large) <= len(small) + 4


def test_an_append_looks_at_the_log_once(grown: World) -> None:
    """It looks at the end, takes a lease, puts a part and commits, and looks no more."""
    rows = pa.table({"c0": [1]})
    requests, _ = cost(grown, "small", lambda services, log: Table(services, log).append(rows))
    steps = [request for request in requests if request in {"head", "scan", "put", "append"}]
    assert steps == ["scan", "put", "put", "append"]


def test_only_the_columns_that_are_asked_for_are_read(grown: World) -> None:
    """For the statistics of two of eight fields, only the groups of these and of the files are fetched."""
    services, faults, _ = metered(grown)
    state = TableLog(services, "large").load()
    faults.calls.clear()
    fields = [state.history.latest.fields[2], state.history.latest.fields[5]]
    assert len(load_parts(services.chunks, state, fields, (FILES,))) >= MANY
    chunks = [*state.chunks, *(ref for batch in state.tail for ref in batch.chunks)]
    directories = [services.chunks.directory(ref) for ref in chunks]
    names = {FILES, *(f"f{field.id}" for field in fields)}
    asked = sum(entry.length for one in directories for name, entry in one.groups.items() if name in names)
    total = sum(ref.size for ref in chunks)
    assert services.chunks.bytes_read == asked + sum(ref.directory_size for ref in chunks)
    assert services.chunks.bytes_read < 0.6 * total
    assert [operation for operation, _ in faults.calls] == ["get_ranges"] * (2 * len(chunks))
    read = services.chunks.bytes_read
    load_parts(services.chunks, state, fields, (FILES,))
    assert services.chunks.bytes_read == read, "what was read once is remembered"
    services.close()


def test_chunks_stay_few(world: World) -> None:
    """Hundreds of commits of a part each are merged like the digits of a counter."""
    with small_numbers(chunk_parts=1000):
        services = world.services()
        log = create_table(services, "drops", "n int")
        for number in range(400):
            append_parts(services, log, 1, partial(drop, number))
        state = log.checkpoint()
        assert state.totals.parts == 400
        assert len(state.chunks) <= 10
        assert sum(ref.parts for ref in state.chunks) == 400


def test_processes_that_commit_once_leave_a_log_that_starts_late(world: World) -> None:
    """A rollup is told of even if its writer never commits again, so nobody replays the whole log."""
    with small_numbers(rollup_every=4):
        create_table(world.services(), "cron", "n int")
        for _ in range(40):
            services = world.services()
            append_parts(services, TableLog(services, "cron"))
            services.close()
        state = TableLog(world.services(), "cron").load()
        assert state.totals.parts == 40
        assert state.seqno - state.start.seqno <= 2 * 4 + 1
        assert len(state.tail) <= 2 * 4


def test_a_handle_that_only_follows_stays_small(world: World) -> None:
    """It starts over from a newer rollup once its own tail is long, so that it does not pile up the log."""
    with small_numbers(rollup_every=4):
        services = world.services()
        log = create_table(services, "busy", "n int")
        follower = TableLog(world.services(), "busy")
        longest = 0
        for _ in range(60):
            append_parts(services, log)
            longest = max(longest, len(follower.load().tail))
        assert longest <= 2 * 4 + 4


def test_bounds_of_young_parts_are_laid_out_for_columns_that_are_asked_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan looks at no column, and a filter at its own, however many the table has."""
    fill(world, "t", 3)
    services = world.services()
    table = Table(services, TableLog(services, "t"))
    laid_out: list[object] = []

    def noted(*given: Any) -> pa.RecordBatch:  # noqa: ANN401 -- whatever it takes
        laid_out.append(given)
        return bounds_columns(*given)

    monkeypatch.setattr("instar.state.manifest.bounds_columns", noted)
    with table.snapshot():
        assert not laid_out
    table.explain("c3 = 7 AND c5 > 1")
    assert len(laid_out) == 2 * 2  # once to decide, and once to tell why
