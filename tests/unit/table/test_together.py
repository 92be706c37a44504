"""Readers, writers, compactions and vacuums at the same time: no reader ever misses an object.

The threads meet in random orders; what they may do to one another at chosen moments is in `test_vacuum.py`.
"""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from instar.errors import PartsGoneError
from instar.state import NewBatch
from instar.storage import DirectoryBlob
from instar.table import (
    Services,
    TableLog,
    begin_write,
    create_table,
    vacuum_store,
    vacuum_table,
    wall_clock,
)
from tests.tables import Clock, World, all_rows, append_parts, find_missing, make_parts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "events"
ROUNDS = 25 * (settings.default.max_examples // 100 if settings.default else 1)


class Present(Clock):
    """The time of day, a little ahead: what has just been written is already old enough to go."""

    def __call__(self) -> int:
        """Return the time."""
        return wall_clock() + 10


@pytest.fixture(params=["memory", "directory"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Return a place where rollups and chunks come often, and threads really run beside one another."""
    monkeypatch.undo()  # commits wait as they do in earnest
    for constant, value in (
        ("log.table_log.ROLLUP_EVERY", 3),
        ("log.rollup.MAX_CHUNK_PARTS", 8),
        ("write.append.INLINE_PARTS", 2),
    ):
        monkeypatch.setattr(f"instar.table.{constant}", value)
    world = World(DirectoryBlob(tmp_path)) if request.param == "directory" else World()
    world.clock = Present()
    world.patience = 120.0
    yield world
    world.close()


def compact_some(services: Services, log: TableLog, chance: random.Random) -> None:
    """Replace a few parts by one, unless somebody else has just replaced one of them."""
    with log.pinned() as state:
        rows = all_rows(services, state)
    places = sorted(rows)[: chance.randint(2, 6)]
    size = (sum(rows[place]["rows"] for place in places), sum(rows[place]["size"] for place in places))
    with suppress(PartsGoneError), begin_write(services, log) as writer:
        [part] = make_parts(state.table_id, writer.write_id, 1, rows=size[0])
        services.blob.put(part.key, b"x" * part.size)
        batch = NewBatch(0, state.upper, state.history.latest_id, (part,))
        writer.replace(state.seqno, places, size, batch)


def test_no_reader_misses_anything(place: World) -> None:
    """All that a pinned state refers to is there at every moment, and the number of rows only grows."""
    create_table(place.services(), NAME, "n int")
    append_parts(place.services(), TableLog(place.services(), NAME), 3, put=True)
    writing = threading.Event()
    writing.set()

    def write(seed: int) -> int:
        services = place.services()
        log = TableLog(services, NAME)
        chance = random.Random(seed)
        rows = 0
        for _ in range(ROUNDS):
            if chance.random() < 0.6:
                count = chance.choice([1, 1, 4])
                append_parts(services, log, count, put=True)
                rows += 10 * count
            else:
                compact_some(services, log, chance)
        return rows

    def read(_: int) -> int:
        services = place.services()
        log = TableLog(services, NAME)
        seen, reads = 0, 0
        while writing.is_set():
            with log.pinned() as state:
                rows = all_rows(services, state)
                assert find_missing(services, state) == []
            total = sum(row["rows"] for row in rows.values())
            assert total == state.totals.rows >= seen
            seen, reads = total, reads + 1
        return reads

    def vacuum(_: int) -> int:
        services = place.services()
        while writing.is_set():
            vacuum_table(services, NAME, grace_ms=0)
            vacuum_store(services, grace_ms=0)
        return 0

    with ThreadPoolExecutor(6) as pool:
        others = [pool.submit(call, 0) for call in (read, read, vacuum)]
        try:
            written = sum(pool.map(write, range(3)))
        finally:
            writing.clear()
        reads = [other.result() for other in others]
    assert all(reads[:2])
    services = place.services()
    with TableLog(services, NAME).pinned() as state:
        assert find_missing(services, state) == []
        assert state.totals.rows == written + 30
        assert sum(row["rows"] for row in all_rows(services, state).values()) == written + 30
