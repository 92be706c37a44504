"""Maintenance of all tables: it stops where it is asked to, and a table that fails stops no others."""

from __future__ import annotations

from functools import partial
from threading import Event
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from instar.api.maintenance import Maintenance
from instar.table.housekeeping.compaction import compact_table, find_goals
from instar.table.housekeeping.rewrite import rewrite_parts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from instar.api.store import Store
    from instar.state import TableState
    from instar.table.housekeeping.plan import Goals
    from instar.table.housekeeping.rewrite import Output, Work


@pytest.fixture
def store(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Make two tables of twelve parts, of which three are rewritten at a time."""

    def goals(state: TableState) -> Goals:
        return find_goals(state)._replace(job_parts=3)

    monkeypatch.setattr("instar.api.maintenance.compact_table", partial(compact_table, goals=goals))
    for name in ("a", "b"):
        table = store.create_table(name, "n bigint")
        for n in range(12):
            table.append(pa.table({"n": [n]}))
    return store


@pytest.mark.parametrize("lanes", [1, 2])
def test_it_stops_between_two_jobs(store: Store, lanes: int) -> None:
    """What is being rewritten is committed, and the rest is left for another time."""
    stop = Event()

    def tell(_table: str, done: int, _total: int) -> None:
        if done:
            stop.set()

    maintenance = Maintenance(store._services, grace_ms=0, lanes=lanes)
    report = maintenance.run_once(stop=stop, tell=tell)
    assert (report.stopped, report.tables) == (True, 0)
    assert store.table("a").state.totals.parts in ({10} if lanes == 1 else {4, 6, 8, 10})
    assert store.table("b").state.totals.parts == 12
    report = maintenance.run_once(stop=Event())
    assert (report.stopped, report.tables, report.failures) == (False, 2, ())
    assert [sorted(store.table(name).to_pandas()["n"]) for name in "ab"] == [list(range(12))] * 2


def test_whatever_goes_wrong_with_a_table_stops_no_others(store: Store) -> None:
    """Even what nobody has thought of."""
    broken = store.table("a").state.table_id

    def rewrite(work: Work, /) -> Iterable[Output]:
        if work.storing.table_id == broken:
            raise ZeroDivisionError("of all things")
        return rewrite_parts(work)

    report = Maintenance(store._services, grace_ms=0, rewrite=rewrite).run_once()
    assert [failure.table for failure in report.failures] == ["a"]
    assert "of all things" in report.failures[0].error
    assert report.tables == 1
    assert store.table("b").state.totals.parts == 4
