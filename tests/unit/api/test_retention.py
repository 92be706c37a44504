"""History is kept as long as a table's `retention` says, and a reader hears where it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from instar.api.store import Store
from instar.errors import UsageError

if TYPE_CHECKING:
    from instar.api.table import Table
    from tests.tables import World

DAY = 24 * 60 * 60 * 1000


@pytest.fixture
def table(store: Store, world: World) -> Table:
    """Return a table with a row a day for ten days, the last of them today."""
    made = store.create_table("t", "a bigint")
    for day in range(10):
        world.clock.now += DAY
        made.append(pa.table({"a": [day]}))
    return made


def test_a_week_is_kept_unless_told_otherwise(table: Table, world: World) -> None:
    """Times before it cannot be read, and the error says which is the earliest that can."""
    week_ago = world.clock.now - 7 * DAY
    assert table.retain(dry_run=True).since == week_ago
    assert table.since == 0
    report = table.retain()
    assert (report.before, report.since, report.kept) == (0, week_ago, None)
    assert table.since == week_ago
    assert table.snapshot(as_of=week_ago).count() == 3
    assert table.count() == 10
    with pytest.raises(UsageError, match=f"the earliest time that can be read is {week_ago}"):
        table.snapshot(as_of=week_ago - 1)
    assert table.retain().since == week_ago


def test_the_table_decides_before_the_store(table: Table, world: World) -> None:
    """Either may turn it off; a longer retention does not bring back what is gone."""
    other = Store("memory", world.services())
    object.__setattr__(other._services, "defaults", {"retention": "off"})
    assert other.table("t").retain().kept == "its retention is off"
    table.configure(retention="36h")
    assert other.table("t").retain().since == world.clock.now - 36 * 60 * 60 * 1000
    table.configure(retention="9d")
    assert table.retain().since == world.clock.now - 36 * 60 * 60 * 1000


def test_since_stays_before_upper(table: Table, world: World) -> None:
    """The rows of a table to which nobody has written for long can be read all the same."""
    world.clock.now += 100 * DAY
    assert table.retain().since == table.upper - 1
    assert table.count() == 10
    assert table.snapshot(as_of=table.since).count() == 10


def test_a_reader_from_before_goes_on(table: Table) -> None:
    """It holds the state that it began with."""
    with table.snapshot(as_of=table.upper - 9 * DAY) as snapshot:
        table.retain()
        table.compact(full=True)
        table.vacuum(grace_ms=0)
        assert snapshot.count() == 1


def test_since_never_passes_a_lease(table: Table, world: World) -> None:
    """What a reader holds can be read by others too, until the reader ends."""
    held = table.upper - 1
    with table.snapshot() as snapshot:
        for day in range(10, 20):
            world.clock.now += DAY
            table._services.leases.renew()
            table.append(pa.table({"a": [day]}))
        assert table.retain().since == held
        assert table.snapshot(as_of=held).count() == snapshot.count() == 10
    assert table.retain().since == world.clock.now - 7 * DAY


@pytest.mark.parametrize("times", [[1, 2, 3], [1_600_000_000_000], [2**61]])
def test_times_of_their_own_do_not_age_by_the_clock(store: Store, times: list[int]) -> None:
    """Whether they are counted from one, in the past or far ahead: the table keeps all of its history."""
    table = store.create_table("own", "a bigint")
    table.apply(pa.table({"a": times, "_ts": times}))
    report = table.retain()
    assert "not those of the clock" in (report.kept or "")
    assert table.since == report.since == 0


@pytest.mark.parametrize("value", ["7", "a week", 7, True, "-1d", ""])
def test_a_retention_is_a_duration(table: Table, value: str | float) -> None:
    """Or off."""
    with pytest.raises(UsageError, match="a duration such as"):
        table.configure(retention=value)


def test_a_table_without_rows_keeps_its_history(store: Store) -> None:
    """There is none."""
    assert store.create_table("empty", "a bigint").retain().since == 0
