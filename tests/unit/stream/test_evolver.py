"""The evolver: each thing that is required of it, on a clock that moves only when it is told to."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import count
from threading import Event
from typing import TYPE_CHECKING

import msgspec
import pytest
from prometheus_client import REGISTRY

import instar
from instar.api.stream import Stream
from instar.errors import LeadershipLostError, StorageError, UsageError
from instar.storage import BlobConsensus, MemoryConsensus
from instar.stream import Kind, StreamHandle, as_version
from instar.stream.evolution import (
    PERIODS_MS,
    EvolverState,
    Queued,
    Rest,
    StampTables,
    Walk,
    Walked,
    next_action,
)
from instar.stream.evolver import Standby, StreamEvolver
from instar.stream.handle import RowsOf
from instar.stream.judging import QueryJudge, TableJudgement
from instar.stream.period import DAY
from instar.stream.routing import TablePlace
from instar.stream.stamp import create_stamped, load_stamp, stamp_table
from instar.table import TableLog, drop_table
from tests.faults import Faults, UnreliableBlob, UnreliableConsensus
from tests.streams import FIRST, NAME, DeadError, Mortal, day, events, make_stream, new_world

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.schema import Schema
    from instar.storage import Consensus
    from instar.table import Services
    from tests.tables import World

WIDER = "user string not null, at timestamp, amount bigint"
WIDEST = "user string not null, at timestamp, amount bigint, note string"
HOUR = 60 * 60 * 1000
KINDS = {"regular": "1d", "hourly": "6h", "archive": "1y"}


class Strict:
    """A judge to whom every change is noticed."""

    rules = "strict"

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def judge(self, old: Schema, new: Schema) -> TableJudgement:
        """Notice whatever differs."""
        self.asked.append((str(old), str(new)))
        return TableJudgement(old == new)


class Lenient(Strict):
    """A judge to whom nothing is noticed."""

    rules = "lenient"

    def judge(self, old: Schema, new: Schema) -> TableJudgement:
        """Notice nothing."""
        return TableJudgement(compatible=super().judge(old, new) is not None)


def _evolver(
    world: World, holder: str = "a", services: Services | None = None, **given: object
) -> StreamEvolver:
    handle = StreamHandle(services or world.services(), NAME)
    given = {"share": 1.0, **given}
    return StreamEvolver(handle, given.pop("judge", Strict()), holder=holder, **given)  # type: ignore[arg-type]


def _stream(world: World, days: int = 4, kinds: dict[str, str] | None = None) -> Stream:
    stream = make_stream(world, KINDS if kinds is None else kinds)
    stream.write(events(range(days), each=1, amount=1), version="v0.0.1")
    return stream


def _versions(stream: Stream, kind: str = "regular") -> set[str]:
    return {str(table.version) for table in stream.tables(kind)}


def test_every_table_but_hourly_ones_converges_on_the_version() -> None:
    """A stamp is an evolution of the table: its history has it, and readers of the old schema are fenced."""
    world = new_world()
    stream = _stream(world)
    stream.evolve(WIDER, version="v0.0.2")
    report, rest = _evolver(world).run()
    assert (report.passes, report.stamped, report.failed, report.waiting) == (1, 4, 0, 0)
    assert isinstance(rest, Rest)
    assert _versions(stream) == {"v0.0.2"}
    assert _versions(stream, "hourly") == {"v0.0.1"}
    state = TableLog(world.services(), stream.tables("regular")[0].name).load()
    assert [str(schema) for schema in state.history.schemas] == [
        str(stream.versions[v]) for v in stream.versions
    ]
    assert stream.tables("regular")[0].versions == ("v0.0.1",)


def test_tables_have_their_turns_kind_by_kind_and_the_newest_first() -> None:
    """Repartitioned tables come first, then regular, end-of-day and archive ones; hourly ones never."""
    world = new_world()
    stream = make_stream(world)
    handle = stream._handle
    for kind, period in handle.known().layout.periods.items():
        for number in (2, 0, 1):
            start = period.start_of(int(day(400 * number).timestamp()) * 1_000_000)
            handle.target(TablePlace(kind, start), RowsOf((as_version("v0.0.1"),), 0))
    stream.evolve(WIDER, version="v0.0.2")
    evolver = _evolver(world)
    evolver.step()
    queue = evolver.load().queue
    assert [table.kind for table in queue] == [
        kind for kind in ("repartitioned", "regular", "eod", "archive") for _ in range(3)
    ]
    for at in range(0, 12, 3):
        names = [table.name for table in queue[at : at + 3]]
        assert names == sorted(names, reverse=True)


def test_the_pause_grows_while_nothing_is_new_and_a_version_ends_it() -> None:
    """Passes come at once, after 1, 5 and 24 hours, and every 24 after that; a new version is due at once."""
    world = new_world()
    stream = _stream(world)
    evolver = _evolver(world)
    stream.evolve(WIDER, version="v0.0.2")
    passes = []
    for _ in range(4 * 24 + 1):
        report, _ = evolver.run()
        passes += [(world.clock.now // HOUR)] * report.passes
        world.clock.now += HOUR
    first = passes[0]
    assert [at - first for at in passes] == [0, 1, 6, 30, 54, 78]
    stream.evolve(WIDEST, version="v0.0.3")
    assert evolver.run()[0].stamped == 4
    assert evolver.load().period == 1
    assert evolver.load().due_at() == world.clock.now + PERIODS_MS[1]


def test_a_pass_that_has_nothing_to_do_costs_the_same_for_any_number_of_tables() -> None:
    """Neither a pass that is not due nor one over converged tables reads any table."""
    costs = set()
    for days in (3, 30):
        world = new_world(consensus=MemoryConsensus())
        stream = _stream(world, days, {"regular": "1d"})
        stream.evolve(WIDER, version="v0.0.2")
        _evolver(world).run()
        faults = Faults()
        services = world.services(consensus=partial(UnreliableConsensus, faults=faults))
        evolver = _evolver(world, services=services)
        evolver.run()
        idle = len(faults.calls)
        world.clock.now += HOUR
        assert evolver.run()[0].passes == 1
        assert all(key.startswith("@") for _, key in faults.calls)
        costs.add((idle, len(faults.calls)))
    assert len(costs) == 1


def _counted(world: World) -> tuple[Services, Callable[[], int]]:
    """Open a world, and return what tells how many requests have been made since it was asked last."""
    faults = Faults()
    blob = UnreliableBlob(world.blob, faults)

    def requests() -> int:
        found = sum(len(keys.split()) if name == "find_many" else 1 for name, keys in faults.calls)
        faults.calls.clear()
        return found

    return world.services(lambda _: blob, lambda _: BlobConsensus(blob)), requests


def test_a_table_costs_a_handful_of_requests() -> None:
    """Stamping a table of two commits takes 7 requests, planning a range with it 5, and 1 if it is known."""
    costs = []
    for days in (10, 30):
        world = new_world()
        stream = _stream(world, days, {"regular": "1d"})
        services, requests = _counted(world)
        reader = Stream(StreamHandle(services, NAME))
        cost = []
        for _ in range(2):
            reader.snapshot().close()
            cost.append(requests())
        stream.evolve(WIDER, version="v0.0.2")
        services, requests = _counted(world)
        assert _evolver(world, services=services).run()[0].stamped == days
        costs.append([*cost, requests()])
    few, many = costs
    assert [(after - before) / 20 for before, after in zip(few, many, strict=True)] == [5, 1, 7]


def test_a_pass_that_is_stopped_is_finished_by_the_next_evolver() -> None:
    """The step at hand is the last, and the lead is free at once."""
    world = new_world()
    stream = _stream(world, 4, {"regular": "1d"})
    stream.evolve(WIDER, version="v0.0.2")
    first, second = _evolver(world, holder="one"), _evolver(world, holder="two")
    stop = Event()
    stop.set()
    begun, rest = first.run(stop=stop)
    assert isinstance(rest, Rest)
    assert begun.passes == 0
    done, _ = second.run()
    assert (begun.stamped + done.stamped, done.passes) == (4, 1)


class Watch(Event):
    """Notes how long somebody waits for it, and does not let anybody wait; at the end it is set."""

    def __init__(self, ends_after: int) -> None:
        super().__init__()
        self.waits: list[float] = []
        self.ends_after = ends_after

    def wait(self, timeout: float | None = None) -> bool:
        """Return at once."""
        self.waits.append(timeout or 0)
        if len(self.waits) == self.ends_after:
            self.set()
        return self.is_set()


def test_the_evolver_rests_between_batches() -> None:
    """Writers have the disk for the rest of the time, up to a second; with all of it, it never rests."""
    world = new_world()
    stream = _stream(world, 10, {"regular": "1d"})
    for number, (share, rests) in enumerate(((1.0, 0), (0.5, 4), (1e-9, 4)), start=2):
        columns = "".join(f", c{each} string" for each in range(number))
        stream.evolve(f"{WIDER}{columns}", version=f"v0.0.{number}")
        watch = Watch(99)
        done, _ = _evolver(world, batch=2, share=share).run(stop=watch)
        assert (done.stamped, len(watch.waits)) == (10, rests)
    assert watch.waits == [1.0] * 4
    stream.evolve(f"{WIDER}{columns}, last string", version="v0.0.9")
    stopped, _ = _evolver(world, batch=2, share=0.5).run(stop=Watch(2))
    assert (stopped.waiting, stopped.passes) == (4, 0)
    for share in (0, -1, 1.01):
        with pytest.raises(UsageError, match="of the time"):
            _evolver(world, share=share)


def test_a_version_that_is_raised_in_the_middle_retargets_the_pass() -> None:
    """The pass does not end at the old target: what was done is looked at again."""
    world = new_world()
    stream = _stream(world, 6)
    stream.evolve(WIDER, version="v0.0.2")
    evolver = _evolver(world, batch=2)
    assert isinstance(evolver.step()[1], Walk)
    assert isinstance(evolver.step()[1], StampTables)
    stream.evolve(WIDEST, version="v0.0.3")
    assert evolver.plan()[2] == Walk(retargeted=True)
    report, _ = evolver.run()
    assert (report.passes, report.stamped) == (1, 6)
    assert _versions(stream) == {"v0.0.3"}
    assert evolver.load().version == "v0.0.3"


def test_nothing_is_touched_if_no_query_would_notice() -> None:
    """A verdict is asked for once per pair of schemas; a skip moves what was checked, and not the stamps."""
    world = new_world()
    stream = _stream(world)
    stream.evolve(WIDER, version="v0.0.2")
    judge = Lenient()
    report, _ = _evolver(world, judge=judge).run()
    assert (report.passes, report.stamped, report.skipped) == (1, 0, 4)
    assert _versions(stream) == {"v0.0.1"}
    state = _evolver(world).load()
    assert (state.checked, state.version) == ("v0.0.2", "v0.0.2")
    asked = len(judge.asked)
    for _ in range(3):
        world.clock.now += 24 * HOUR
        _evolver(world, judge=judge).run()
    assert len(judge.asked) == asked


def test_verdicts_are_not_transitive() -> None:
    """Tables are judged by the schema that they have: a skipped one is compared with the new target."""
    world = new_world()
    stream = _stream(world)

    class NextOnly(Strict):
        """Notices nothing between neighbours, and everything else."""

        rules = "next"

        def judge(self, old: Schema, new: Schema) -> TableJudgement:
            """Compare where the two are in the history."""
            order = [str(version) for version in stream.versions.values()]
            return TableJudgement(abs(order.index(str(new)) - order.index(str(old))) <= 1)

    stream.evolve(WIDER, version="v0.0.2")
    assert _evolver(world, judge=NextOnly()).run()[0].skipped == 4
    stream.write(events([9], each=1, amount=2**40), version="v0.0.2")
    stream.evolve(WIDEST, version="v0.0.3")
    report, _ = _evolver(world, judge=NextOnly()).run()
    assert (report.stamped, report.skipped) == (4, 1)
    assert _versions(stream) == {"v0.0.2", "v0.0.3"}


def test_tables_that_were_left_as_they_are_are_judged_anew_by_other_rules() -> None:
    """Stricter rules are due at once; where nothing was left, other rules have nothing to do."""
    world = new_world()
    stream = _stream(world)
    stream.evolve(WIDEST, version="v0.0.2")
    report, _ = _evolver(world, judge=Lenient()).run()
    assert (report.stamped, report.skipped) == (0, 4)
    world.clock.now += 24 * HOUR
    stream.write(events([9], each=1, amount=1), version="v0.0.1")
    assert _evolver(world, judge=Lenient()).run()[0].passes == 1
    report, _ = _evolver(world, judge=Strict()).run()
    assert (report.passes, report.stamped) == (1, 4)
    assert _versions(stream) == {"v0.0.2"}
    for judge in (Lenient(), Strict()):
        assert not any(_evolver(world, judge=judge).run()[0])


def test_always_means_every_table_whose_version_is_behind() -> None:
    """A version that changes no column is stamped too, also if a pass has left all tables alone before."""
    world = new_world()
    stream = _stream(world)
    store = instar.Store("memory", world.services())
    stream.evolve(FIRST, version="v0.0.2")
    assert store.evolver().run_once().skipped == 4
    assert store.evolver(always=True).run_once().stamped == 4
    assert _versions(stream) == {"v0.0.2"}
    assert not any(store.evolver().run_once())
    assert not any(store.evolver(always=True).run_once())


def test_the_compatibility_check_is_what_the_evolver_asks() -> None:
    """A column that is added or becomes wider is noticed by no query over a range of the stream."""
    world = new_world()
    stream = _stream(world)
    stream.evolve(WIDEST, version="v0.0.2")
    assert _evolver(world, judge=QueryJudge()).run()[0].skipped == 4
    fewer = stream.schema.select(["user", "at", "amount"])
    assert QueryJudge().judge(stream.schema, fewer).compatible


@pytest.mark.parametrize(("after", "spill"), [(False, False), (True, True)])
def test_an_evolver_may_die_at_every_request(
    after: bool, spill: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes after it, once the lead has lapsed, converges every table; nothing is done twice."""
    if spill:
        monkeypatch.setattr("instar.stream.queue.MOST_PATHS", 1)
        monkeypatch.setattr("instar.stream.queue._SPILL_PATHS", 1)
    for at in count(1):
        world = new_world(consensus=MemoryConsensus())
        stream = _stream(world, 3, {"regular": "1d"})
        stream.evolve(WIDER, version="v0.0.2")
        mortal = Mortal(at, after=after)
        with suppress(DeadError):
            _evolver(world, "first", mortal.services(world), batch=2).run()
        if not mortal.dead:
            assert at > 5
            return
        second = _evolver(world, "second", batch=2)
        _, outcome = second.run()
        if isinstance(outcome, Standby):
            assert outcome.holder == "first"
            world.clock.now = outcome.until
            second.run()
        _check_converged(world, stream)


def _check_converged(world: World, stream: Stream) -> None:
    """Check that every table was stamped once, and that the evolver says so."""
    assert _versions(stream) == {"v0.0.2"}
    for table in stream.tables():
        log = TableLog(world.services(), table.name).load()
        assert log.history.latest_id == 1, "a table is stamped once"
    state = _evolver(world).load()
    assert (state.running, state.waiting, state.passes) == (False, 0, 1)


def _lead_lost_at(request: int) -> int:
    """Let a leader fall asleep before a request, and another do it all; return how many requests it made."""
    world = new_world(consensus=MemoryConsensus())
    stream = _stream(world, 3, {"regular": "1d"})
    stream.evolve(WIDER, version="v0.0.2")
    made = 0

    def fall_asleep(operation: str, _: str) -> None:
        nonlocal made
        if operation in {"append", "put", "delete"}:
            made += 1
            if made == request:
                world.clock.now += 61_000
                _evolver(world, "second", batch=2).run()

    faults = Faults(before=fall_asleep)
    services = world.services(
        lambda blob: UnreliableBlob(blob, faults), lambda logs: UnreliableConsensus(logs, faults)
    )
    _evolver(world, "first", services, batch=2).run()
    _check_converged(world, stream)
    return made


@pytest.mark.parametrize("spill", [False, True])
def test_the_lead_may_change_at_every_request(spill: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that falls asleep before a request, and wakes when another has done it all, does no harm."""
    if spill:
        monkeypatch.setattr("instar.stream.queue.MOST_PATHS", 1)
        monkeypatch.setattr("instar.stream.queue._SPILL_PATHS", 1)
    for at in count(1):
        if _lead_lost_at(at) < at:
            assert at > 5
            return


def test_the_lead_may_change_at_every_step() -> None:
    """Whoever takes over goes on where the other stood; the other finds out, and changes nothing more."""
    for turn in range(1, 8):
        world = new_world(consensus=MemoryConsensus())
        stream = _stream(world, 5, {"regular": "1d"})
        stream.evolve(WIDER, version="v0.0.2")
        first, second = (_evolver(world, holder, batch=2) for holder in ("first", "second"))
        for _ in range(turn):
            first.step()
        assert isinstance(second.run()[1], Standby | Rest)
        world.clock.now += 61_000
        done = first.load().stamped
        second.run()
        assert _versions(stream) == {"v0.0.2"}
        assert second.load().stamped >= done
        before = second.load()
        first.run()
        assert first.load() == before


def test_who_has_nothing_to_do_gives_the_lead_away() -> None:
    """Another evolver need not wait until the lead lapses; who dies in the middle keeps it until then."""
    world = new_world()
    stream = _stream(world, 3, {"regular": "1d"})
    for number, holder in enumerate(("first", "second", "first"), 2):
        columns = "".join(f", c{each} string" for each in range(number))
        stream.evolve(WIDER + columns, version=f"v0.0.{number}")
        assert _evolver(world, holder).run()[0].stamped == 3
    stream.evolve(WIDER + ", d string", version="v0.0.9")
    _evolver(world, "second").step()
    assert _evolver(world, "first").run()[1] == Standby("second", world.clock.now + 60_000)


def test_a_clock_that_was_ahead_stops_nobody() -> None:
    """A lead, a pause and a retry that a clock a year ahead has left are not waited for."""
    world = new_world()
    stream = _stream(world)
    year = 365 * 24 * 60 * 60_000
    stream.evolve(WIDER, version="v0.0.2")
    world.clock.now += year
    _evolver(world, "first").step()  # leads for a year, as others see it, and dies
    world.clock.now -= year
    report, rest = _evolver(world, "second").run()
    assert (report.passes, report.stamped) == (1, 4)
    assert isinstance(rest, Rest)
    world.clock.now += year
    assert _evolver(world).run()[0].passes == 1
    world.clock.now -= year
    assert _evolver(world).run()[0].passes == 1
    assert _evolver(world).run()[0].passes == 0


def test_a_deposed_leader_cannot_stamp() -> None:
    """A table that a later leader has stamped refuses an earlier one, and no stamp ever goes back."""
    world = new_world()
    stream = _stream(world)
    old = stream._handle.load()
    stream.evolve(WIDER, version="v0.0.2")
    _evolver(world).run()
    state = TableLog(world.services(), stream.tables("regular")[0].name).load()
    assert load_stamp(state, stream._handle.known()).fence == 1
    assert stamp_table(state, old) == ()
    with pytest.raises(LeadershipLostError):
        stamp_table(state, stream._handle.load(), fence=0)
    first, second = _evolver(world, "first"), _evolver(world, "second")
    stream.evolve(WIDEST, version="v0.0.3")
    first.step()
    world.clock.now += 61_000
    second.step()
    with pytest.raises(LeadershipLostError, match="second"):
        first._record(Walked("v0.0.3", 2, 0, (), (), 0, 0, False, {}))


def test_one_table_that_fails_does_not_stop_the_others() -> None:
    """It is tried again later and later, five times; then it is a dead letter, for the next pass."""
    world = new_world()
    stream = _stream(world)
    stream.evolve(WIDER, version="v0.0.2")
    broken = stream.tables("regular")[1].name

    def fail(operation: str, key: str) -> None:
        if sick and operation == "append" and key == broken:
            raise StorageError("append", "injected")

    sick = True
    faults = Faults(before=fail)
    services = world.services(consensus=lambda logs: UnreliableConsensus(logs, faults))
    evolver = _evolver(world, services=services)
    report, outcome = evolver.run()
    assert (report.stamped, report.failed, report.waiting) == (3, 1, 1)
    pauses = []
    while not evolver.load().dead:
        assert isinstance(outcome, Rest)
        pauses.append(outcome.until - world.clock.now)
        world.clock.now = outcome.until
        outcome = evolver.run()[1]
    assert pauses == [60_000, 120_000, 240_000, 480_000]
    (letter,) = evolver.load().dead
    assert (letter.table.name, letter.attempts) == (broken, 5)
    assert "injected" in letter.error
    sick = False
    world.clock.now = evolver.load().due_at()
    assert evolver.run()[0].stamped == 1
    assert _versions(stream) == {"v0.0.2"}
    assert not evolver.load().dead


def test_a_stream_that_cannot_be_read_does_not_stop_the_others() -> None:
    """The others have their pass, and then the error is raised; the counters tell of both."""
    world = new_world()
    stream = _stream(world)
    stream.evolve(WIDER, version="v0.0.2")

    def refuse(operation: str, key: str) -> None:
        if key.endswith("@streams/a"):
            raise StorageError(operation, "not today")

    store = instar.Store("memory", world.services(consensus=_unreliable(Faults(before=refuse))))
    instar.Store("memory", world.services()).create_stream("a", "at timestamp", time="at")
    before = _stamped()
    with pytest.raises(StorageError, match="not today"):
        store.evolver(always=True).run_once()
    assert _versions(stream) == {"v0.0.2"}
    assert _stamped() == before + 4


def _unreliable(faults: Faults) -> Callable[[Consensus], Consensus]:
    return lambda logs: UnreliableConsensus(logs, faults)


def _stamped() -> float:
    return REGISTRY.get_sample_value("instar_evolver_stamped_total", {"stream": NAME}) or 0


def test_tables_may_come_go_and_be_written_meanwhile() -> None:
    """A table that vanishes is forgotten; one that comes late, with an old version, has a turn later."""
    world = new_world()
    stream = _stream(world)
    old = stream._handle.load()
    oldest = min(table.start for table in old.tables.values() if table.start)
    late = TablePlace(Kind.REGULAR, oldest - oldest % DAY - DAY)
    stream._handle.announce([late])
    record = stream._handle.load().tables[old.layout.table_name(*late)]
    stream.evolve(WIDER, version="v0.0.2")
    evolver = _evolver(world, batch=1)
    evolver.step()
    gone = stream.tables("regular")[0].name
    drop_table(world.services(), gone)
    stream.write(events([2], each=1, amount=2**40), version="v0.0.2")
    report, _ = evolver.run()
    assert (report.stamped, report.vanished) == (2, 2)
    assert gone not in stream._handle.load().tables
    log = TableLog(world.services(), record.name)
    log.commit(lambda state: create_stamped(state, old, record, order_by=old.time))
    assert _versions(stream) == {"v0.0.1", "v0.0.2"}
    world.clock.now += HOUR
    assert evolver.run()[0].stamped == 1
    assert _versions(stream) == {"v0.0.2"}


def test_the_state_is_bounded_and_a_longer_queue_waits_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past so many tables or bytes, the queue goes on in objects of its own, which are removed when done."""
    monkeypatch.setattr("instar.stream.queue.MOST_PATHS", 4)
    monkeypatch.setattr("instar.stream.queue._SPILL_PATHS", 3)
    world = new_world()
    stream = _stream(world, 12, {"regular": "1d"})
    stream.evolve(WIDER, version="v0.0.2")
    evolver = _evolver(world, batch=5)
    evolver.step()
    state = evolver.load()
    assert (len(state.queue), [spill.tables for spill in state.spilled], state.waiting) == (4, [3, 3, 2], 12)
    stream.evolve(WIDEST, version="v0.0.3")
    assert evolver.run()[0].stamped == 12
    assert _versions(stream) == {"v0.0.3"}
    assert not list(world.blob.list("streams"))


def test_sixty_thousand_tables_are_queued_within_sixteen_megabytes() -> None:
    """A state with its longest queue takes less than 16 MB."""
    queue = tuple(
        Queued("repartitioned", f"{'a-long-name/' * 4}1d/{number:010d}") for number in range(60_000)
    )
    assert len(msgspec.msgpack.encode(EvolverState(queue=queue))) < 16 * 1024 * 1024


def test_what_comes_next_follows_from_the_state_alone() -> None:
    """The machine reads no clock: the same state, stream and time give the same action."""
    world = new_world()
    stream = _stream(world)
    catalog = stream._handle.load()
    idle = EvolverState(version="v0.0.1", schema_id=0, last_check=5, period=1)
    assert next_action(idle, catalog, 5, rules="r") == Rest(5 + HOUR)
    assert next_action(idle, catalog, 5 + HOUR, rules="r") == Walk(retargeted=False)
    assert next_action(EvolverState(), catalog, 0, rules="r") == Walk(retargeted=False)
