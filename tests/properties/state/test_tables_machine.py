"""Random commands from several handles against the model, with reopening, rollups, vacuums and readers.

Rollups come after four commits and chunks hold six parts, so a short run sees chunks, merges, masks,
reloads and truncated logs. After every step an observer must see what the model says, and so must the other
handles whenever they look.
"""

# The names of the rules say what they do.
# ruff: noqa: D102

from __future__ import annotations

import math
import random
import shutil
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pyroaring import BitMap

from instar.api import Table
from instar.errors import (
    ConflictError,
    IncompatibleSchemaError,
    InstarError,
    PartsGoneError,
    SchemaMismatchError,
    SchemaNotFoundError,
    TableExistsError,
    TableNotFoundError,
    UpperMismatchError,
    UsageError,
    WriterFencedError,
)
from instar.schema import Decimal, Field, Primitive, Schema
from instar.state import NewBatch, Part, Place
from instar.stats import FieldStats
from instar.storage import DirectoryBlob, ObjectBlob
from instar.table import (
    TableLog,
    begin_write,
    create_table,
    drop_table,
    list_tables,
    move_since,
    vacuum_store,
    vacuum_table,
)
from instar.table.layout import part_key, table_root
from instar.table.log.leases import LEASE_MS
from instar.table.log.sheets import load_retractions
from instar.table.write.append import Takes
from tests.properties.state.model import ModelPart, ModelTable, single_values
from tests.tables import World, all_rows, find_missing, small_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from instar.schema import Type
    from instar.storage import Blob
    from instar.table import Services
    from instar.table.log.pin import Pin
    from instar.table.write.append import PartWriter

NAMES = ["events", "events/hourly"]
HANDLES = 3
INLINE_PARTS = 2
EVOLVING = 99
"""How much older than the latest a schema is that comes with the very append."""
OBSERVER = HANDLES
"""A handle that does nothing but look, after every step."""

names = st.sampled_from(NAMES)
handles = st.integers(0, HANDLES - 1)
seeds = st.integers(0, 2**16)
TYPES = [
    "int",
    "bigint",
    "float",
    "double",
    "string",
    "binary",
    "boolean",
    "date",
    "timestamp",
    "timestamp_ntz",
    "decimal(6,2)",
    "interval day to second",
    "interval year to month",
    "struct<x: int, y: string>",
    "array<int>",
    "map<string,int>",
]
WIDER = {"int": "bigint", "float": "double", "decimal(6,2)": "decimal(9,3)"}


def bound_of(type_: Type, chance: random.Random) -> Any:  # noqa: ANN401 - whatever the type holds
    """Draw a bound as it is stored, narrow enough for every type that this one may have been widened from."""
    if isinstance(type_, Decimal):
        return f"{chance.randint(-9999, 9999)}.{chance.randint(0, 99):02d}"
    assert isinstance(type_, Primitive)
    match type_.name:
        case "boolean":
            return chance.random() < 0.5
        case "float" | "double":
            return chance.choice([chance.randint(-200, 200) / 2, math.inf, -math.inf, -0.0])
        case "string":
            return "".join(chance.choices("aé\U0010ffff", k=chance.randint(0, 3)))
        case "binary":
            return chance.randbytes(chance.randint(0, 3))
    return chance.randint(-30_000, 30_000)


def stats_of(type_: Type, rows: int, chance: random.Random) -> FieldStats:
    """Draw what is known about a field of a part: nothing, some of it, or all."""
    bounds = [bound_of(type_, chance) if chance.random() < 0.7 else None for _ in range(2)]
    counts = [chance.choice([None, 0, rows]), chance.choice([None, 0])]
    return FieldStats(*counts, *bounds)


def part_facts(seed: int, schema: Schema, count: int, upper: int) -> list[dict[str, Any]]:
    """Make up all that parts say of themselves, except their keys; their times are not before `upper`.

    All from one number: if Hypothesis drew each fact, it would run out of patience before it got far.
    """
    chance = random.Random(seed)
    facts = []
    for _ in range(count):
        rows = chance.randint(0, 9)
        known = [leaf for leaf in single_values(schema) if chance.random() < 0.7]
        ts_min, ts_max = chance.choice([(None, None), (None, None), (upper, upper + 3)])
        first_row, last_row = chance.choice([(None, None), (b"a", b"b\x00")])
        facts.append(
            {
                "rows": rows,
                "size": chance.randint(1, 9),
                "run": chance.randint(0, 2),
                "ordered": chance.random() < 0.5,
                "ts_min": ts_min,
                "ts_max": ts_max,
                "diff_min": chance.choice([1, -1]),
                "diff_max": chance.choice([1, 7]),
                "first_row": first_row,
                "last_row": last_row,
                "stats": {leaf.id: stats_of(leaf.type, rows, chance) for leaf in known},
            }
        )
    return facts


def put_parts(services: Services, table_id: str, write_id: str, facts: list[dict[str, Any]]) -> list[Part]:
    """Put parts as a writer does, though nothing is in them."""
    parts = [Part(part_key(table_id, write_id, number), **fact) for number, fact in enumerate(facts)]
    for part in parts:
        services.blob.put(part.key, b"")
    return parts


@contextmanager
def one_of(allowed: set[type[InstarError]]) -> Iterator[None]:
    """Demand success if nothing is wrong, and otherwise an error that says one of the things that are."""
    try:
        yield
    except tuple(allowed):
        return
    assert not allowed, f"nothing was raised, but something is wrong: {allowed}"


@dataclass
class Plan:
    """A compaction that was planned, and waits to be applied."""

    name: str
    table_id: str
    seqno: int
    removed: list[Place]
    size: tuple[int, int]
    upper: int


@dataclass
class Write:
    """A write that has put its parts and has not ended."""

    name: str
    table_id: str
    schema_id: int
    handle: int
    writer: PartWriter
    parts: list[Part]
    holding: ExitStack


@dataclass
class Reader:
    """Somebody who reads, and what they must go on seeing."""

    services: Services
    pin: Pin
    rows: dict[Place, dict[str, Any]]


class TablesMachine(RuleBasedStateMachine):
    """Several handles to the tables of one store, and what the tables must say."""

    def __init__(self) -> None:
        super().__init__()
        self.undo = ExitStack()
        self.undo.enter_context(small_numbers(inline_parts=INLINE_PARTS))
        self.world = World(self.make_blob())
        self.undo.callback(self.world.close)
        self.services = [self.world.services() for _ in range(HANDLES + 1)]
        self.logs: list[dict[str, TableLog]] = [{} for _ in range(HANDLES + 1)]
        self.tables: dict[str, ModelTable] = {}
        self.changed: set[str] = set(NAMES)
        self.seen: dict[tuple[int, str], int] = {}
        self.plans: list[Plan] = []
        self.writes: list[Write] = []
        self.readers: list[Reader] = []

    def make_blob(self) -> Blob:
        return ObjectBlob.in_memory()

    def log(self, handle: int, name: str) -> TableLog:
        """Return a handle's log; one of a table that has ended is only good for as long as it has no heir."""
        log = self.logs[handle].setdefault(name, TableLog(self.services[handle], name))
        model = self.tables.get(name)
        if model is not None and log._table_id not in {None, model.table_id}:
            with one_of({TableNotFoundError}):
                log.load()
            log = self.logs[handle][name] = TableLog(self.services[handle], name)
        return log

    def settle(self, handle: int, name: str) -> None:
        self.log(handle, name).settle()
        self.changed.add(name)

    def missing(self, name: str) -> set[type[InstarError]]:
        return set() if name in self.tables else {TableNotFoundError}

    # --- tables -------------------------------------------------------------------------------------------

    @initialize(columns=st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    def begin(self, columns: list[str]) -> None:
        for name in NAMES:
            self.create(0, name, columns)

    @precondition(lambda self: len(self.tables) < len(NAMES))
    @rule(handle=handles, name=names, columns=st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    def create(self, handle: int, name: str, columns: list[str]) -> None:
        ddl = ", ".join(f"c{number} {type_}" for number, type_ in enumerate(columns))
        with one_of({TableExistsError} if name in self.tables else set()):
            log = create_table(self.services[handle], name, ddl)
            state = log.load()
            self.tables[name] = ModelTable(state.table_id, [state.history.latest])
        self.settle(handle, name)

    @rule(handle=handles, name=names, really=st.integers(0, 9))
    def drop(self, handle: int, name: str, really: int) -> None:
        if really:
            return  # most tables live longer than a few steps
        with one_of(self.missing(name)):
            drop_table(self.services[handle], name)
            del self.tables[name]
        self.settle(handle, name)

    @rule(handle=handles)
    def reopen(self, handle: int) -> None:
        """Begin anew with a handle, unless somebody needs what it holds."""
        busy = [self.services[write.handle] for write in self.writes]
        busy += [reader.services for reader in self.readers]
        if self.services[handle] not in busy:
            self.services[handle].close()
            self.services[handle] = self.world.services()
            self.logs[handle].clear()
            self.changed.update(NAMES)
            self.look(handle)

    @rule(handle=handles)
    def look(self, handle: int) -> None:
        """Bring one handle up to date: the others may sleep through many commits."""
        for name in NAMES:
            self.check(handle, name)

    # --- schemas ------------------------------------------------------------------------------------------

    @rule(handle=handles, name=names, seed=seeds)
    def evolve(self, handle: int, name: str, seed: int) -> None:
        chance = random.Random(seed)
        table = Table(self.services[handle], self.log(handle, name))
        if name not in self.tables:
            with one_of({TableNotFoundError}):
                table.evolve()
            return
        model = self.tables[name]
        update = table.evolve()
        latest = model.schemas[-1]
        column = chance.choice(latest.fields)
        widened = WIDER.get(str(latest.select([column.name])).split(" ", 1)[1].split(" NOT")[0].lower())
        what = chance.choice(["add", "drop", "rename", "widen", "nothing"])
        if what == "add":
            update.add_column(f"n{len(model.schemas)}", chance.choice(TYPES))
        elif what == "drop" and len(latest.fields) > 1:
            update.drop_column(column.name)
        elif what == "rename":
            update.rename_column(column.name, f"r{len(model.schemas)}")
        elif what == "widen" and widened:
            update.widen_column(column.name, widened)
        expected = update.schema
        answer = update.commit()
        if expected != latest:
            model.schemas.append(expected)
        assert answer == len(model.schemas) - 1
        self.settle(handle, name)

    @rule(handle=handles, name=names, seed=seeds)
    def evolve_against_the_rules(self, handle: int, name: str, seed: int) -> None:
        chance = random.Random(seed)
        if name not in self.tables:
            return
        schemas = self.tables[name].schemas
        table = Table(self.services[handle], self.log(handle, name))
        latest = schemas[-1]
        what = chance.choice(["retype", "required", "mismatch"])
        if what == "retype":
            first = latest.fields[0]
            other = Primitive("string" if not _is(first, "string") else "date")
            changed = Schema((Field(first.id, first.name, other), *latest.fields[1:]))
            with one_of({IncompatibleSchemaError}):
                table.compare_and_evolve_schema(len(schemas) - 1, changed)
        elif what == "required":
            added = Field(10_000, "required", Primitive("int"), nullable=False)
            with one_of({IncompatibleSchemaError}):
                table.compare_and_evolve_schema(len(schemas) - 1, Schema((*latest.fields, added)))
        elif len(schemas) > 1:
            added = Field(10_000, "late", Primitive("int"))
            with one_of({SchemaMismatchError}):
                table.compare_and_evolve_schema(len(schemas) - 2, Schema((*latest.fields, added)))

    # --- parts --------------------------------------------------------------------------------------------

    @rule(handle=handles, name=names, count=st.sampled_from([0, 1, 2, 3, 8]), seed=seeds)
    def append(self, handle: int, name: str, count: int, seed: int) -> None:
        """Append parts, perhaps wrongly: `expected` and `length` are relative to the true upper."""
        chance = random.Random(seed)
        token = chance.choice([None, None, *"abcdefgh"])
        expected = chance.choice([None, None, 0, 0, -1])
        length = chance.choice([None, None, 1, 50, 0])
        older = chance.choice([0, 0, 1, 2, -1, EVOLVING])
        discard = chance.random() < 0.5
        services, log = self.services[handle], self.log(handle, name)
        model = self.tables.get(name)
        if model is None:
            with one_of({TableNotFoundError}), begin_write(services, log):
                pass
            return
        evolved = self.widened_by_a_column(model) if older == EVOLVING else None
        schema_id = len(model.schemas) if evolved else max(len(model.schemas) - 1 - older, 0)
        allowed: set[type[InstarError]] = set()
        if schema_id >= len(model.schemas) and not evolved:
            allowed.add(SchemaNotFoundError)
        schema = evolved or model.schemas[min(schema_id, len(model.schemas) - 1)]
        facts = part_facts(seed, schema, count, model.upper)
        now = set((evolved or model.schemas[-1]).field_ids())
        present = [leaf.id for _, leaf in schema.leaves()] if chance.random() < 0.5 else []
        if not now.issuperset(present) and not discard:
            allowed.add(WriterFencedError)
        if expected:
            allowed.add(UpperMismatchError)
        if length == 0:
            allowed.add(UsageError)
        repeated = token in model.tokens
        if repeated:  # which is noticed first of all, except that chunks are written even before
            allowed = allowed & {SchemaNotFoundError} if count > INLINE_PARTS else set()
        with one_of(allowed), begin_write(services, log) as writer:
            parts = put_parts(services, model.table_id, writer.write_id, facts)
            committed = writer.append(
                parts,
                schema_id,
                expected_upper=None if expected is None else model.upper + expected,
                upper=None if length is None else model.upper + length,
                token=token,
                present=present,
                discard=discard,
                evolved=evolved,
            )
            if repeated:
                assert committed.entry is None
            else:
                assert committed.entry is not None
                end = max(self.world.clock.now, model.upper) + 1 if length is None else model.upper + length
                self.appended(model, committed.entry.seqno, end, schema_id, parts)
                if evolved:
                    model.schemas.append(evolved)
                if token is not None:
                    model.tokens[token] = committed.entry.seqno
        self.settle(handle, name)

    @rule(name=names, writers=st.lists(handles, min_size=1, max_size=6), seed=seeds)
    def append_in_turns(self, name: str, writers: list[int], seed: int) -> None:
        """Append rightly, again and again, so that rollups come due."""
        model = self.tables.get(name)
        for number, handle in enumerate(writers if model else ()):
            assert model is not None
            services, log = self.services[handle], self.log(handle, name)
            with begin_write(services, log) as writer:
                facts = part_facts(seed + number, model.schemas[-1], 1 + number % 4, model.upper)
                parts = put_parts(services, model.table_id, writer.write_id, facts)
                committed = writer.append(parts, len(model.schemas) - 1)
            assert committed.entry is not None
            end = max(self.world.clock.now, model.upper) + 1
            self.appended(model, committed.entry.seqno, end, len(model.schemas) - 1, parts)
        self.changed.add(name)

    def widened_by_a_column(self, model: ModelTable) -> Schema:
        used = {field_id for schema in model.schemas for field_id in schema.field_ids()}
        added = Field(max(used) + 1, f"e{len(model.schemas)}", Primitive("bigint"))
        return Schema((*model.schemas[-1].fields, added))

    def appended(
        self,
        model: ModelTable,
        seqno: int,
        end: int,
        schema_id: int,
        parts: list[Part],
        lower: int | None = None,
    ) -> None:
        start = model.upper if lower is None else lower
        for ordinal, part in enumerate(parts):
            place = Place(seqno, ordinal)
            model.parts[place] = ModelPart(place, start, end, schema_id, part)
        model.upper = max(end, model.upper)

    @rule(handle=handles, name=names, count=st.sampled_from([1, 3]), seed=seeds)
    def begin_a_long_write(self, handle: int, name: str, count: int, seed: int) -> None:
        model = self.tables.get(name)
        if model is None or len(self.writes) > 2:
            return
        facts = part_facts(seed, model.schemas[-1], count, model.upper)
        holding = ExitStack()
        writer = holding.enter_context(begin_write(self.services[handle], self.log(handle, name)))
        parts = put_parts(self.services[handle], model.table_id, writer.write_id, facts)
        self.writes.append(
            Write(name, model.table_id, len(model.schemas) - 1, handle, writer, parts, holding)
        )

    @precondition(lambda self: self.writes)
    @rule()
    def end_a_long_write(self) -> None:
        write = self.writes.pop(0)
        model = self.tables.get(write.name)
        gone = model is None or model.table_id != write.table_id
        late = not gone and any(
            part.ts_min is not None and part.ts_min < self.tables[write.name].upper for part in write.parts
        )
        wrong: set[type[InstarError]] = (
            {TableNotFoundError} if gone else {UpperMismatchError} if late else set()
        )
        with one_of(wrong), write.holding:
            committed = write.writer.append(write.parts, write.schema_id)
            assert model is not None
            assert committed.entry is not None
            end = max(self.world.clock.now, model.upper) + 1
            self.appended(model, committed.entry.seqno, end, write.schema_id, write.parts)
        self.settle(write.handle, write.name)

    @precondition(lambda self: self.writes)
    @rule()
    def a_writer_dies(self) -> None:
        write = self.writes.pop()
        keeper = self.services[write.handle].leases
        for lease in [*keeper._held.values()]:
            if lease.write_id == write.writer.write_id:
                keeper._forget(lease)

    @rule(handle=handles, name=names, seed=seeds)
    def retract(self, handle: int, name: str, seed: int) -> None:
        """Take rows of some parts by position, few or many, seen now or as of some commits ago."""
        chance = random.Random(seed)
        model = self.tables.get(name)
        if model is None or not model.parts:
            return
        services, log = self.services[handle], self.log(handle, name)
        planned_at = log.load().seqno - chance.choice([0, 0, 0, 1, 3])
        chosen = chance.sample(sorted(model.parts), min(len(model.parts), chance.randint(1, 3)))
        positions = {
            place: BitMap(chance.sample(range(60_000), chance.choice([1, 3, 3_000])))
            - BitMap(model.retracted.get(place, ()))
            for place in chosen
        }
        taken = {place: own for place, own in positions.items() if own}
        clash = any(place.batch > planned_at or model.touched.get(place, 0) > planned_at for place in taken)
        if any(place.batch > planned_at for place in taken):
            return  # nobody takes rows of a part that they have not seen
        with one_of({ConflictError} if clash else set()), begin_write(services, log) as writer:
            committed = writer.append([], len(model.schemas) - 1, takes=Takes(positions, planned_at))
            assert committed.entry is not None
            end = max(self.world.clock.now, model.upper) + 1
            for place, own in taken.items():
                model.retracted.setdefault(place, {}).update(dict.fromkeys(own, end - 1))
                model.touched[place] = committed.entry.seqno
            self.appended(model, committed.entry.seqno, end, 0, [])
        self.settle(handle, name)

    @rule(handle=handles, name=names, seed=seeds)
    def plan_a_compaction(self, handle: int, name: str, seed: int) -> None:
        chance = random.Random(seed)
        model = self.tables.get(name)
        if model is None or not model.parts:
            return
        first = chance.randint(0, len(model.parts) - 1)
        removed = sorted(model.parts)[first : first + chance.randint(1, 8)]
        parts = [model.parts[place].part for place in removed]
        size = (sum(part.rows for part in parts), sum(part.size for part in parts))
        seqno = self.log(handle, name).load().seqno
        self.plans.append(Plan(name, model.table_id, seqno, removed, size, model.upper))
        if chance.random() < 0.5:
            self.apply_a_compaction(handle, chance.choice([0, 1, 3, 7]), seed + 1)

    @precondition(lambda self: self.plans)
    @rule(handle=handles, count=st.sampled_from([0, 1, 3, 7]), seed=seeds)
    def apply_a_compaction(self, handle: int, count: int, seed: int) -> None:
        chance = random.Random(seed)
        plan = self.plans.pop(chance.randint(0, len(self.plans) - 1))
        model = self.tables.get(plan.name)
        services, log = self.services[handle], self.log(handle, plan.name)
        if model is None:
            return
        same = model.table_id == plan.table_id and all(
            place in model.parts and model.touched.get(place, 0) <= plan.seqno for place in plan.removed
        )
        facts = part_facts(seed, model.schemas[-1], count, model.upper)
        schema_id = len(model.schemas) - 1
        with one_of(set() if same else {PartsGoneError}), begin_write(services, log) as writer:
            parts = put_parts(services, model.table_id, writer.write_id, facts)
            batch = NewBatch(0, plan.upper, schema_id, tuple(parts)) if parts else None
            committed = writer.replace(plan.seqno, plan.removed, plan.size, batch)
            assert committed.entry is not None
            for place in plan.removed:
                del model.parts[place]
                model.retracted.pop(place, None)
            self.appended(model, committed.entry.seqno, plan.upper, schema_id, parts, lower=0)
        self.settle(handle, plan.name)

    # --- the rest of the state ----------------------------------------------------------------------------

    @rule(handle=handles, name=names, delta=st.sampled_from([-5, 0, 1]))
    def advance_since(self, handle: int, name: str, delta: int) -> None:
        model = self.tables.get(name)
        log = self.log(handle, name)
        if model is None:
            with one_of({TableNotFoundError}):
                move_since(log, 0)
            return
        with one_of({UsageError} if delta > 0 else set()):
            move_since(log, model.upper + delta)
            model.since = max(model.since, model.upper + delta)
        self.settle(handle, name)

    @rule(handle=handles, name=names, value=st.sampled_from([None, "off", "audit", "on", "perhaps"]))
    def configure(self, handle: int, name: str, value: str | None) -> None:
        model = self.tables.get(name)
        wrong: set[type[InstarError]] = {UsageError} if value == "perhaps" else set()
        with one_of(self.missing(name) or wrong):
            Table(self.services[handle], self.log(handle, name)).configure(skipping=value)
            assert model is not None
            model.config = {} if value is None else {"skipping": value}
        self.settle(handle, name)

    # --- what must change nothing -------------------------------------------------------------------------

    @rule(handle=handles, name=names)
    def checkpoint(self, handle: int, name: str) -> None:
        with one_of(self.missing(name)):
            self.log(handle, name).checkpoint()
        self.settle(handle, name)

    @rule(handle=handles, dry_run=st.booleans())
    def vacuum(self, handle: int, dry_run: bool) -> None:
        services = self.services[handle]
        for name in NAMES:
            if services.consensus.head(name) is not None:
                vacuum_table(services, name, grace_ms=0, dry_run=dry_run)
        vacuum_store(services, grace_ms=0, dry_run=dry_run)
        self.changed.update(NAMES)

    @rule(handle=handles, name=names)
    def begin_to_read(self, handle: int, name: str) -> None:
        if name in self.tables and len(self.readers) < 3:
            pin = self.log(handle, name).pinned()
            self.readers.append(Reader(self.services[handle], pin, self.tables[name].rows()))

    @precondition(lambda self: self.readers)
    @rule()
    def end_reading(self) -> None:
        self.readers.pop(0).pin.release()

    @rule()
    def time_passes(self) -> None:
        for _ in range(3):
            self.world.clock.now += LEASE_MS // 2
            for services in self.world.opened:
                services.leases.renew()  # as their threads do in time

    # --- what must always hold ----------------------------------------------------------------------------

    @invariant()
    def whoever_looks_sees_what_the_model_says(self) -> None:
        for name in sorted(self.changed):
            self.check(OBSERVER, name)
        self.changed.clear()
        assert list_tables(self.services[OBSERVER]) == sorted(self.tables)

    def check(self, handle: int, name: str) -> None:
        log, model = self.log(handle, name), self.tables.get(name)
        state = log.refresh()
        if model is None:
            assert state is None or state.dropped
            return
        assert state is not None
        assert state.seqno >= self.seen.get((handle, name), 0), "the state went back"
        self.seen[handle, name] = state.seqno
        assert not state.dropped
        assert state.table_id == model.table_id
        assert list(state.history.schemas) == model.schemas
        assert state.history.latest == state.history.migration_type.current()
        assert (state.since, state.upper, state.options) == (model.since, model.upper, model.config)
        assert state.totals[:3] == model.totals
        assert {record.token: record.seqno for record in state.tokens} == model.tokens
        with log.pinned() as pinned:
            assert all_rows(self.services[handle], pinned) == model.rows()
            times = sorted({ts for own in model.retracted.values() for ts in own.values()})
            for as_of in times[:1] + times[-1:]:
                found = load_retractions(self.services[handle].chunks.sheets, pinned, as_of=as_of)
                expected = {
                    place: {position for position, ts in own.items() if ts <= as_of}
                    for place, own in model.retracted.items()
                }
                positions = found.positions(model.parts)
                assert {place: set(own) for place, own in positions.items()} == {
                    place: own for place, own in expected.items() if own
                }

    @invariant()
    def readers_find_all_that_they_hold(self) -> None:
        for reader in self.readers:
            assert find_missing(reader.services, reader.pin.state) == []
            assert all_rows(reader.services, reader.pin.state) == reader.rows

    def teardown(self) -> None:
        try:
            self.when_all_is_quiet_a_vacuum_leaves_only_what_is_live()
        finally:
            self.undo.close()

    def when_all_is_quiet_a_vacuum_leaves_only_what_is_live(self) -> None:
        while self.readers:
            self.end_reading()
        while self.writes:
            self.a_writer_dies()
        self.time_passes()
        self.vacuum(0, dry_run=False)
        for handle in range(HANDLES + 1):
            self.look(handle)
        services = self.services[0]
        left = {stored.key for stored in services.blob.list("tables")}
        for name, model in self.tables.items():
            root = table_root(model.table_id)
            state = TableLog(self.world.services(), name).load()
            mine = {key for key in left if key.startswith(f"{root}/")}
            left -= mine
            live = {part.part.key for part in model.parts.values()}
            chunks = {ref.key for ref in state.chunks} | {ref.key for ref in state.sheets}
            history = {key for key in mine if key.startswith(f"{root}/history/")}
            assert mine - live - chunks - history == {
                key for key in mine if key.startswith(f"{root}/rollups/{state.start.seqno:020d}")
            }
            assert live <= mine
        assert all("/rollups/" in key for key in left), "only what it takes to know that a table was dropped"


def _is(field: Field, name: str) -> bool:
    return isinstance(field.type, Primitive) and field.type.name == name


class DirectoryMachine(TablesMachine):
    """The same in a directory."""

    def make_blob(self) -> Blob:
        directory = tempfile.mkdtemp(prefix="instar-machine-")
        self.undo.callback(shutil.rmtree, directory)
        return DirectoryBlob(directory)


def walk(machine: TablesMachine, seed: int, steps: int) -> None:
    """Take far more steps than Hypothesis would, each after a look at all that must hold."""
    chance = random.Random(seed)

    def step() -> None:
        handle, name, number = chance.randrange(HANDLES), chance.choice(NAMES), chance.randrange(2**32)
        columns = chance.sample(TYPES, 2)
        moves: list[tuple[int, Callable[[], None]]] = [
            (8, lambda: machine.append(handle, name, chance.choice([0, 1, 2, 3, 8]), number)),
            (6, lambda: machine.append_in_turns(name, chance.choices(range(HANDLES), k=4), number)),
            (6, lambda: machine.plan_a_compaction(handle, name, number)),
            (6, lambda: machine.retract(handle, name, number)),
            (4, lambda: machine.evolve(handle, name, number)),
            (2, lambda: machine.evolve_against_the_rules(handle, name, number)),
            (2, lambda: machine.begin_a_long_write(handle, name, chance.choice([1, 3]), number)),
            (2, lambda: machine.advance_since(handle, name, chance.choice([-5, 0, 1]))),
            (2, lambda: machine.configure(handle, name, chance.choice([None, "off", "perhaps"]))),
            (2, lambda: machine.checkpoint(handle, name)),
            (3, lambda: machine.vacuum(handle, dry_run=chance.random() < 0.2)),
            (2, lambda: machine.begin_to_read(handle, name)),
            (2, machine.time_passes),
            (2, lambda: machine.look(handle)),
            (1, lambda: machine.reopen(handle)),
            (1, lambda: machine.drop(handle, name, chance.choice([0, 1, 1]))),
            (3 if len(machine.tables) < len(NAMES) else 0, lambda: machine.create(handle, name, columns)),
            (4 if machine.plans else 0, lambda: machine.apply_a_compaction(handle, number % 7, number)),
            (2 if machine.writes else 0, machine.end_a_long_write),
            (1 if machine.writes else 0, machine.a_writer_dies),
            (1 if machine.readers else 0, machine.end_reading),
        ]
        weights, actions = zip(*moves, strict=True)
        chance.choices(actions, weights)[0]()

    try:
        machine.begin(["int", "string"])
        for _ in range(steps):
            step()
            machine.whoever_looks_sees_what_the_model_says()
            machine.readers_find_all_that_they_hold()
    finally:
        machine.teardown()


@pytest.mark.parametrize("seed", range(4 * (settings.default.max_examples // 100 if settings.default else 1)))
def test_long_walks_end_where_the_model_does(seed: int) -> None:
    """Hundreds of steps see many generations of rollups, merged chunks and truncated logs."""
    walk(TablesMachine(), seed, 150)


def run(machine: type[TablesMachine], examples: int, steps: int) -> None:
    """Let the machine run, longer under the soak."""
    more = settings.default.max_examples // 100 if settings.default else 1
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples * more, stateful_step_count=steps)
    )


def test_tables_behave_like_the_model() -> None:
    """Whatever is done through whichever handle, every handle sees the same tables, and it is right."""
    run(TablesMachine, examples=30, steps=40)


def test_tables_in_a_directory_behave_like_the_model() -> None:
    """So they do on a disk."""
    run(DirectoryMachine, examples=4, steps=30)
