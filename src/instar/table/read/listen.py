"""Listening: the updates after a time, as they become complete.

Each step looks at one state of the table. The reader's schema is checked again in every state that is
read, so a listener is fenced as soon as the table has evolved away from it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from instar.errors import UsageError
from instar.parts import TS
from instar.state.chunk import FILES, PLACES, TIMES
from instar.table.log.manifest import load_parts
from instar.table.log.sheets import load_retractions
from instar.table.read.rows import read_updates, read_written
from instar.table.read.snapshot import Reader, check_fence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyroaring import BitMap

    from instar.schema import Schema
    from instar.state import Part, TableState
    from instar.storage import Blob
    from instar.table.log.manifest import ChunkReader
    from instar.table.log.part_set import PartSet, WrittenPart
    from instar.table.log.sheets import Retractions

__all__ = ["ChangePlan", "TakenRows", "plan_changes", "read_changes", "read_taken"]


class ChangePlan(NamedTuple):
    """The parts that hold the updates of the times [since, upper)."""

    state: TableState
    reader: Reader
    since: int
    upper: int
    parts: PartSet
    taken: tuple[TakenRows, ...] = ()
    """Rows that were retracted by position in these times."""


class TakenRows(NamedTuple):
    """Rows of a part that were retracted by position, and when."""

    written: WrittenPart
    ts: int
    positions: BitMap

    @property
    def part(self) -> Part:
        """The part that the rows are in."""
        return self.written.part


def plan_changes(
    chunks: ChunkReader, state: TableState, reader: Reader, since: int, upper: int | None = None
) -> ChangePlan:
    """Plan the updates from a time on, up to another or as far as they are complete.

    From the beginning, merged times do not matter: no listener has seen them before.
    """
    check_fence(state, reader)
    end = state.upper if upper is None else upper
    if 0 < since < state.since or (upper is not None and since < upper <= state.since):
        raise UsageError(
            f"cannot listen to `{state.name}` from {since}: times before {state.since} have been merged. "
            "Read a snapshot, and listen to what came after it"
        )
    live = load_parts(chunks, state, (), (PLACES, TIMES, FILES))
    earliest, latest, _ = live.times
    wanted = np.logical_and(latest >= since, earliest < end)
    retractions = load_retractions(chunks.sheets, state, since=since, as_of=end - 1)
    return ChangePlan(state, reader, since, end, live.keep(wanted), tuple(_taken(state, live, retractions)))


def _taken(state: TableState, live: PartSet, retractions: Retractions) -> Iterator[TakenRows]:
    """Yield what was retracted of each part, retraction by retraction."""
    if not retractions:
        return
    touched = replace(live, retractions=retractions)
    touched = touched.keep(touched.partly)
    for at, written in enumerate(replace(touched, retractions=None).written(state.history)):
        for found, positions in retractions.read(retractions.by_place[touched.place(at)]):
            yield TakenRows(written, found.ts, positions)


def read_changes(blob: Blob, plan: ChangePlan) -> Iterator[pa.RecordBatch]:
    """Yield the updates of a plan, with `_ts` and `_diff`."""
    for batch in read_updates(blob, plan.parts.written(plan.state.history), plan.reader.schema):
        times = batch.column(TS)
        wanted = pc.and_(pc.greater_equal(times, plan.since), pc.less(times, plan.upper))
        kept = batch.filter(wanted)
        if kept.num_rows:
            yield kept
    for taken in plan.taken:
        yield from read_taken(blob, taken, plan.reader.schema)


def read_taken(blob: Blob, taken: TakenRows, reader: Schema) -> Iterator[pa.RecordBatch]:
    """Yield retracted rows with all their values, the time of their retraction, and a negative diff."""
    for batch in read_written(blob, taken.written, reader, updates=True, only=taken.positions):
        *columns, times, diffs = batch.columns
        when = pa.array(np.full(batch.num_rows, taken.ts), times.type)
        yield pa.RecordBatch.from_arrays([*columns, when, pc.negate(diffs)], schema=batch.schema)
