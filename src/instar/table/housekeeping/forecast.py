"""What a table is like, and what a compaction would do for queries: how many parts filters open.

The numbers after it are estimated from a sample of the rows, laid out as the compaction would do it.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from instar.parts import cluster_rows, compute_stats, sort_rows
from instar.schema import arrow_schema
from instar.skipping import decide, fields_needed
from instar.state import Place
from instar.state.chunk import PLACES, group_name
from instar.state.manifest import stats_fields
from instar.stats import bounds_columns
from instar.table.housekeeping.compaction import find_goals, find_work, list_candidates
from instar.table.log.manifest import load_parts
from instar.table.read.locate_keys import key_schema
from instar.table.read.order import arrange_parts
from instar.table.read.pruning import needed_parts, typed_bounds
from instar.table.read.rows import read_written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from instar.schema import Schema
    from instar.state import TableState
    from instar.table.housekeeping.plan import CompactionJob, Goals
    from instar.table.log.part_set import Mask, PartSet
    from instar.table.read.filter import Filter
    from instar.table.services import Services

__all__ = ["FilterForecast", "TableCondition", "find_condition", "forecast_filters"]

SAMPLED_PARTS: Final = 64
SAMPLED_ROWS: Final = 100_000
"""How much is read for a forecast, of each job."""


class TableCondition(NamedTuple):
    """What state the parts of a table are in, and what an ordinary compaction would do."""

    parts: int
    small_parts: int
    """Parts of less than half the size that parts should have."""
    schemas: dict[int, int]
    """How many parts were written under which schema."""
    ordered: bool | None
    """Whether all rows can be read in the order of the table in one pass; None if it has no order."""
    retracted: int
    """Rows that were retracted by position and are still in the files."""
    work: tuple[tuple[str, int], ...]
    """What a compaction would do: the reason, and how many parts it would rewrite."""


class FilterForecast(NamedTuple):
    """How many parts a filter opens, of how many: now, and about how many after a compaction."""

    filter: str
    total_before: int
    read_before: int
    total_after: int
    read_after: int


def find_condition(services: Services, state: TableState) -> TableCondition:
    """Say what state a table is in. No data file is opened."""
    goals = find_goals(state)
    parts = list(list_candidates(services, state))
    latest = state.history.latest
    known = {field.id: field for _, field in latest.walk()}
    leading = [known[it] for it in state.order_by if it in known]
    work = Counter[str]()
    for job in find_work(services, state, goals):
        work[str(job.reason)] += len(job.parts)
    return TableCondition(
        len(parts),
        sum(part.size < goals.target_bytes // 2 for part in parts),
        dict(sorted(Counter(part.schema_id for part in parts).items())),
        arrange_parts(services.chunks, state, leading) is not None if leading else None,
        state.totals.retracted,
        tuple(work.items()),
    )


def forecast_filters(
    services: Services, state: TableState, goals: Goals, filters: Sequence[Filter]
) -> list[FilterForecast]:
    """Say how many parts filters open before and after a compaction with some goals."""
    if not filters:
        return []
    jobs = find_work(services, state, goals)
    live = load_parts(services.chunks, state)
    places = [Place(row["batch"], row["ordinal"]) for row in live.columns[PLACES].to_pylist()]
    taken = {part.place for job in jobs for part in job.parts}
    stays = np.array([place not in taken for place in places], dtype=bool)
    wanted = {it for one in filters for it in one.columns} | {*state.order_by, *state.cluster_by}
    schema = key_schema(state.history.latest, sorted(wanted))
    pieces = [piece for job in jobs for piece in _outputs(services, state, goals, job, live, places, schema)]
    found = []
    for one in filters:
        before = needed_parts(services.chunks, state, one.condition).read
        later = _read(state, schema, pieces, one)
        read = int(before[stays].sum()) + int(later.sum())
        total = int(stays.sum()) + len(pieces)
        found.append(FilterForecast(one.text, len(places), int(before.sum()), total, read))
    return found


def _outputs(
    services: Services,
    state: TableState,
    goals: Goals,
    job: CompactionJob,
    live: PartSet,
    places: Sequence[Place],
    schema: Schema,
) -> list[pa.Table]:
    """Return a sample of the rows of each part that a job would write."""
    own = {part.place for part in job.parts}
    positions = [at for at, place in enumerate(places) if place in own]
    chosen = positions[:: max(1, len(positions) // SAMPLED_PARTS)]
    most = max(1, SAMPLED_ROWS // len(chosen))
    batches: list[pa.RecordBatch] = []
    for written in live.take(chosen).written(state.history):
        step = max(1, written.part.rows // most)
        batches += [
            batch.take(pa.array(range(0, batch.num_rows, step), pa.int64()))
            for batch in read_written(services.blob, written, schema)
        ]
    rows = pa.Table.from_batches(batches, schema=arrow_schema(schema))
    if goals.curve is not None:
        laid_out = cluster_rows(rows.to_batches(), schema, state.cluster_by)
        rows = pa.Table.from_batches(laid_out, schema=rows.schema)
    elif goals.sorted:
        rows = sort_rows(rows, schema, state.order_by)
    count = max(1, min(round(job.size / goals.target_bytes), rows.num_rows))
    ends = [rows.num_rows * number // count for number in range(count + 1)]
    return [rows.slice(begin, end - begin) for begin, end in pairwise(ends)]


def _read(state: TableState, schema: Schema, pieces: Sequence[pa.Table], one: Filter) -> Mask:
    """Tell which parts a filter would open, by the bounds of samples of their rows."""
    if not pieces:
        return np.zeros(0, dtype=bool)
    needed = fields_needed(one.expression)
    fields = [field for field in stats_fields(state.history.latest) if field.id in needed]
    stats = [compute_stats(piece, schema, state.order_by) for piece in pieces]
    columns = {
        group_name(field.id): bounds_columns([known.get(field.id) for known in stats], field.type)
        for field in fields
    }
    rows = pa.array([piece.num_rows for piece in pieces], pa.int64())
    bounds = typed_bounds(columns, fields, one.expression)
    read: Mask = np.broadcast_to(decide(one.expression, bounds, rows, one.condition.now).read, len(pieces))
    return read
