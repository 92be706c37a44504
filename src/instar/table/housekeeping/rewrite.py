"""Rewriting parts in process: their rows in one order, under one schema, a bounded number of them in memory.

Long sorted runs are merged batch by batch. Everything else is sorted first, in pieces that fit in memory; if
there are several, they wait on the local disk.
"""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack
from itertools import chain, groupby
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from instar.parts import (
    DIFF,
    TS,
    RowOrder,
    cluster_rows,
    clustered_run,
    merge_runs,
    sample_rows,
    settle_runs,
    spill_runs,
    write_parts,
)
from instar.parts.spill import SORTED_BYTES
from instar.parts.write import ROW_GROUP_BYTES
from instar.schema import arrow_schema, needs_consolidation
from instar.table.layout import part_key
from instar.table.read.locate_keys import key_schema
from instar.table.read.rows import read_written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from instar.schema import Schema
    from instar.state import Part, Place
    from instar.table.log.part_set import WrittenPart
    from instar.table.write.store import StoringPlan

__all__ = ["Input", "Output", "Taken", "Work", "carry_over", "rewrite_parts"]

GONE: Final = "_gone"
"""When a row is retracted: a column that travels with the rows and is not written."""

STREAMED_BYTES: Final = 16 * 1024 * 1024
"""Runs of files that are smaller together are read whole and sorted with the others."""
STREAMS: Final = SORTED_BYTES // ROW_GROUP_BYTES
"""How many runs are merged as they are: a row group of each is in memory. All others are sorted again."""

Taken = tuple[int, BitMap]
"""A time, and the positions of a part that were retracted then."""


class Input(NamedTuple):
    """A part to rewrite: how to read it, whether its rows are in order, and which of them go when."""

    place: Place
    run: tuple[int, int]
    written: WrittenPart
    ordered: bool
    gone: tuple[Taken, ...] = ()


class Work(NamedTuple):
    """What a process must know to rewrite parts; it is sent to executors."""

    inputs: tuple[Input, ...]
    since: int
    """Rows that were retracted up to this time are left out, and earlier times become this time."""
    storing: StoringPlan


class Output(NamedTuple):
    """A part that was written, and which of its rows were retracted when."""

    part: Part
    gone: tuple[Taken, ...] = ()


def rewrite_parts(work: Work, task: str = "0") -> Iterator[Output]:
    """Store the rows of the inputs as new parts: sorted, if the table has an order.

    What is retracted by value among them becomes rows that are gone, by position, or nothing at all.

    `task` tells the attempts apart, where the same work may be done twice.
    """
    # What nobody can read any more is not opened: an adopted file may even be missing then.
    work = work._replace(inputs=tuple(item for item in work.inputs if not _is_gone(item, work.since)))
    if not work.inputs:
        return
    storing = work.storing
    by_value = any(item.written.part.diff_min < 0 for item in work.inputs)
    with ExitStack() as spilled:
        if by_value or (storing.order_by and not storing.curve):
            tables = merge_runs(_sorted_runs(work, spilled), storing.schema, storing.order_by)
            if by_value:
                tables = settle_runs(tables, storing.schema, GONE)
            batches = chain.from_iterable(table.to_batches() for table in tables)
        else:
            batches = chain.from_iterable(_read(work, item) for item in sorted(work.inputs))
        if storing.curve:
            sample = _sample(work)
            rows = cluster_rows(
                batches, storing.schema, storing.curve, sample=sample, most_bytes=SORTED_BYTES
            )
            yield from _store(storing, rows, RowOrder.NONE, task, clustered_run(storing.cluster_by))
        else:
            order = RowOrder.SORTED if storing.order_by else RowOrder.NONE
            yield from _store(storing, batches, order, task)


def _is_gone(item: Input, since: int) -> bool:
    """Whether all rows of a part were retracted up to a time."""
    return sum(len(positions) for ts, positions in item.gone if ts <= since) == item.written.part.rows


def carry_over(work: Work, late: Mapping[Place, Sequence[Taken]], task: str) -> list[Part]:
    """Store rows of the inputs that were retracted meanwhile, with a diff of -1, and return their parts."""
    inputs = [item._replace(gone=tuple(late[item.place])) for item in work.inputs if item.place in late]
    everything = work._replace(since=-1)
    rows = (_retracted(batch) for item in inputs for batch in _read(everything, item))
    order = RowOrder.SORT if work.storing.order_by else RowOrder.NONE
    return [output.part for output in _store(work.storing, rows, order, task)]


def _retracted(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn rows that are gone into their retractions."""
    rows = batch.filter(batch.column(GONE).is_valid())
    rows = rows.set_column(rows.schema.get_field_index(TS), TS, rows.column(GONE))
    rows = rows.set_column(rows.schema.get_field_index(DIFF), DIFF, pc.negate(rows.column(DIFF)))
    return rows.set_column(rows.schema.get_field_index(GONE), GONE, pa.nulls(rows.num_rows, pa.int64()))


def _sorted_runs(work: Work, spilled: ExitStack) -> list[Iterable[pa.RecordBatch]]:
    """Return the rows of the inputs as sorted runs."""
    storing = work.storing
    by_run = sorted(work.inputs, key=lambda item: (item.run, item.place))
    runs = [list(group) for _, group in groupby(by_run, key=lambda item: item.run)]
    runs.sort(key=_size, reverse=True)
    large = [run for run in runs if _size(run) >= STREAMED_BYTES and _stays_in_order(run, storing.schema)]
    streamed = large[:STREAMS]
    others = [item for run in runs if run not in streamed for item in run]
    rows = chain.from_iterable(_read(work, item) for item in sorted(others))
    return [
        *(chain.from_iterable(_read(work, item) for item in run) for run in streamed),
        *spill_runs(rows, storing.schema, storing.order_by, spilled, SORTED_BYTES),
    ]


def _size(run: Sequence[Input]) -> int:
    return sum(item.written.part.size for item in run)


def _sample(work: Work) -> pa.Table:
    """Return some rows of all inputs; columns that rows are not clustered by are null."""
    schema, curve = work.storing.schema, work.storing.curve
    own = key_schema(schema, curve)
    batches = (
        batch for item in sorted(work.inputs) for batch in read_written(work.storing.blob, item.written, own)
    )
    found = sample_rows(batches, sum(item.written.part.rows for item in work.inputs))
    layout = arrow_schema(schema)
    columns = [
        found.column(own.fields.index(field)) if field in own.fields else pa.nulls(found.num_rows, kind.type)
        for field, kind in zip(schema.fields, layout, strict=True)
    ]
    return pa.table(columns, layout.names)


def _stays_in_order(run: Sequence[Input], schema: Schema) -> bool:
    """Whether the rows of a run, as they are read, are in order down to their times and diffs.

    Rows that have become equal may have their times in any order. Times that have become equal may have
    diffs in any order.
    """
    parts = [item.written.part for item in run]
    diffs = {diff for part in parts for diff in (part.diff_min, part.diff_max)}
    times = {
        item.written.ts if ts is None else ts
        for item in run
        for ts in (item.written.part.ts_min, item.written.part.ts_max)
    }
    may_merge = any(needs_consolidation(item.written.schema, schema) for item in run)
    return all(item.ordered for item in run) and len(diffs) == 1 and (len(times) == 1 or not may_merge)


def _read(work: Work, item: Input) -> Iterator[pa.RecordBatch]:
    """Yield the updates of a part under the new schema, with the time at which each is retracted."""
    position = 0
    for batch in read_written(work.storing.blob, item.written, work.storing.schema, updates=True):
        times = _times(item.gone, position, batch.num_rows)
        position += batch.num_rows
        rows = batch.append_column(GONE, times)
        if times.null_count < len(times) and work.since >= 0:
            rows = rows.filter(pc.fill_null(pc.greater(times, work.since), True))  # noqa: FBT003
        later = pc.max_element_wise(rows.column(TS), pa.scalar(max(work.since, 0), pa.int64()))
        at = rows.schema.get_field_index(TS)
        yield rows.set_column(at, rows.schema.field(at), later)


def _times(gone: Sequence[Taken], start: int, length: int) -> pa.Array:
    """Return when each of some rows of a part is retracted, or null."""
    if not gone:
        return pa.nulls(length, pa.int64())
    times = np.zeros(length, np.int64)
    known = np.zeros(length, np.bool_)
    for ts, positions in gone:
        low, high = positions.rank(start - 1) if start else 0, positions.rank(start + length - 1)
        own = np.asarray(positions[low:high], dtype=np.int64) - start
        times[own], known[own] = ts, True
    return pa.array(times, mask=~known)


def _store(
    storing: StoringPlan, batches: Iterable[pa.RecordBatch], order: RowOrder, task: str, run: int = 0
) -> Iterator[Output]:
    """Store rows as parts; the times at which they are retracted become positions."""
    waiting: deque[pa.Array] = deque()

    def told() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                waiting.append(batch.column(GONE))
                yield batch.drop_columns([GONE])

    def key(number: int) -> str:
        return part_key(storing.table_id, storing.write_id, f"{task}-{number}")

    for new in write_parts(
        told(), storing.schema, storing.order_by, order=order, run=run, limits=storing.limits, key=key
    ):
        storing.blob.put(new.part.key, memoryview(new.data).cast("B"))
        yield Output(new.part, _positions(waiting, new.part.rows))


def _positions(waiting: deque[pa.Array], rows: int) -> tuple[Taken, ...]:
    """Take the times of as many rows as a part has, and return which of them are retracted when."""
    pieces = []
    while rows:
        times = waiting.popleft()
        if len(times) > rows:
            waiting.appendleft(times[rows:])
            times = times[:rows]
        pieces.append(times)
        rows -= len(times)
    times = pa.concat_arrays(pieces)
    if times.null_count == len(times):
        return ()
    known = np.flatnonzero(times.is_valid().to_numpy(zero_copy_only=False))
    values = times.drop_null().to_numpy()
    return tuple((int(ts), BitMap(known[values == ts])) for ts in np.unique(values))
