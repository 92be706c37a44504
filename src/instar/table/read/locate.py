"""Finding the rows for which a condition is true, by part and position.

Only the columns of the condition are read, and only of parts for which it may be true. A whole part counts,
without being opened, where its statistics prove the condition for every row. Rows that may equal one that was
retracted by value have no position: they are found by value, with the number of their copies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from instar.parts import TS, consolidate
from instar.parts.read import ROW
from instar.schema import Schema
from instar.skipping.interpret import evaluate
from instar.skipping.prune import make_scope
from instar.state.retractions import whole_part
from instar.table.read.audit import Skipping, resolve_policy
from instar.table.read.pruning import part_bounds
from instar.table.read.rows import filter_plan, read_updates, read_written
from instar.table.read.snapshot import Reader, plan_snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from instar.state import Place, TableState
    from instar.table.log.manifest import ChunkReader
    from instar.table.log.part_set import Mask, PartSet, WrittenPart
    from instar.table.read.audit import Policy
    from instar.table.read.filter import Filter
    from instar.table.read.pruning import Condition
    from instar.table.read.snapshot import SnapshotPlan
    from instar.table.services import Services

__all__ = ["Found", "certain_in", "certain_parts", "find_rows", "merged_rows", "narrow_reader"]


class Found(NamedTuple):
    """Rows of a state: by position, and by value with `_diff`, the number of copies."""

    positions: Mapping[Place, BitMap]
    by_value: pa.Table | None


def find_rows(services: Services, state: TableState, condition: Filter) -> Found:
    """Find the rows that a condition is true for."""
    reader = narrow_reader(state, condition.columns)
    policy = resolve_policy(state.options, services.defaults)
    plan = plan_snapshot(services.chunks, state, reader, None)
    chosen = filter_plan(services, plan, condition, policy)
    certain = certain_in(services, chosen, condition, policy)
    positions: dict[Place, BitMap] = {}
    for at, written in enumerate(chosen.scan.written(state.history)):
        found = _whole(written) if certain[at] else _matching(services, written, chosen, condition)
        if found:
            positions[chosen.scan.place(at)] = found
    if not chosen.merge:
        return Found(positions, None)
    rows = merged_rows(services, state, chosen.merge, chosen.as_of)
    kept = [condition.rows(batch, state.history.latest) for batch in rows.to_batches()]
    return Found(positions, rows.filter(pa.chunked_array(kept, pa.bool_())))


def narrow_reader(state: TableState, columns: frozenset[int]) -> Reader:
    """Return a reader of some columns of the latest schema; of at least one."""
    latest = state.history.latest
    fields = tuple(field for field in latest.fields if field.id in columns) or latest.fields[:1]
    return Reader(Schema(fields), latest, state.history.latest_id)


def certain_in(services: Services, plan: SnapshotPlan, condition: Filter, policy: Policy) -> Mask:
    """Tell for which parts that a plan scans a condition is proved for every row; none, without skipping."""
    if policy.mode is not Skipping.ON:
        return np.zeros(len(plan.scan), dtype=bool)
    return certain_parts(services.chunks, plan.state, condition.condition)[plan.scan.mask]


def certain_parts(chunks: ChunkReader, state: TableState, condition: Condition) -> Mask:
    """Tell for which live parts a condition is proved to be true for every row."""
    return _certain(part_bounds(chunks, state, condition.expression), condition)


def _certain(known: PartSet, condition: Condition) -> Mask:
    scope = make_scope(condition.expression, known.bounds, known.rows, condition.now)
    result = evaluate(condition.expression, scope)
    certain = result.truth.true & ~result.truth.false & ~result.null & ~result.fail
    return np.broadcast_to(certain, len(known))


def merged_rows(services: Services, state: TableState, parts: PartSet, as_of: int) -> pa.Table:
    """Return the rows of parts that have to be added up, each once, with `_diff`, the number of copies."""
    latest = state.history.latest
    updates = pa.Table.from_batches(read_updates(services.blob, parts.written(state.history), latest))
    past = updates.filter(pc.less_equal(updates.column(TS), as_of)).drop_columns([TS])
    return consolidate(past, latest)


def _whole(written: WrittenPart) -> BitMap:
    rows = whole_part(written.part.rows)
    return rows if written.taken is None else rows - written.taken


def _matching(services: Services, written: WrittenPart, plan: SnapshotPlan, condition: Filter) -> BitMap:
    """Read the columns of a condition, and return the positions that it is true for."""
    found = BitMap()
    schema = plan.reader.schema
    for batch in read_written(services.blob, written, schema, numbered=True):
        mask = condition.rows(batch, schema)
        found.update(batch.column(ROW).filter(mask).to_numpy().astype(np.uint32))
    return found
