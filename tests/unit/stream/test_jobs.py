"""Jobs copy each row once to the table that it belongs to, wherever they are killed."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import instar
from instar.errors import ConflictError, UsageError
from instar.storage import MemoryConsensus
from instar.stream import jobs, reading
from instar.table import move_since
from tests.streams import DeadError, Mortal, day, events, make_stream, new_world, open_again, sorted_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.api.stream import Stream
    from instar.stream import StreamCommit
    from instar.stream.reading import HeldTables

KINDS = {"regular": "1d", "repartitioned": "1d", "eod": "1d", "archive": "1y"}
DROPPING = {"regular": "1d", "repartitioned": "1d", "archive": "1y"}
SCHEMA = "user string not null, at timestamp, amount int, billed timestamp"


def _bills(days: list[int], after: int, each: int = 2) -> pa.Table:
    rows = events(days, each=each, amount=1)
    billed = [time + timedelta(days=after) for time in rows["at"].to_pylist()]
    return rows.append_column("billed", pa.array(billed, pa.timestamp("us", "UTC")))


def _same(stream: Stream, kind: str) -> bool:
    return sorted_rows(stream.snapshot(kind).to_arrow()) == sorted_rows(stream.snapshot().to_arrow())


def test_repartitioning_takes_what_is_new_and_late_rows_reach_their_day() -> None:
    """Each run copies what came since the last one; the schema is refreshed at every append."""
    stream = make_stream(new_world(), KINDS, SCHEMA)
    stream.write(_bills([5, 4], after=1), version="v0.0.1")
    assert stream.repartition(by="billed").rows == 4
    starts = [table.start for table in stream.tables("repartitioned")]
    assert starts == [day(4).date(), day(3).date()]
    assert stream.repartition(by="billed").rows == 0
    stream.evolve(SCHEMA.replace("amount int", "amount bigint"), version="v0.0.2")
    late = _bills([9, 5], after=1, each=1)
    stream.write(late, version="v0.0.1")
    stream.write(late.set_column(3, "billed", pa.nulls(2, pa.timestamp("us", "UTC"))), version="v0.0.2")
    assert stream.repartition(by="billed").rows == 4
    assert _same(stream, "repartitioned")
    by_day = {table.start: table for table in stream.tables("repartitioned")}
    assert by_day[None].rows == 2
    assert by_day[day(4).date()].rows == 3
    assert by_day[day(4).date()].version == "v0.0.2"
    assert by_day[day(3).date()].version == "v0.0.1"
    with pytest.raises(UsageError, match="repartitioned by `billed` already"):
        stream.repartition(by="at")


def test_a_table_that_was_compacted_is_copied_further() -> None:
    """Rows that were merged into one part with others keep their times, so what is new is told apart."""
    world = new_world()
    stream = make_stream(world, KINDS, SCHEMA)
    stream.write(_bills([5], after=1), version="v0.0.1")
    assert stream.repartition(by="billed").rows == 2
    world.clock.now += 1000
    stream.write(_bills([5], after=2, each=3), version="v0.0.1")
    store = instar.Store("memory", world.services())
    name = stream.tables("regular")[0].name
    store.table(name).compact(full=True)
    assert store.table(name).state.totals.parts == 1
    assert stream.repartition(by="billed").rows == 3
    assert _same(stream, "repartitioned")


def test_days_go_to_the_archive_and_may_then_be_dropped() -> None:
    """The archive has every row once; a day is dropped unless it was written to since."""
    stream = make_stream(new_world(), {"regular": "1d", "archive": "1y"}, SCHEMA)
    stream.write(_bills([800, 799, 1], after=0), version="v0.0.1")
    before = sorted_rows(stream.snapshot(end=day(700)).to_arrow())
    assert stream.archive(before=day(700)).rows == 4
    names = tuple(table.name for table in stream.tables("regular"))
    assert len(names) == 3
    assert sorted_rows(stream.snapshot("archive").to_arrow()) == before
    done = stream.archive(before=day(700), drop=True)
    assert (done.rows, done.dropped, done.kept) == (0, names[:2], ())
    assert [table.start for table in stream.tables("regular")] == [day(1).date()]
    stream.write(_bills([800], after=0, each=1), version="v0.0.1")
    assert stream.archive(before=day(700), drop=True).rows == 1
    assert stream.snapshot("archive").to_arrow().num_rows == 5
    assert len(stream.tables("regular")) == 1


@pytest.mark.parametrize("begun", [True, False])
def test_a_day_is_not_dropped_before_other_jobs_have_its_rows(begun: bool) -> None:
    """What was archived stays until it is repartitioned and closed too, if those jobs ran before or not."""
    stream = make_stream(new_world(), KINDS, SCHEMA)
    stream.write(_bills([1], after=1), version="v0.0.1")
    (regular,) = stream.tables("regular")
    if begun:
        stream.repartition(by="billed")
        stream.close_day(None, day(1))
    stream.write(_bills([1], after=2), version="v0.0.1")
    assert stream.archive(before=day(0), drop=True).kept == (regular.name,)
    stream.repartition(by="billed")
    assert stream.archive(before=day(0), drop=True).kept == (regular.name,)
    assert [table.rows for table in stream.tables("regular")] == [4]
    stream.close_day(None, day(1))
    assert stream.archive(before=day(0), drop=True).dropped == (regular.name,)
    assert stream.tables("regular") == []
    stream.write(_bills([1], after=1), version="v0.0.1")  # so late that its table is another one
    stream.repartition(by="billed")
    stream.archive(before=day(0), drop=True)
    assert [table.rows for table in stream.tables("regular")] == [2]
    stream.close_day(None, day(1))
    for kind in ("archive", "repartitioned", "eod"):
        assert stream.snapshot(kind).to_arrow().num_rows == 6


def test_a_day_is_closed_with_its_rows_and_again_with_late_ones() -> None:
    """An end-of-day table has the rows of its day, once."""
    stream = make_stream(new_world(), KINDS, SCHEMA)
    stream.write(_bills([2, 1], after=0), version="v0.0.1")
    assert stream.close_day(None, day(1)).rows == 2
    stream.write(_bills([1], after=0, each=1), version="v0.0.1")
    assert stream.close_day(None, day(1).date().isoformat()).rows == 1
    (table,) = stream.tables("eod")
    assert (table.start, table.rows) == (day(1).date(), 3)
    with pytest.raises(UsageError, match="beginning"):
        stream.close_day(None, day(1) + timedelta(hours=3))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of leases, by the dead
@pytest.mark.parametrize("after", [False, True])
def test_a_job_may_die_at_every_request(after: bool) -> None:
    """Started again, it copies what is missing: no row is lost and none is doubled."""
    for at in count(1):
        world = new_world(consensus=MemoryConsensus())
        stream = make_stream(world, DROPPING, SCHEMA)
        stream.write(_bills([801, 800], after=0, each=1), version="v0.0.1")
        expected = sorted_rows(stream.snapshot().to_arrow())
        mortal = Mortal(at, after=after)
        with suppress(DeadError):
            doomed = open_again(world, mortal.services(world))
            doomed.repartition(by="billed")
            doomed.archive(before=day(700), drop=True)
        if not mortal.dead:
            assert at > 10
            return
        again = open_again(world)
        again.repartition(by="billed")
        again.archive(before=day(700), drop=True)
        for kind in ("repartitioned", "archive"):
            assert sorted_rows(again.snapshot(kind).to_arrow()) == expected
        assert again.snapshot().to_arrow().num_rows == 0


@pytest.mark.parametrize("wider", [SCHEMA.replace("int", "bigint"), SCHEMA + ", country string"])
def test_a_version_may_be_raised_while_a_job_runs(wider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read under the schema before is stored as its tables have it now."""
    world = new_world()
    stream, other = make_stream(world, KINDS, SCHEMA), open_again(world)
    stream.write(_bills([1, 0], after=1), version="v0.0.1")

    def hold_then_evolve(*args: Any) -> HeldTables:  # noqa: ANN401 -- whatever it takes
        held = reading.hold_tables(*args)
        other.evolve(wider, version="v0.0.2")
        return held

    monkeypatch.setattr(jobs, "hold_tables", hold_then_evolve)
    assert stream.close_day(None, day(0)).rows == 2
    assert stream.repartition(by="billed").rows == 4
    monkeypatch.undo()
    assert stream.close_day(None, day(1)).rows == 2
    assert _same(stream, "eod")
    assert _same(stream, "repartitioned")


def test_a_table_without_anything_new_does_not_stop_a_job() -> None:
    """Its times may be merged and it may be compacted: there is nothing in it to be told apart."""
    world = new_world()
    stream = make_stream(world, KINDS, SCHEMA)
    stream.write(_bills([1, 0], after=1), version="v0.0.1")
    stream.repartition(by="billed")
    table = instar.Store("memory", world.services()).table(stream.tables("regular")[0].name)
    table._log.checkpoint()
    move_since(table._log, table.upper)
    stream.write(_bills([0], after=2), version="v0.0.1")
    assert stream.repartition(by="billed").rows == 2
    assert _same(stream, "repartitioned")


def test_retention_waits_for_jobs_that_lag_behind() -> None:
    """Weeks later, rows that a job has not copied yet are still told from those that it has."""
    world = new_world()
    stream = make_stream(world, KINDS, SCHEMA)
    store = instar.Store("memory", world.services())
    stream.write(_bills([1], after=1), version="v0.0.1")
    stream.repartition(by="billed")
    for _ in range(2):
        world.clock.now += 1000
        stream.write(_bills([1], after=2, each=3), version="v0.0.1")
        world.clock.now += 20 * 24 * 60 * 60_000
        assert store.maintenance().run_once().failures == ()
        table = store.table(stream.tables("regular")[0].name)
        table.compact(full=True)
    assert stream.repartition(by="billed").rows == 6
    assert _same(stream, "repartitioned")
    stream.write(_bills([1], after=1), version="v0.0.1")
    stream.repartition(by="billed")
    world.clock.now += 20 * 24 * 60 * 60_000
    assert table.retain().since == table.upper - 1


@pytest.mark.parametrize("job", ["repartition", "archive", "close"])
def test_of_two_runs_of_a_job_at_once_one_copies(job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slower one finds that the other has moved on, and writes nothing; run again, nothing is left."""
    world = new_world()
    stream, other = make_stream(world, KINDS, SCHEMA), open_again(world)
    stream.write(_bills([1], after=1), version="v0.0.1")
    runs: dict[str, Callable[[Stream], StreamCommit]] = {
        "repartition": lambda each: each.repartition(by="billed"),
        "archive": lambda each: each.archive(before=day(0)),
        "close": lambda each: each.close_day(None, day(1)),
    }
    rival = [other]

    def hold_then_be_overtaken(*args: Any) -> HeldTables:  # noqa: ANN401 -- whatever it takes
        held = reading.hold_tables(*args)
        if rival:
            assert runs[job](rival.pop()).rows == 2
        return held

    monkeypatch.setattr(jobs, "hold_tables", hold_then_be_overtaken)
    with pytest.raises(ConflictError, match=r"moved .* meanwhile"):
        runs[job](stream)
    assert runs[job](stream).rows == 0
    kind = {"repartition": "repartitioned", "archive": "archive", "close": "eod"}[job]
    assert _same(stream, kind)
