"""Reading a range of tables as one: their states, held together by one lease, and what each is read as of.

A write to several tables is seen in all of them or in none.
"""

from __future__ import annotations

import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from instar.errors import ConflictError, StorageDeniedError, UsageError
from instar.parts import TS
from instar.schema import Schema
from instar.stream.batches import REMEMBERED
from instar.stream.catalog import time_field
from instar.stream.routing import event_times
from instar.stream.stamp import find_stamp
from instar.stream.united import unite
from instar.stream.writing import finish_pending
from instar.table.read.reading import read_snapshot
from instar.table.read.rows import read_written
from instar.table.read.snapshot import Reader, check_fence, plan_snapshot, resolve_reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from instar.schema import Field
    from instar.state import TableState
    from instar.storage import Blob
    from instar.stream.catalog import Catalog, TableRecord
    from instar.stream.handle import StreamHandle
    from instar.stream.kinds import Kind
    from instar.table import Lease, LeaseKeeper, Services
    from instar.table.read.snapshot import SnapshotPlan

__all__ = [
    "Cut",
    "HeldTable",
    "HeldTables",
    "Mixed",
    "Span",
    "find_cut",
    "hold_tables",
    "load_states",
    "plan_new",
    "plan_tables",
    "read_mixed",
    "read_tables",
    "records_in",
    "stream_reader",
]

_READERS: Final = 16
_ATTEMPTS: Final = 5


class Span(NamedTuple):
    """A range of event times, in microseconds; the end is not part of it."""

    start: int | None = None
    end: int | None = None


class HeldTable(NamedTuple):
    """A table as it was when the range was read; with `as_of`, only rows up to that time are meant."""

    record: TableRecord
    state: TableState
    as_of: int | None = None


class HeldTables:
    """Tables that no vacuum touches while somebody has this."""

    def __init__(
        self, catalog: Catalog, tables: Sequence[HeldTable], leases: LeaseKeeper, lease: Lease
    ) -> None:
        self.catalog = catalog
        self.tables = tables
        self.release = weakref.finalize(self, leases.release, lease)
        self._leases = leases
        self._lease = lease

    def lend(self, duration_ms: int) -> Lease:
        """Hold the tables for other processes too, for so long."""
        return self._leases.lend(self._lease, duration_ms)


def records_in(catalog: Catalog, kind: Kind, span: Span) -> list[TableRecord]:
    """Return the tables of a kind that may hold rows of a range, the oldest first.

    The table for rows without a place is one of them if there is no range.
    """
    period = catalog.layout.period(kind)
    found = []
    for record in catalog.tables_of([kind]):
        if record.start is None:
            if span == Span():
                found.append(record)
        elif (span.end is None or record.start < span.end) and (
            span.start is None or period.end_of(record.start) > span.start
        ):
            found.append(record)
    return found


class Cut(NamedTuple):
    """A range that begins or ends within a table, and the field that its rows are filtered by."""

    span: Span
    field: Field


def find_cut(catalog: Catalog, kind: Kind, span: Span) -> Cut | None:
    """Tell whether rows have to be filtered by their time, because a range does not end where tables do."""
    period = catalog.layout.period(kind)
    if not any(edge is not None and period.start_of(edge) != edge for edge in span):
        return None
    field_id = time_field(catalog, kind)
    return Cut(span, next(field for field in catalog.schema.fields if field.id == field_id))


def read_tables(
    services: Services, plans: Iterable[SnapshotPlan], schema: Schema, cut: Cut | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of tables under one schema, those of a range only."""
    if cut is None:
        for plan in plans:
            yield from read_snapshot(services, plan)
        return
    has_time = any(field.id == cut.field.id for field in schema.fields)
    wide = schema if has_time else Schema((*schema.fields, cut.field))
    at = next(at for at, field in enumerate(wide.fields) if field.id == cut.field.id)
    shown = list(range(len(schema.fields)))
    for plan in plans:
        for batch in read_snapshot(services, plan._replace(reader=plan.reader._replace(schema=wide))):
            times, there = event_times(batch.column(at))
            if cut.span.start is not None:
                there &= times >= cut.span.start
            if cut.span.end is not None:
                there &= times < cut.span.end
            yield batch.filter(pa.array(there)).select(shown)


def hold_tables(handle: StreamHandle, kind: Kind, span: Span) -> HeldTables:
    """Load the states of the tables of a range, so that they agree about every write."""
    services = handle.services
    for _ in range(_ATTEMPTS):
        with ExitStack() as undo:
            number = _finished(handle)
            catalog = handle.load()
            lease = services.leases.take(catalog.stream_id, 0)
            undo.callback(services.leases.release, lease)
            states = load_states(handle, records_in(catalog, kind, span))
            if any(_is_ahead(state, catalog) for _, state in states):
                continue  # the stream evolved meanwhile: a reader of its latest schema is not fenced
            tables = _agreeing(handle, states, number)
            if tables is None:
                continue  # more writes came meanwhile than are remembered
            undo.pop_all()
            return HeldTables(catalog, tables, services.leases, lease)
    raise ConflictError(
        f"cannot read stream `{handle.name}`: each time that its tables were looked at, its schema changed "
        f"or more than {REMEMBERED} writes came. Read a shorter range, or try again."
    )


def _finished(handle: StreamHandle) -> int:
    """Finish what others left unfinished, and return the number of the first write to come."""
    try:
        return finish_pending(handle)
    except StorageDeniedError:  # who may only read leaves out what is not finished
        batches = handle.batches.known
        if batches is None:
            return 0
        return min((number for number, _ in batches.pending.values()), default=batches.number)


def load_states(handle: StreamHandle, records: Iterable[TableRecord]) -> list[tuple[TableRecord, TableState]]:
    """Load the states of tables side by side; those that were dropped, or never created, are left out.

    So is a table of somebody else that stands where the stream's own would be: a write has said so.
    """
    listed = list(records)
    catalog = handle.known()
    with ThreadPoolExecutor(_READERS) as pool:
        states = list(pool.map(lambda record: handle.newest(record.name), listed))
    return [
        (record, state)
        for record, state in zip(listed, states, strict=True)
        if state is not None and _is_own(catalog, state)
    ]


def _is_ahead(state: TableState, catalog: Catalog) -> bool:
    stamp = find_stamp(state)
    return stamp is not None and stamp.schema_id > catalog.schema_id


def _is_own(catalog: Catalog, state: TableState) -> bool:
    stamp = find_stamp(state)
    return stamp is not None and stamp.stream_id == catalog.stream_id


def _agreeing(
    handle: StreamHandle, states: Sequence[tuple[TableRecord, TableState]], number: int
) -> list[HeldTable] | None:
    """Leave out of every table the writes that came after the first look: some may lack them yet."""
    batches = handle.batches.refresh()
    late: dict[str, list[str]] = {}
    if batches is not None:
        if batches.number - number >= REMEMBERED:
            return None
        for outcome in batches.since(number):
            for name in outcome.tables:
                late.setdefault(name, []).append(outcome.token)
    held = []
    for record, state in states:
        tokens = set(late.get(record.name, ()))
        times = [known.ts for known in state.tokens if known.token in tokens] if tokens else []
        if times and min(times) - 1 < state.since:
            return None
        held.append(HeldTable(record, state, min(times) - 1 if times else None))
    return held


def stream_reader(catalog: Catalog, schema: Schema | str | None, columns: Sequence[str] | None) -> Schema:
    """Return the schema that a range is read under: the stream's latest, that of a version, or one given."""
    if schema is None:
        chosen = catalog.schema
    elif isinstance(schema, str):
        chosen = catalog.load_version(schema).schema
    else:
        chosen = schema
    return chosen if columns is None else chosen.select(columns)


class Mixed(NamedTuple):
    """Parts that hold rows up to a time and after it, because they were merged: only the later are meant."""

    plan: SnapshotPlan
    since: int


def plan_tables(handle: StreamHandle, held: HeldTables, schema: Schema) -> list[SnapshotPlan]:
    """Plan the rows of all tables under one schema; a table that cannot honour it fences the reader.

    Most tables are planned as one, the first.
    """
    return plan_new(handle, held.catalog, held.tables, schema, {})[0]


def plan_new(
    handle: StreamHandle,
    catalog: Catalog,
    tables: Sequence[HeldTable],
    schema: Schema,
    after: Mapping[str, int],
) -> tuple[list[SnapshotPlan], list[Mixed]]:
    """Plan the rows of some tables that are later than a time, which `after` gives by the id of a table."""
    chunks = handle.services.chunks
    honoured: set[tuple[Schema, ...]] = set()
    for table in tables:
        if table.state.history.schemas not in honoured:
            check_fence(table.state, resolve_reader(table.state, schema, None))
            honoured.add(table.state.history.schemas)
    united, alone = unite(catalog, tables, after)
    plans = [plan_snapshot(chunks, united, Reader(schema, schema, None), None)]
    mixed = []
    for table in alone:
        plan = plan_snapshot(chunks, table.state, resolve_reader(table.state, schema, None), table.as_of)
        since = after.get(table.state.table_id, -1)
        if since >= 0:
            plan, both = _later(plan, since)
            mixed += [both] if both.plan.merge else []
        plans.append(plan)
    return plans, mixed


def _later(plan: SnapshotPlan, since: int) -> tuple[SnapshotPlan, Mixed]:
    """Return what is later than a time: whole parts, and parts that hold earlier rows too."""
    state = plan.state
    if plan.merge or state.totals.retracted or since < state.since:
        raise UsageError(
            f"rows of `{state.name}` were retracted, or its times merged, and what is new in it cannot be "
            "told from what was copied before. Drop the tables that were made from it, and copy it again."
        )
    earliest, latest, _ = plan.scan.times
    whole = plan._replace(scan=plan.scan.keep(earliest > since))
    both = plan.scan.keep((earliest <= since) & (latest > since))
    return whole, Mixed(plan._replace(scan=both.keep(np.zeros(len(both), bool)), merge=both), since)


def read_mixed(blob: Blob, mixed: Iterable[Mixed], schema: Schema) -> Iterator[pa.RecordBatch]:
    """Yield the later rows of parts that hold earlier ones too."""
    for plan, since in mixed:
        for written in plan.merge.written(plan.state.history):
            for batch in read_written(blob, written, schema, updates=True):
                later = batch.filter(pc.greater(batch.column(TS), since))
                yield later.select(range(len(schema.fields)))
