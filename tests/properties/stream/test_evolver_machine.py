"""Days of a stream on a simulated clock: writers, evolvers that die and take over, tables that go.

A model follows along, and says after each step what must hold.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pytest

from instar.storage import MemoryConsensus
from instar.stream import StreamHandle, as_version
from instar.stream.evolution import PERIODS_MS, EvolverState, is_stale
from instar.stream.evolver import StreamEvolver
from instar.stream.judging import TableJudgement
from instar.stream.kinds import EVOLVED_IN_ORDER
from instar.stream.stamp import load_stamp
from instar.table import TableLog, drop_table
from tests.streams import NAME, day, make_stream, new_world, open_again

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.schema import Schema
    from instar.state import TableState
    from instar.stream.catalog import Catalog

STEPS = 60
HOUR = 60 * 60 * 1000
FIRST = "user string not null, at timestamp"
KINDS = {"regular": "1d", "hourly": "12h", "repartitioned": "1d"}


class Near:
    """A judge to whom a column more makes no difference, and two do: verdicts are not transitive."""

    rules = "near"

    def judge(self, old: Schema, new: Schema) -> TableJudgement:
        """Count columns."""
        return TableJudgement(abs(len(old.fields) - len(new.fields)) <= 1)


class Seen(NamedTuple):
    """What was seen of a table: none of it ever goes back."""

    schema_id: int
    version: str
    fence: int
    versions: frozenset[str]


class Days:
    """A stream, its evolvers, and what must be true of them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.world = new_world(consensus=MemoryConsensus())
        self.stream = make_stream(self.world, KINDS, FIRST)
        self.handle = StreamHandle(self.world.services(), NAME)
        self.columns = {1: 0}
        self.rows: dict[int, Counter[str]] = {}
        self.everything: Counter[str] = Counter()
        self.count = 0
        self.holders = 0
        self.evolvers = [self.new_evolver() for _ in range(2)]
        self.seen: dict[tuple[str, str], Seen] = {}
        self.highest = as_version("v0.0.1")
        self.evolution = EvolverState()

    def new_evolver(self) -> StreamEvolver:
        """Begin an evolver, as another process would."""
        self.holders += 1
        handle = StreamHandle(self.world.services(), NAME)
        return StreamEvolver(handle, Near(), holder=f"e{self.holders}", batch=2, share=1)

    def declare(self) -> None:
        """Declare a version: mostly a higher one, sometimes one in between, with a column more."""
        number = self.random.choice([max(self.columns) + 2, max(self.columns) + 2, max(self.columns) - 1])
        if number not in self.columns and number > 0:
            self.columns[number] = len(self.columns)
            added = "".join(f", c{each} string" for each in range(1, self.columns[number] + 1))
            self.stream.evolve(FIRST + added, version=f"v0.0.{number}")

    def write(self) -> None:
        """Write rows of some version to some days."""
        number = self.random.choice(list(self.columns))
        days = self.random.sample(range(8), self.random.choice([1, 1, 2, 3]))
        users = [f"{self.count + at}" for at in range(len(days))]
        self.count += len(days)
        at = pa.array([day(each) for each in days], pa.timestamp("us", "UTC"))
        values = {f"c{each}": [f"{number}"] * len(days) for each in range(1, self.columns[number] + 1)}
        writer = self.random.choice([self.stream, open_again(self.world)])
        writer.write(pa.table({"user": users, "at": at, **values}), version=f"v0.0.{number}")
        for user, each in zip(users, days, strict=True):
            self.rows.setdefault(each, Counter())[user] += 1
            self.everything[user] += 1

    def copy(self) -> None:
        """Copy what is new to repartitioned tables."""
        self.stream.repartition(by="at")

    def drop(self) -> None:
        """Drop the table of a day, once its rows were copied."""
        if self.rows:
            self.copy()
            gone = self.random.choice(list(self.rows))
            drop_table(self.world.services(), f"{NAME}/1d/{day(gone):%Y-%m-%d}")
            del self.rows[gone]

    def wait(self) -> None:
        """Let time pass: minutes, hours or days."""
        self.world.clock.now += self.random.choice([20_000, 61_000, HOUR, 5 * HOUR, 25 * HOUR])

    def step(self) -> None:
        """Let an evolver take one step."""
        self.random.choice(self.evolvers).step()

    def run(self) -> None:
        """Let an evolver do all that it can."""
        self.random.choice(self.evolvers).run()

    def die(self) -> None:
        """Replace an evolver, which never says goodbye."""
        self.evolvers[self.random.randrange(2)] = self.new_evolver()

    def check(self) -> None:
        """Compare the stream with what must hold of it."""
        catalog = self.handle.load()
        assert catalog.max_version >= self.highest
        assert catalog.max_version == max(as_version(f"v0.0.{number}") for number in self.columns)
        self.highest = catalog.max_version
        states = {name: TableLog(self.handle.services, name).refresh() for name in catalog.tables}
        found = {name: state for name, state in states.items() if state is not None and not state.dropped}
        for name, state in found.items():
            self.check_table(catalog, name, state)
        self.check_evolution(catalog, found)

    def check_table(self, catalog: Catalog, name: str, state: TableState) -> None:
        """Check that no stamp goes back, and that hourly tables keep their schema."""
        stamp = load_stamp(state, catalog)
        now = Seen(stamp.schema_id, stamp.version, stamp.fence, frozenset(stamp.versions))
        before = self.seen.get((name, state.table_id), now)
        assert now.schema_id >= before.schema_id
        assert now.version >= before.version
        assert now.fence >= before.fence
        assert now.versions >= before.versions
        assert state.history.latest == catalog.history.schemas[stamp.schema_id]
        if catalog.tables[name].kind == "hourly":
            assert len(state.history.schemas) == 1
        self.seen[name, state.table_id] = now

    def check_evolution(self, catalog: Catalog, found: dict[str, TableState]) -> None:
        """Check that passes come when due, the queue is in order, and what a pass leaves is not noticed."""
        before, now = self.evolution, self.evolvers[0].load()
        order = [kind.value for kind in EVOLVED_IN_ORDER]
        places = [(order.index(table.kind), table.name) for table in now.queue]
        assert [kind for kind, _ in places] == sorted(kind for kind, _ in places)
        for kind in range(len(order)):
            names = [name for each, name in places if each == kind]
            assert names == sorted(names, reverse=True)
        if not now.running:
            assert now.waiting == 0
        if now.passes > before.passes:
            assert now.passes == before.passes + 1
            assert now.last_check is not None
            raised = now.version != before.version
            assert before.running or raised or now.last_check >= before.due_at()
            if raised:
                assert now.period == 1
            elif not before.running:
                assert now.period == min(before.period + 1, len(PERIODS_MS) - 1)
            for name, state in found.items():
                record, stamp = catalog.tables[name], load_stamp(state, catalog)
                if record.kind != "hourly" and record.number < now.below and now.aims_at(catalog):
                    stale = is_stale(stamp.version, stamp.schema_id, catalog)
                    noticed = not Near().judge(state.history.latest, catalog.schema).compatible
                    assert not (stale and noticed), name
        self.evolution = now

    def finish(self) -> None:
        """Let everything come to rest, and read it all."""
        self.world.clock.now += 48 * HOUR
        for _ in range(3):
            for evolver in self.evolvers:
                evolver.run()
            self.check()
            self.world.clock.now += 48 * HOUR
        catalog = self.handle.load()
        assert self.evolvers[0].load().aims_at(catalog)
        self.copy()
        regular = Counter(self.stream.snapshot().to_arrow()["user"].to_pylist())
        assert regular == sum(self.rows.values(), Counter())
        for kind in ("hourly", "repartitioned"):
            found = self.stream.snapshot(kind).to_arrow()
            assert Counter(found["user"].to_pylist()) == self.everything
            assert tuple(found.schema.names) == catalog.schema.names


@pytest.mark.parametrize("seed", range(5))
def test_days_of_a_stream_follow_the_model(seed: int) -> None:
    """Whatever happens in whatever order, nothing goes back, no row is lost, and all tables converge."""
    days = Days(seed)
    weights: dict[Callable[[Days], None], int] = {
        Days.declare: 2,
        Days.write: 5,
        Days.copy: 1,
        Days.drop: 1,
        Days.wait: 4,
        Days.step: 8,
        Days.run: 2,
        Days.die: 2,
    }
    for _ in range(STEPS):
        (act,) = days.random.choices(list(weights), list(weights.values()))
        act(days)
        days.check()
    days.finish()
