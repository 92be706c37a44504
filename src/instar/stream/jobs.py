"""Jobs that fill tables from other tables of a stream: repartitioned, end-of-day and archive ones.

A job reads what is new since its last run and writes it to the tables that it belongs to. Its progress
is recorded together with its rows, so no row is lost or copied twice, wherever it
is killed. The caller decides how rows are read and stored, on Spark or in process.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from instar.errors import TableNotFoundError, UsageError
from instar.state.commands import drop
from instar.stream.batches import Batches, Move
from instar.stream.catalog import REPARTITION_BY
from instar.stream.commands import check_time_column, forget_table, set_setting
from instar.stream.handle import RowsOf
from instar.stream.kinds import Kind
from instar.stream.reading import (
    HeldTables,
    Mixed,
    Span,
    hold_tables,
    plan_new,
    read_mixed,
    read_tables,
    records_in,
)
from instar.stream.routing import route
from instar.stream.stamp import load_stamp
from instar.stream.writing import (
    StreamCommit,
    commit_items,
    finish_pending,
    hold_target,
    migrated,
    run_side_by_side,
    time_position,
)
from instar.table.write.store import store_parts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from instar.schema import Schema
    from instar.state import Step, TableState
    from instar.stream.batches import Item
    from instar.stream.catalog import TableRecord
    from instar.stream.handle import StreamHandle
    from instar.stream.period import Period
    from instar.stream.routing import TablePlace
    from instar.stream.version import Version
    from instar.table.read.snapshot import SnapshotPlan

__all__ = [
    "CopyPlan",
    "Copying",
    "archive_tables",
    "close_day",
    "copied_up_to",
    "copy_in_process",
    "repartition_tables",
]

_NEVER: Final = -1
_JOBS: Final = {"repartition": Kind.REPARTITIONED, "eod": Kind.EOD, "archive": Kind.ARCHIVE}
FOREVER: Final = 2**62
"""A time that every row comes before: jobs give every row that has a time its place."""


class CopyPlan(NamedTuple):
    """What a job copies: rows of some tables, under one schema, to tables of a kind by a column."""

    held: HeldTables
    plans: Sequence[SnapshotPlan]
    mixed: Sequence[Mixed]
    schema: Schema
    kind: Kind
    by: int
    rows: RowsOf

    @property
    def periods(self) -> Mapping[Kind, Period]:
        """The kind that rows go to, with its period."""
        return {self.kind: self.held.catalog.layout.period(self.kind)}


Copying = Callable[["StreamHandle", CopyPlan, ExitStack], tuple["list[Item]", int]]
"""Reads the rows of a plan and stores them: returns what each table gets, and how many rows there were."""


def copy_in_process(handle: StreamHandle, plan: CopyPlan, held: ExitStack) -> tuple[list[Item], int]:
    """Copy rows without an engine: for what fits in memory."""
    at = time_position(plan.schema, plan.by)
    routed: dict[TablePlace, list[pa.RecordBatch]] = {}
    count = 0
    blob = handle.services.blob
    whole = read_tables(handle.services, plan.plans, plan.schema, None)
    for batch in chain(whole, read_mixed(blob, plan.mixed, plan.schema)):
        count += batch.num_rows
        for place, rows in route(batch, at, plan.periods, FOREVER):
            routed.setdefault(place, []).append(rows)
    handle.announce(routed)

    def store(place: TablePlace) -> Item:
        written = hold_target(handle, held, place, plan.rows)
        migration = migrated(routed[place], plan.schema, written.target.schema)
        return written.item(list(store_parts(written.plan, migration, "0")))

    return (run_side_by_side(store, list(routed)) if routed else []), count


def repartition_tables(handle: StreamHandle, by: str, copy: Copying) -> StreamCommit:
    """Copy what is new in regular tables to the tables of another time."""
    catalog = handle.load()
    catalog.layout.period(Kind.REPARTITIONED)
    field = check_time_column(catalog.schema, by)
    known = catalog.settings.get(REPARTITION_BY)
    if known is not None and int(known) != field.id:
        name = next(other.name for other in catalog.schema.fields if other.id == int(known))
        raise UsageError(
            f"the tables of `{handle.name}` are repartitioned by `{name}` already, not by `{by}`"
        )
    handle.commit(lambda found: set_setting(found, REPARTITION_BY, str(field.id)))
    return _copy_new(handle, "repartition", Span(), field.id, copy)


def close_day(handle: StreamHandle, day: int, copy: Copying) -> StreamCommit:
    """Copy what is new in the regular tables of a day to its end-of-day table."""
    catalog = handle.load()
    period = catalog.layout.period(Kind.EOD)
    if period.start_of(day) != day:
        raise UsageError(f"an end-of-day table of `{handle.name}` holds {period}: name the beginning of one")
    return _copy_new(handle, "eod", Span(day, period.end_of(day)), catalog.time, copy)


def archive_tables(handle: StreamHandle, before: int, copy: Copying, *, drop_days: bool) -> StreamCommit:
    """Copy what is new in the regular tables that end by a time to archive tables; then drop them, or not."""
    catalog = handle.load()
    catalog.layout.period(Kind.ARCHIVE)
    period = catalog.layout.period(Kind.REGULAR)
    span = Span(None, period.start_of(before))
    done = _copy_new(handle, "archive", span, catalog.time, copy)
    if not drop_days:
        return done
    dropped: list[str] = []
    kept: list[str] = []
    for record in records_in(handle.load(), Kind.REGULAR, span):
        (dropped if _drop_archived(handle, record) else kept).append(record.name)
    return done._replace(dropped=tuple(dropped), kept=tuple(kept))


def _copy_new(handle: StreamHandle, job: str, span: Span, by: int, copy: Copying) -> StreamCommit:
    held = hold_tables(handle, Kind.REGULAR, span)
    try:
        return _copy_held(handle, held, job, by, copy)
    finally:
        held.release()


def _copy_held(handle: StreamHandle, held: HeldTables, job: str, by: int, copy: Copying) -> StreamCommit:
    batches = handle.batches.known or Batches()
    catalog = held.catalog
    moved = []
    new = []
    after: dict[str, int] = {}
    versions: set[Version] = set()
    for table in held.tables:
        table_id = table.state.table_id
        seen = batches.cursors.get(_cursor(job, table_id), _NEVER)
        upto = table.state.upper - 1 if table.as_of is None else table.as_of
        if upto > seen:
            after[table_id] = seen
            new.append(table)
            versions.update(load_stamp(table.state, catalog).versions)
            moved.append(Move(_cursor(job, table_id), seen, upto))
    if not moved:
        return StreamCommit(catalog.max_version, 0, ())
    rows = RowsOf(tuple(sorted(versions)), catalog.schema_id)
    plans, mixed = plan_new(handle, catalog, new, catalog.schema, after)
    plan = CopyPlan(held, plans, mixed, catalog.schema, _JOBS[job], by, rows)
    with ExitStack() as leases:
        items, count = copy(handle, plan, leases)
        return commit_items(handle, catalog.max_version, items, count, None, moved)


def _drop_archived(handle: StreamHandle, record: TableRecord) -> bool:
    """Drop a table if every kind of table that jobs fill has all of its rows; otherwise it stays.

    A job that never ran counts too: it could not find the rows any more.
    """
    name, table_id = record.name, record.table_id
    finish_pending(handle)
    periods = handle.known().layout.periods
    cursors = (handle.batches.known or Batches()).cursors
    copied = [cursors.get(_cursor(job, table_id), _NEVER) for job, kind in _JOBS.items() if kind in periods]
    log, _ = handle.find_table(name)

    def decide(state: TableState | None) -> tuple[Step, ...]:
        if state is None or state.dropped or state.table_id != table_id or state.upper - 1 > min(copied):
            return ()
        return drop(state)

    try:
        dropped = log.commit(decide).entry is not None
    except TableNotFoundError:
        return True
    if dropped:
        handle.forget(name)
        handle.commit(lambda found: forget_table(found, name, table_id))
    return dropped


def copied_up_to(batches: Batches, table_id: str) -> list[int]:
    """Return the times up to which jobs have copied a table, for those that have begun with it."""
    cursors = (batches.cursors.get(_cursor(job, table_id)) for job in _JOBS)
    return [time for time in cursors if time is not None]


def _cursor(job: str, table_id: str) -> str:
    return f"{job} of {table_id}"
