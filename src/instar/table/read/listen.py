"""Listening: the updates after a time, as they become complete.

Each step looks at one state of the table. The reader's schema is checked again in every state that is
read, so a listener is fenced as soon as the table has evolved away from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow.compute as pc

from instar.errors import UsageError
from instar.parts import TS
from instar.state.chunk import FILES, PLACES, TIMES
from instar.table.log.manifest import load_parts
from instar.table.read.rows import read_updates
from instar.table.read.snapshot import Reader, check_fence

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from instar.state import TableState
    from instar.storage import Blob
    from instar.table.log.manifest import ChunkReader
    from instar.table.log.part_set import PartSet

__all__ = ["ChangePlan", "plan_changes", "read_changes"]


class ChangePlan(NamedTuple):
    """The parts that hold the updates of the times [since, upper)."""

    state: TableState
    reader: Reader
    since: int
    upper: int
    parts: PartSet


def plan_changes(
    chunks: ChunkReader, state: TableState, reader: Reader, since: int, upper: int | None = None
) -> ChangePlan:
    """Plan the updates from a time on, up to another or as far as they are complete.

    From the beginning, times that were merged are no matter: nobody has been told of them before.
    """
    check_fence(state, reader)
    end = state.upper if upper is None else upper
    if 0 < since < state.since or (upper is not None and since < upper <= state.since):
        raise UsageError(
            f"cannot listen to `{state.name}` from {since}: times before {state.since} have been merged"
        )
    live = load_parts(chunks, state, (), (PLACES, TIMES, FILES))
    earliest, latest, _ = live.times
    wanted = np.logical_and(latest >= since, earliest < end)
    return ChangePlan(state, reader, since, end, live.keep(wanted))


def read_changes(blob: Blob, plan: ChangePlan) -> Iterator[pa.RecordBatch]:
    """Yield the updates of a plan, with `_ts` and `_diff`."""
    for batch in read_updates(blob, plan.parts.written(plan.state.history), plan.reader.schema):
        times = batch.column(TS)
        wanted = pc.and_(pc.greater_equal(times, plan.since), pc.less(times, plan.upper))
        kept = batch.filter(wanted)
        if kept.num_rows:
            yield kept
