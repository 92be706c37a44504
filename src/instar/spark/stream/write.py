"""Writing frames to the tables of a stream: executors route rows and store parts for many tables at once.

Which tables that will be is found out first, from the time column alone, because a table has to be there
before its parts are. The driver commits once, to all tables or to none.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import pyarrow as pa
from pyspark import TaskContext

from instar.errors import DataMismatchError, TableNotFoundError, UsageError
from instar.parts import Conformer
from instar.schema import Schema, plan_migration
from instar.spark.stream.read import mixed_frame, range_frame
from instar.spark.workers import collect, map_in_arrow
from instar.spark.write.incoming import arrow_frame, incoming_schema
from instar.spark.write.store import Misfit
from instar.stream.handle import RowsOf
from instar.stream.jobs import FOREVER
from instar.stream.kinds import Kind
from instar.stream.routing import TablePlace, horizon, route
from instar.stream.version import as_version
from instar.stream.writing import (
    Written,
    as_commit,
    commit_items,
    find_done,
    hold_target,
    routed_kinds,
    run_side_by_side,
    time_position,
)
from instar.table.write.rows import ATTEMPTS
from instar.table.write.store import StoredPart, StoringPlan, store_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from instar.stream.batches import Item
    from instar.stream.catalog import VersionRecord
    from instar.stream.handle import StreamHandle
    from instar.stream.jobs import CopyPlan
    from instar.stream.period import Period
    from instar.stream.writing import StreamCommit

__all__ = [
    "Incoming",
    "Routing",
    "copy_on_spark",
    "find_places",
    "query_id",
    "routing_of",
    "write_incoming",
    "write_stream_frame",
]

_BUFFERED_BYTES: Final = 128 * 1024 * 1024
"""What a task keeps in memory of all its tables together."""
_QUERY: Final = "sql.streaming.queryId"
_PLACES: Final = "kind string, start bigint"
_STORED: Final = "kind string, start bigint, rows bigint, stored binary, misfit binary, unplanned boolean"


class Routing(NamedTuple):
    """How rows find their tables; it travels to executors."""

    schema: Schema
    time: int
    periods: Mapping[Kind, Period]
    latest: int


class Incoming(NamedTuple):
    """Rows on their way into a stream."""

    frame: DataFrame
    unpack: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    """Makes rows of the frame's batches, on executors."""
    places: Callable[[], set[TablePlace]]
    """Finds out which tables they belong to."""


def write_stream_frame(
    handle: StreamHandle, record: VersionRecord, frame: DataFrame, token: str | None
) -> StreamCommit:
    """Write a frame, whose rows are of one version, to the tables that they belong to."""
    Conformer(incoming_schema(frame.schema), record.schema)  # what types alone can tell, before any task
    routing = routing_of(handle, record)
    return write_incoming(handle, record, _of_frame(frame, routing), routing, token)


def write_incoming(
    handle: StreamHandle, record: VersionRecord, incoming: Incoming, routing: Routing, token: str | None
) -> StreamCommit:
    """Write rows of one version to the tables that they belong to."""
    done = None if token is None else find_done(handle, token)
    if done is not None:
        return as_commit(done)
    for attempt in range(ATTEMPTS):
        try:
            with ExitStack() as held:
                items, count = _store(handle, incoming, routing, RowsOf.version(record), held)
                return commit_items(handle, as_version(record.version), items, count, token)
        except TableNotFoundError as gone:  # dropped between two looks at it
            handle.forget(gone.name)
            if attempt + 1 == ATTEMPTS:
                raise
    raise AssertionError("the loop returns or raises")


def routing_of(handle: StreamHandle, record: VersionRecord) -> Routing:
    """Return how rows of a version find their tables, as of now."""
    catalog = handle.known()
    return Routing(
        record.schema,
        time_position(record.schema, catalog.time),
        routed_kinds(catalog.layout.periods),
        horizon(handle.services.clock()),
    )


def query_id(batch: DataFrame) -> str:
    """Return the id of the streaming query that a micro-batch belongs to; a checkpoint keeps it."""
    found = batch.sparkSession.sparkContext.getLocalProperty(_QUERY)
    if found is None:
        raise UsageError("this frame is no micro-batch of a streaming query: use stream.write")
    return found


def copy_on_spark(
    spark: SparkSession, handle: StreamHandle, plan: CopyPlan, held: ExitStack
) -> tuple[list[Item], int]:
    """Copy the rows of a job's plan on executors."""
    frame = range_frame(spark, handle.services, plan.held, plan.plans, plan.schema.fields, None)
    for mixed in plan.mixed:
        frame = frame.unionAll(mixed_frame(spark, handle.services, plan.held, mixed, plan.schema.fields))
    routing = Routing(plan.schema, time_position(plan.schema, plan.by), plan.periods, FOREVER)
    return _store(handle, _of_frame(frame, routing), routing, plan.rows, held)


def _store(
    handle: StreamHandle, incoming: Incoming, routing: Routing, rows: RowsOf, held: ExitStack
) -> tuple[list[Item], int]:
    """Store rows for the tables that they belong to."""
    writing: dict[TablePlace, Written] = {}
    wanted = incoming.places()
    while True:
        handle.announce(wanted)
        new = sorted(wanted.difference(writing), key=str)
        found = run_side_by_side(lambda place: hold_target(handle, held, place, rows), new) if new else []
        writing |= dict(zip(new, found, strict=True))
        plans = {place: written.plan for place, written in writing.items()}
        stored, count, unplanned = _run(incoming, routing, plans)
        if not unplanned:
            break
        wanted = unplanned.union(writing)  # the frame gave other times than when it was looked at first
    return [writing[place].item(parts) for place, parts in stored.items()], count


def _of_frame(frame: DataFrame, routing: Routing) -> Incoming:
    """Take rows as a frame has them."""
    names = frame.columns

    def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (batch.rename_columns(names) for batch in batches)

    numbered = arrow_frame(frame).toDF(*(f"c{at}" for at in range(len(names))))
    return Incoming(numbered, unpack, lambda: _places(frame, routing))


def _places(frame: DataFrame, routing: Routing) -> set[TablePlace]:
    """Find out which tables the rows of a frame belong to, from their times alone."""
    name = _time_column(frame.columns, routing)
    if name is None:
        return {TablePlace(next(iter(routing.periods)), None)}

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        seen: set[TablePlace] = set()
        for batch in batches:
            seen |= find_places(batch.rename_columns([name]), routing)
        yield pa.RecordBatch.from_pydict(
            {
                "kind": pa.array([place.kind.value for place in seen], pa.string()),
                "start": pa.array([place.start for place in seen], pa.int64()),
            }
        )

    times = frame.select(frame[f"`{name}`"].alias("t"))
    found = collect(map_in_arrow(times, run, _PLACES).distinct())
    return {TablePlace(Kind(row.kind), row.start) for row in found}


def find_places(batch: pa.RecordBatch, routing: Routing) -> set[TablePlace]:
    """Find out which tables some rows belong to; it needs no more than the column of their times."""
    name = _time_column(batch.schema.names, routing)
    if name is None:
        return {place for place, _ in route(batch, -1, routing.periods, routing.latest)}
    alone = batch.select([name])
    field = routing.schema.fields[routing.time]
    try:
        conformed = Conformer(alone.schema, Schema((field,))).apply(alone)
    except DataMismatchError:
        return set()  # storing the rows will say so
    return {place for place, _ in route(conformed, 0, routing.periods, routing.latest)}


def _time_column(names: Sequence[str], routing: Routing) -> str | None:
    """Find which of some columns rows are routed by."""
    if routing.time < 0:
        return None
    wanted = routing.schema.fields[routing.time].name.lower()
    return next((name for name in names if name.lower() == wanted), None)


def _run(
    incoming: Incoming, routing: Routing, plans: Mapping[TablePlace, StoringPlan]
) -> tuple[dict[TablePlace, list[StoredPart]], int, set[TablePlace]]:
    """Store rows on executors; answer with parts by table, and tables not expected."""
    unpack = incoming.unpack

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _Task(routing, plans).store(unpack(batches))

    rows = collect(map_in_arrow(incoming.frame, run, _STORED))
    misfit = next((row.misfit for row in rows if row.misfit is not None), None)
    if misfit is not None:
        raise msgspec.msgpack.decode(bytes(misfit), type=Misfit).error()
    stored: dict[TablePlace, list[StoredPart]] = defaultdict(list)
    unplanned: set[TablePlace] = set()
    count = 0
    for row in rows:
        count += row.rows or 0
        if row.kind is not None:
            place = TablePlace(Kind(row.kind), row.start)
            if row.unplanned:
                unplanned.add(place)
            else:
                stored[place].append(msgspec.msgpack.decode(bytes(row.stored), type=StoredPart))
    return stored, count, unplanned


class _Task:
    """One task: routes its rows, keeps some of each table in memory, and stores the largest when it must."""

    def __init__(self, routing: Routing, plans: Mapping[TablePlace, StoringPlan]) -> None:
        self._routing = routing
        self._plans = plans
        self._kept: dict[TablePlace, list[pa.RecordBatch]] = {}
        self._bytes: dict[TablePlace, int] = {}
        self._flushes = 0
        context = TaskContext.get()
        self._name = "0" if context is None else f"{context.partitionId()}-{context.taskAttemptId()}"

    def store(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Store rows; a row that does not fit is an answer, for an error would be retried."""
        conformer: Conformer | None = None
        done = 0
        schema, time, periods, latest = self._routing
        try:
            for batch in batches:
                conformer = conformer or Conformer(batch.schema, schema)
                conformed = conformer.apply(batch, first_row=done)
                done += batch.num_rows
                for place, rows in route(conformed, time, periods, latest):
                    yield from self._keep(place, rows)
            for place in list(self._kept):
                yield from self._flush(place)
        except DataMismatchError as error:
            yield _answer(misfit=msgspec.msgpack.encode(Misfit.of(error)))
        yield _answer(rows=done)

    def _keep(self, place: TablePlace, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        plan = self._plans.get(place)
        if plan is None:
            yield _answer(place, unplanned=True)
            return
        migrated = plan_migration(self._routing.schema, plan.schema).apply(rows)
        self._kept.setdefault(place, []).append(migrated)
        self._bytes[place] = self._bytes.get(place, 0) + migrated.nbytes
        if sum(self._bytes.values()) > _BUFFERED_BYTES:
            yield from self._flush(max(self._bytes, key=self._bytes.__getitem__))

    def _flush(self, place: TablePlace) -> Iterator[pa.RecordBatch]:
        batches, _ = self._kept.pop(place), self._bytes.pop(place)
        self._flushes += 1
        task = f"{self._name}-{self._flushes}"
        for stored in store_parts(self._plans[place], batches, task):
            yield _answer(place, stored=msgspec.msgpack.encode(stored))


def _answer(
    place: TablePlace | None = None,
    *,
    rows: int | None = None,
    stored: bytes | None = None,
    misfit: bytes | None = None,
    unplanned: bool = False,
) -> pa.RecordBatch:
    values: Sequence[tuple[str, Any, pa.DataType]] = (
        ("kind", None if place is None else place.kind.value, pa.string()),
        ("start", None if place is None else place.start, pa.int64()),
        ("rows", rows, pa.int64()),
        ("stored", stored, pa.binary()),
        ("misfit", misfit, pa.binary()),
        ("unplanned", unplanned, pa.bool_()),
    )
    return pa.RecordBatch.from_pydict({name: pa.array([value], type_) for name, value, type_ in values})
