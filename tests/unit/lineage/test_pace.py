"""The backfill takes turns with others: short batches, and pauses while somebody else works."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from instar.lineage import Database
from instar.lineage.old_layout.pace import BATCH, Pace
from testbed.lineage import new_postgres_url

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from testbed.servers import PostgresServer


class _Clock:
    """Time that passes only when somebody says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now


def _paced(database: Database, clock: _Clock, most: int = BATCH) -> Pace:
    return Pace(database, most, clock=clock, sleep=clock.slept.append)


def _run(pace: Pace, clock: _Clock, seconds_for_each: float) -> int:
    with pace.batch() as size:
        clock.now += size * seconds_for_each
    return size


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Database]:
    """Open a database that cannot tell who else is there."""
    with Database(f"sqlite:///{tmp_path}/lineage.db") as database:
        yield database


@pytest.fixture
def served(postgres: PostgresServer) -> Iterator[Database]:
    """Open a database of PostgreSQL that nobody else uses."""
    with Database(new_postgres_url(postgres)) as database:
        yield database


def test_batches_are_as_large_as_their_time_allows(embedded: Database) -> None:
    """Versions that are quick to convert go many at once, and slow ones few, but never none."""
    clock = _Clock()
    pace = _paced(embedded, clock)
    assert max(_run(pace, clock, 0.0001) for _ in range(10)) == BATCH
    slow = [_run(pace, clock, 0.02) for _ in range(10)]
    assert slow[-1] == 2
    assert [_run(pace, clock, 9.0) for _ in range(3)][-1] == 1
    few = _paced(embedded, clock, most=7)
    assert {_run(few, clock, 0.0001) for _ in range(5)} == {7}


def test_a_pause_is_in_proportion_to_its_batch(embedded: Database) -> None:
    """Others have most of the time, and nobody sleeps for ever."""
    clock = _Clock()
    pace = _paced(embedded, clock)
    size = _run(pace, clock, 0.001)
    assert clock.slept == [pytest.approx(3 * size * 0.001)]
    _run(pace, clock, 100.0)
    assert clock.slept[-1] == 2.0


def test_nobody_waits_for_nobody(served: Database) -> None:
    """A backfill that is alone with PostgreSQL takes no breaks, and takes them as soon as it is not."""
    clock = _Clock()
    pace = _paced(served, clock)
    _run(pace, clock, 0.001)
    assert clock.slept == []
    with Database(str(served.url)) as other:
        with other.engine.connect() as connection:
            connection.execute(text("SELECT 1"))  # and its transaction goes on
            _run(pace, clock, 0.001)
            assert len(clock.slept) == 1
        with other.engine.connect() as connection, connection.begin():
            connection.execute(text("SELECT 1"))
        _run(pace, clock, 0.001)
        assert len(clock.slept) == 2, "it has worked just now"
        _wait_until_alone(pace, clock)


def _wait_until_alone(pace: Pace, clock: _Clock) -> None:
    """Go on until the other connection only waits: that is what an idle service has, and no company."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        before = len(clock.slept)
        _run(pace, clock, 0.001)
        if len(clock.slept) == before:
            return
        time.sleep(0.05)
    pytest.fail("an idle connection counts as company for ever")
