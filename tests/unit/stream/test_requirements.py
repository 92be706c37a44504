"""What is required of streams and the evolver, one test for each line of the list in docs/design/0006."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from msgspec.structs import replace

from instar.api.table import Table
from instar.compat import judge, load_version
from instar.state import Configured, Evolved
from instar.storage import MemoryConsensus
from instar.stream import StreamHandle, as_version
from instar.stream.evolution import PERIODS_MS, EvolverState, Queued, Rest, StampTables
from instar.stream.evolver import StreamEvolver
from instar.stream.judging import EveryChange, QueryJudge, TableJudgement
from instar.stream.queue import MOST_BYTES, MOST_PATHS, spill_queue
from instar.stream.stamp import load_stamp
from instar.table import TableLog, create_table
from tests.faults import Faults, UnreliableBlob, UnreliableConsensus
from tests.streams import FIRST, NAME, day, events, make_stream, new_world, open_again

if TYPE_CHECKING:
    from instar.api.stream import Stream
    from instar.schema import Schema
    from instar.state import TableState
    from instar.stream.judging import Judge
    from tests.tables import World

WIDER = FIRST.replace("amount int", "amount bigint")
NOTED = f"{FIRST}, note string"
KINDS = {"regular": "1d", "hourly": "1h", "repartitioned": "1d", "eod": "1d", "archive": "1y"}
HOUR = 60 * 60 * 1000


def _world() -> World:
    return new_world(consensus=MemoryConsensus())


def _evolver(world: World, holder: str = "a", judge: Judge | None = None, batch: int = 100) -> StreamEvolver:
    handle = StreamHandle(world.services(), NAME)
    return StreamEvolver(handle, judge or EveryChange(), holder=holder, batch=batch, share=1)


def _full(world: World) -> Stream:
    """Return a stream that has tables of every kind."""
    stream = make_stream(world, KINDS)
    stream.write(events([0, 1, 500], each=1, amount=1), version="v0.0.1")
    stream.repartition(by="at")
    stream.close_day(None, day(1))
    stream.archive(before=day(400))
    return stream


def _state(world: World, name: str) -> TableState:
    return TableLog(world.services(), name).load()


def _renamed(schema: Schema, old: str, new: str) -> Schema:
    fields = (replace(field, name=new) if field.name == old else field for field in schema.fields)
    return type(schema)(tuple(fields))


def _names(stream: Stream, kind: str) -> list[str]:
    return [table.name for table in stream.tables(kind)]


def test_r00_a_range_of_tables_is_read_in_one_schema(tmp_path: Path) -> None:
    """A change that is right for records may be wrong for queries; a range is read all the same."""
    for number, name in enumerate(("price", "cost")):
        (tmp_path / f"{number}.proto").write_text(f'syntax = "proto3"; message M {{ int32 {name} = 1; }}')
    judged = judge(*(load_version(str(tmp_path / f"{number}.proto")) for number in range(2)))
    assert (judged.wire_safe, judged.query_compatible) == (True, False)
    stream = make_stream(_world(), {"regular": "1d"})
    stream.write(events([2], each=1, amount=1), version="v0.0.1")
    stream.evolve(WIDER, version="v0.0.2")
    stream.write(events([1], each=1, amount=2**40), version="v0.0.2")
    assert stream.snapshot().to_arrow()["amount"].to_pylist() == [1, 2**40]


def test_r01_regular_tables_are_of_a_day_and_only_those_written_to_are_updated() -> None:
    """A writer stamps the day that it writes to, and leaves others to the evolver."""
    stream = make_stream(_world(), {"regular": "1d"})
    stream.write(events([0, 1], each=1, amount=1), version="v0.0.1")
    stream.evolve(WIDER, version="v0.0.2")
    stream.write(events([0], each=1, amount=2), version="v0.0.2")
    tables = stream.tables("regular")
    assert [table.name for table in tables] == [f"{NAME}/1d/{day(number):%Y-%m-%d}" for number in (1, 0)]
    assert [table.version for table in tables] == ["v0.0.1", "v0.0.2"]


def test_r02_hourly_tables_take_the_schema_of_regular_ones_once() -> None:
    """They begin with it when they are created, and nobody changes it: neither a writer nor the evolver."""
    world = _world()
    stream = make_stream(world, {"regular": "1d", "hourly": "1h"})
    stream.write(events([0], each=2, amount=1), version="v0.0.1")
    assert _names(stream, "hourly") == [f"{NAME}/1h/{day(0):%Y-%m-%d}_{hour:03d}" for hour in (0, 7)]
    regular = _state(world, _names(stream, "regular")[0])
    for name in _names(stream, "hourly"):
        assert _state(world, name).history.latest == regular.history.latest
    stream.evolve(WIDER, version="v0.0.2")
    stream.write(events([0], each=1, amount=2), version="v0.0.1")
    _evolver(world).run()
    for name in _names(stream, "hourly"):
        assert len(_state(world, name).history.schemas) == 1


@pytest.mark.parametrize(("period", "first"), [("1y", "-01-01"), ("1M", "-01")])
def test_r03_archive_tables_are_of_a_month_or_a_year(period: str, first: str) -> None:
    """Their names say the period, and the day that it begins with."""
    stream = make_stream(_world(), {"regular": "1d", "archive": period})
    stream.write(events([100], each=1, amount=1), version="v0.0.1")
    stream.archive(before=day(0))
    [name] = _names(stream, "archive")
    assert name.startswith(f"{NAME}/{period}/{day(100):%Y}")
    assert name.endswith(first)


def test_r04_the_schema_of_repartitioned_tables_is_refreshed_at_every_append() -> None:
    """They have the columns of the stream as soon as rows are copied to them."""
    world = _world()
    stream = make_stream(world, {"regular": "1d", "repartitioned": "1d"})
    for schema, version in ((FIRST, "v0.0.1"), (WIDER, "v0.0.2"), (f"{WIDER}, note string", "v0.0.3")):
        stream.evolve(schema, version=version)
        stream.write(events([0], each=1, amount=1), version=version)
        stream.repartition(by="at")
        [table] = stream.tables("repartitioned")
        assert table.name == f"{NAME}-repartitioned/1d/{day(0):%Y-%m-%d}"
        assert table.version == version
        assert _state(world, table.name).history.latest == stream.schema


def test_r05_end_of_day_tables_have_their_own_place() -> None:
    """They are of a day, beside the stream, and the evolver brings them forward."""
    world = _world()
    stream = _full(world)
    assert _names(stream, "eod") == [f"{NAME}-eod/1d/{day(1):%Y-%m-%d}"]
    stream.evolve(WIDER, version="v0.0.2")
    _evolver(world).run()
    assert {table.version for table in stream.tables("eod")} == {"v0.0.2"}


def test_r06_a_table_knows_every_version_written_to_it() -> None:
    """Each column is as the highest version that has it defines it, also if a later one has removed it."""
    stream = make_stream(_world(), {"regular": "1d"})
    stream.write(events([0], each=1, amount=1), version="v0.0.1")
    stream.evolve("user string not null, at timestamp, note string", version="v0.0.10")
    stream.evolve("user string not null, at timestamp, amount bigint, note string", version="v0.0.9")
    stream.write(events([0], each=1, note="x"), version="v0.0.10")
    stream.write(events([0], each=1, amount=2**40), version="v0.0.9")
    [table] = stream.tables()
    assert table.versions == ("v0.0.1", "v0.0.9", "v0.0.10")
    assert "amount bigint" in str(stream.schema)
    assert "note string" in str(stream.schema)


def test_r07_a_table_has_one_stamp_which_changes_together_with_its_schema() -> None:
    """No commit shows a new schema with an old stamp, or a new stamp with an old schema."""
    world = _world()
    stream = _full(world)
    for schema, version in ((WIDER, "v0.0.2"), (f"{WIDER}, note string", "v0.0.3")):
        stream.evolve(schema, version=version)
        _evolver(world).run()
    for name in _names(stream, "regular"):
        steps = [entry.commit.steps for entry in TableLog(world.services(), name).entries()]
        stamping = [each for each in steps if any(isinstance(step, Evolved) for step in each)]
        assert len(stamping) == 2
        assert all(any(isinstance(step, Configured) for step in each) for each in stamping)
        stamp = load_stamp(_state(world, name), stream._handle.known())
        assert (stamp.version, stamp.schema_id) == ("v0.0.3", 2)


def test_r08_the_message_of_every_version_is_kept_with_the_stream(tmp_path: Path) -> None:
    """Whoever opens the stream decodes records of each version by the descriptors of that version."""
    world = _world()
    stream = make_stream(world, {"regular": "1d"}, "user string, at timestamp")
    head = 'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message M { '
    for number, field in ((2, "int32 n = 3;"), (3, "sint32 m = 4;")):
        path = tmp_path / f"{number}.proto"
        path.write_text(head + f"string user = 1; google.protobuf.Timestamp at = 2; {field} }}")
        stream.evolve_protobuf(path, f"v0.0.{number}")
    again = open_again(world)
    again.write_protobuf([b"\x0a\x01a\x12\x00\x18\x07"], "v0.0.2")
    again.write_protobuf([b"\x0a\x01b\x12\x00\x20\x07"], "v0.0.3")
    rows = sorted(again.snapshot().to_arrow().to_pylist(), key=lambda row: row["user"])
    assert [(row["user"], row["n"], row["m"]) for row in rows] == [("a", 7, None), ("b", None, -4)]


def test_r09_one_highest_version_holds_for_all_tables() -> None:
    """Versions compare as numbers, and tables of every kind converge on the same one."""
    world = _world()
    stream = _full(world)
    stream.evolve(WIDER, version="v0.0.10000")
    stream.evolve(FIRST, version="v0.0.9999")
    assert stream.max_version == "v0.0.10000"
    _evolver(world).run()
    kinds = ("regular", "repartitioned", "eod", "archive")
    assert {table.version for kind in kinds for table in stream.tables(kind)} == {"v0.0.10000"}


def test_r10_where_the_evolver_stands_is_kept_with_the_stream() -> None:
    """The target, the last check, the tables that wait and the version that was checked survive a restart."""
    world = _world()
    stream = _full(world)
    stream.evolve(WIDER, version="v0.0.2")
    _evolver(world).step()
    state = _evolver(world, "another").load()
    assert (state.version, state.last_check, state.checked, state.running) == ("v0.0.2", None, None, True)
    assert {table.kind for table in state.queue} == {"regular", "repartitioned", "eod", "archive"}
    _evolver(world).run()
    assert _evolver(world, "another").load().last_check == world.clock.now


def test_r11_a_writer_looks_at_the_stream_only_for_what_it_does_not_know() -> None:
    """A known version costs what a plain table does; an unknown one a look, and is known from then on."""
    world = _world()
    stream = make_stream(world, {"regular": "1d"})
    faults = Faults()
    services = world.services(consensus=lambda logs: UnreliableConsensus(logs, faults))
    writer = open_again(world, services)
    writer.write(events([0], each=1, amount=1), version="v0.0.1")
    stream.evolve(NOTED, version="v0.0.2")

    def looks() -> int:
        found = sum(key == f"@streams/{NAME}" for _, key in faults.calls)
        faults.calls.clear()
        return found

    plain = Table(services, create_table(services, "plain", FIRST))
    plain.append(events([0], each=1, amount=1))
    looks()
    plain.append(events([0], each=1, amount=1))
    cost = [name for name, _ in faults.calls]
    looks()
    writer.write(events([0], each=1, amount=1), version="v0.0.1")
    assert [name for name, _ in faults.calls] == cost
    assert looks() == 0
    writer.write(events([0], each=1, amount=1), version="v0.0.2")
    assert looks() > 0
    writer.write(events([0], each=1, amount=1), version="v0.0.2")
    assert looks() == 0


def test_r12_the_highest_version_is_raised_in_a_transaction_and_never_sinks() -> None:
    """Of many who declare versions at once, all are heard, and the highest of them is the highest after."""
    world = _world()
    make_stream(world, {"regular": "1d"})
    numbers = [7, 3, 9, 2, 8, 4, 6, 5]
    seen: list[str] = []

    def declare(number: int) -> None:
        columns = "".join(f", c{each} string" for each in range(number))
        seen.append(str(open_again(world).evolve(FIRST + columns, version=f"v0.0.{number}")))

    threads = [threading.Thread(target=declare, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stream = open_again(world)
    assert stream.max_version == "v0.0.9"
    assert len(stream.versions) == 1 + len(numbers)
    for number, answered in zip(sorted(numbers), sorted(seen), strict=True):
        assert as_version(answered) >= as_version(f"v0.0.{number}")


def test_r13_the_evolver_does_not_slow_a_write_to_a_new_day() -> None:
    """Such a write takes the same requests while a pass is going on, and meets no conflict."""
    world = _world()
    stream = _full(world)
    faults = Faults()
    services = world.services(
        lambda blob: UnreliableBlob(blob, faults), lambda logs: UnreliableConsensus(logs, faults)
    )
    writer = open_again(world, services)

    def cost(number: int) -> list[str]:
        faults.calls.clear()
        writer.write(events([number], each=1, amount=1), version="v0.0.1")
        return sorted(operation for operation, _ in faults.calls)

    cost(20)
    alone = cost(21)
    stream.evolve(WIDER, version="v0.0.2")
    cost(22)
    evolver = _evolver(world, batch=1)
    number = 23
    while True:
        _, action = evolver.step()
        assert cost(number) == alone
        number += 1
        if isinstance(action, Rest):
            break
    assert number > 25


def test_r14_a_pass_that_is_not_due_is_not_begun() -> None:
    """Then nothing is written, and no table is looked at."""
    world = _world()
    _full(world)
    _evolver(world).run()
    before = _evolver(world).load()
    world.clock.now += PERIODS_MS[1] - 1
    report, rest = _evolver(world).run()
    assert report.passes == 0
    assert isinstance(rest, Rest)
    assert rest.until == world.clock.now + 1
    assert _evolver(world).load() == before


def test_r15_a_pass_collects_every_stale_table_and_updates_them_in_batches() -> None:
    """Each batch is one record of progress, and each table one commit."""
    world = _world()
    stream = _full(world)
    stream.evolve(WIDER, version="v0.0.2")
    evolver = _evolver(world, batch=2)
    evolver.step()
    stale = {name for kind in ("regular", "repartitioned", "eod", "archive") for name in _names(stream, kind)}
    assert {table.name for table in evolver.load().queue} == stale
    sizes = []
    while isinstance(action := evolver.plan()[2], StampTables):
        sizes.append(len(action.tables))
        evolver.step()
    assert sizes == [2] * (len(stale) // 2) + [1] * (len(stale) % 2)


def test_r16_the_end_of_a_pass_is_recorded_and_makes_the_pause_longer() -> None:
    """The time is that of the clock, and the next pass comes later than the last one did."""
    world = _world()
    _full(world)
    evolver = _evolver(world)
    pauses = []
    for _ in range(4):
        evolver.run()
        state = evolver.load()
        assert state.last_check == world.clock.now
        pauses.append(state.due_at() - world.clock.now)
        world.clock.now = state.due_at()
    assert pauses == [HOUR, 5 * HOUR, 24 * HOUR, 24 * HOUR]


def test_r17_a_raised_version_ends_the_pause() -> None:
    """The pauses begin anew: at once, then 1, 5 and 24 hours."""
    world = _world()
    stream = _full(world)
    evolver = _evolver(world)
    for _ in range(4):
        evolver.run()
        world.clock.now = evolver.load().due_at()
    evolver.run()
    stream.evolve(WIDER, version="v0.0.2")
    assert evolver.run()[0].passes == 1
    assert evolver.load().due_at() == world.clock.now + HOUR


def test_r18_the_target_belongs_to_the_tables_that_wait_and_none_means_converged() -> None:
    """A raised version makes a new list for a new target; an empty list says that all is done."""
    world = _world()
    stream = _full(world)
    stream.evolve(WIDER, version="v0.0.2")
    evolver = _evolver(world, batch=1)
    evolver.step()
    evolver.step()
    waiting = evolver.load().waiting
    stream.evolve(f"{WIDER}, note string", version="v0.0.3")
    evolver.step()
    assert (evolver.load().version, evolver.load().waiting) == ("v0.0.3", waiting + 1)
    evolver.run()
    assert (evolver.load().waiting, evolver.load().running) == (0, False)
    assert {table.version for table in stream.tables("regular")} == {"v0.0.3"}


def test_r19_the_list_survives_a_change_of_leader_and_is_in_order() -> None:
    """Whoever leads next goes on with it and does not walk again: kind by kind, the newest first."""
    world = _world()
    stream = _full(world)
    stream.evolve(WIDER, version="v0.0.2")
    first = _evolver(world, "first", batch=2)
    first.step()
    first.step()
    left = first.load().queue
    world.clock.now += 61_000
    second = _evolver(world, "second", batch=2)
    assert second.plan()[2] == StampTables(left[:2], 2)
    order = ["repartitioned", "regular", "eod", "archive"]
    assert [table.kind for table in left] == sorted((table.kind for table in left), key=order.index)
    regular = [table.name for table in left if table.kind == "regular"]
    assert regular == sorted(regular, reverse=True)
    second.run()
    assert {table.version for table in stream.tables("archive")} == {"v0.0.2"}


def test_r20_the_state_is_bounded_and_what_is_beyond_waits_elsewhere() -> None:
    """It holds at most 60,000 tables and 16 MB; nothing fails past that, and nothing is forgotten."""
    services = _world().services()
    many = [Queued("regular", f"s/1d/{number}") for number in range(MOST_PATHS + 30_000)]
    kept, spilled = spill_queue(services, "id", many)
    assert (len(kept), sum(spill.tables for spill in spilled)) == (MOST_PATHS, 30_000)
    wide = [Queued("regular", "x" * 1000 + str(number)) for number in range(30_000)]
    kept, spilled = spill_queue(services, "id", wide)
    assert len(kept) + sum(spill.tables for spill in spilled) == len(wide)
    assert len(kept) < len(wide)
    assert len(msgspec.msgpack.encode(EvolverState(queue=kept))) <= MOST_BYTES


def test_r21_tables_are_updated_only_if_a_query_would_notice() -> None:
    """A column that is added is no reason, and most updates vanish; one that is renamed is a reason."""
    world = _world()
    stream = _full(world)
    stream.evolve(NOTED, version="v0.0.2")
    report, _ = _evolver(world, judge=QueryJudge()).run()
    assert (report.stamped, report.skipped > 0) == (0, True)
    stream.evolve(_renamed(stream.schema, "amount", "price"), version="v0.0.3")
    report, _ = _evolver(world, judge=QueryJudge()).run()
    assert (report.stamped > 0, report.skipped) == (True, 0)


def test_r22_what_was_judged_is_remembered_by_pair_and_rules() -> None:
    """No pair is judged twice, unless the rules have changed; the version that was checked is kept."""

    class Counting(QueryJudge):
        """A judge that counts."""

        asked = 0

        def judge(self, old: Schema, new: Schema) -> TableJudgement:
            """Count, and judge."""
            self.asked += 1
            return super().judge(old, new)

    world = _world()
    stream = _full(world)
    stream.evolve(NOTED, version="v0.0.2")
    judge = Counting()
    _evolver(world, judge=judge).run()
    assert judge.asked == 2
    state = _evolver(world).load()
    assert state.checked == "v0.0.2"
    assert set(state.verdicts) == {f"0>1 {judge.rules}", f"1>1 {judge.rules}"}
    for kind in ("0", "1"):
        world.clock.now += 24 * HOUR
        stream.write(events([30 + int(kind)], each=1, amount=1), version="v0.0.1")
        _evolver(world, judge=judge).run()
    assert judge.asked == 2
    judge.rules = "query-next"
    _evolver(world, judge=judge).run()
    assert judge.asked == 2 + 2
    stream.evolve(f"{NOTED}, more string", version="v0.0.3")
    _evolver(world, judge=judge).run()
    assert judge.asked == 2 + 2 + 3
    assert len(_evolver(world).load().verdicts) == 3  # those for other targets are of no use any more

    class Noticing(Counting):
        """A judge that notices everything, and counts."""

        rules = "strict"

        def judge(self, old: Schema, new: Schema) -> TableJudgement:
            """Count, and notice."""
            super().judge(old, new)
            return TableJudgement(compatible=False)

    noticing, stamped = Noticing(), 0
    stream.evolve(f"{NOTED}, more string, yet string", version="v0.0.4")
    while not isinstance((step := _evolver(world, f"e{stamped}", judge=noticing, batch=1).step())[1], Rest):
        stamped += step[0].stamped
        world.clock.now += HOUR  # another one takes the lead
    assert stamped > noticing.asked == len(_evolver(world).load().verdicts)


def test_every_line_of_the_list_has_a_test() -> None:
    """The list in the design note and the tests here have the same numbers."""
    note = Path(__file__).parents[3] / "docs" / "design" / "0006-streams-and-the-evolver.md"
    listed = re.findall(r"^\| R(\d+) \|", note.read_text(), re.MULTILINE)
    assert [int(number) for number in listed] == list(range(23))
    assert {f"r{int(number):02d}" for number in listed} == {
        name.split("_")[1] for name in globals() if name.startswith("test_r")
    }
