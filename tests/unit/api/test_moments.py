"""Times that people say: by the clock, in words, or as a version."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from instar import open as open_store
from instar.amounts import format_time
from instar.errors import UsageError
from instar.table.read.moments import parse_time

if TYPE_CHECKING:
    from pathlib import Path

    from instar.api.store import Store
    from tests.tables import World


def test_a_time_is_said_in_many_ways() -> None:
    """They are one time; without a zone it is in UTC, and what is finer than a millisecond is cut off."""
    time = 1_763_208_000_250
    moment = datetime(2025, 11, 15, 12, 0, 0, 250_999, tzinfo=UTC)
    said: list[int | str | datetime] = [
        time,
        str(time),
        moment,
        moment.replace(tzinfo=None),
        "2025-11-15T12:00:00.250",
    ]
    said += ["2025-11-15 13:00:00.25+01:00", format_time(time)]
    assert {parse_time(it) for it in said} == {time}
    assert parse_time("1969-12-31T23:59:59.999Z") == -1
    for wrong in ("noon", "9" * 5000, True):
        with pytest.raises(UsageError, match="is not a time"):
            parse_time(wrong)


def test_snapshots_are_taken_by_time_and_by_version(tmp_path: Path) -> None:
    """A time by the clock may be later than the last commit; one before the table is an error."""
    with open_store(tmp_path / "lake") as store:
        table = store.create_table("t", "n int")
        first = table.append(pa.table({"n": [1]}))
        table.evolve().add_column("m", "int").commit()
        second = table.append(pa.table({"n": [2]}))
        now = datetime.now(UTC)
        assert table.snapshot(now).count() == table.snapshot(now.isoformat()).count() == 2
        assert table.snapshot(format_time(first.ts)).count() == 1
        assert [table.snapshot(version=it).count() for it in range(4)] == [0, 1, 1, 2]
        assert table.snapshot(version=second.seqno).as_of == second.ts
        for early in ("2020-01-01", 1_577_836_800_000, datetime(2020, 1, 1, tzinfo=UTC)):
            with pytest.raises(UsageError, match="it was created at"):
                table.snapshot(early)
        for wrong in ({"as_of": now + timedelta(days=1)}, {"version": 9}, {"version": 1, "as_of": 1}):
            with pytest.raises(UsageError):
                table.snapshot(**wrong)


def test_a_time_before_the_table_is_an_error_whatever_became_of_its_log(store: Store, world: World) -> None:
    """After a vacuum has cut its beginning off, and where another table had the name before."""
    world.clock.now = 1_700_000_000_000
    store.create_table("t", "n int").append(pa.table({"n": [0]}))
    store.drop_table("t")
    world.clock.now += 10**7
    table = store.create_table("t", "n int")
    between = world.clock.now - 10**6
    for _ in range(3):
        table.append(pa.table({"n": [1]}))
        with pytest.raises(UsageError, match="it was created at"):
            table.snapshot(between)
        world.clock.now += 10**9
        table.vacuum(grace_ms=0)
    assert next(iter(table._log.entries())).seqno > 2


def test_times_of_ones_own_are_not_those_of_the_clock(tmp_path: Path) -> None:
    """A table that counts its times can be read at each of them, also before its first row."""
    with open_store(tmp_path / "lake") as store:
        table = store.create_table("t", "n int")
        table.apply(pa.table({"n": [1], "_ts": [5], "_diff": [1]}))
        assert [table.snapshot(time).count() for time in (4, 5)] == [0, 1]
