"""Which parts of a snapshot a filter needs: first whole manifest chunks are left out, then single parts.

Only the statistics of the columns that the filter mentions are loaded, and only from chunks that remain.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from instar.schema.rules import can_widen
from instar.skipping import Column, decide, fields_needed
from instar.skipping.expression import walk
from instar.state.chunk import group_name
from instar.state.manifest import stats_fields
from instar.stats import cast_bounds
from instar.table.log.manifest import chunk_bounds, chunk_refs, load_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from instar.schema import Field
    from instar.skipping import Expression
    from instar.state import ChunkRef, Place, TableState
    from instar.state.manifest import Columns
    from instar.table.log.manifest import ChunkReader
    from instar.table.log.part_set import Mask, PartSet

__all__ = ["Condition", "Needed", "needed_parts", "part_bounds", "typed_bounds"]


class Condition(NamedTuple):
    """A filter, and the first and last microsecond at which it may be asked (None: at any time)."""

    expression: Expression
    now: tuple[int, int] | None = None


class Needed(NamedTuple):
    """Which of the live parts of a state have to be read, and how many chunks were not looked into.

    A filter is true for every row of a part that is `certain`.
    """

    read: Mask
    certain: Mask
    chunks: int
    chunks_skipped: int


def needed_parts(chunks: ChunkReader, state: TableState, condition: Condition) -> Needed:
    """Decide which live parts a filter needs."""
    refs = chunk_refs(state)
    fields = _fields_of(state, condition.expression)
    if not fields:
        # Nothing in it depends on a part: one decision is everybody's.
        found = decide(condition.expression, {}, pa.array([1], pa.int64()), condition.now)
        read, certain = (np.full(state.totals.parts, mask[0]) for mask in (found.read, found.certain))
        return Needed(read, certain, len(refs), 0 if found.read[0] else len(refs))
    skipped = _skipped_chunks(chunks, state, refs, fields, condition)
    known = part_bounds(chunks, state, condition.expression, skipped)
    found = decide(condition.expression, known.bounds, known.rows, condition.now)
    read, certain = (np.zeros(len(known.mask), dtype=bool) for _ in range(2))
    read[known.mask], certain[known.mask] = found.read, found.certain
    return Needed(read, certain, len(refs), len(skipped))


def part_bounds(
    chunks: ChunkReader, state: TableState, expression: Expression, without: frozenset[str] = frozenset()
) -> PartSet:
    """Load what is known about the columns of a filter, in the types that the filter uses."""
    fields = _fields_of(state, expression)
    found = load_parts(chunks, state, fields, (), without)
    typed = typed_bounds(found.columns, fields, expression)
    return replace(found, columns={group_name(field_id): batch for field_id, batch in typed.items()})


def _skipped_chunks(
    chunks: ChunkReader,
    state: TableState,
    refs: Sequence[ChunkRef],
    fields: Sequence[Field],
    condition: Condition,
) -> frozenset[str]:
    """Return the keys of chunks whose parts together are not needed."""
    removed = sorted(state.unfolded())
    # With few chunks there is nothing to save, and one with parts removed since is looked at part by part.
    candidates = [ref for ref in refs if not _touched(ref, removed)] if len(refs) > 1 else []
    if not candidates:
        return frozenset()
    columns = chunk_bounds(chunks, candidates, state.history, fields)
    bounds = typed_bounds(columns, fields, condition.expression)
    rows = pa.array([ref.rows for ref in candidates], pa.int64())
    read = decide(condition.expression, bounds, rows, condition.now).read
    return frozenset(ref.key for ref, needed in zip(candidates, read, strict=True) if not needed)


def _touched(ref: ChunkRef, removed: Sequence[Place]) -> bool:
    """Whether a place in the range of a chunk is one of these, which are in order."""
    at = bisect_left(removed, ref.first)
    return at < len(removed) and removed[at] <= ref.last


def _fields_of(state: TableState, expression: Expression) -> list[Field]:
    needed = fields_needed(expression)
    return [field for field in stats_fields(state.history.latest) if field.id in needed]


def typed_bounds(
    columns: Columns, fields: Sequence[Field], expression: Expression
) -> dict[int, pa.RecordBatch]:
    """Take bounds in the types that an expression has for its columns, where that loses nothing."""
    types = {node.field_id: node.type for node in walk(expression) if isinstance(node, Column)}
    return {
        field.id: cast_bounds(columns[group_name(field.id)], types[field.id])
        if can_widen(field.type, types[field.id])
        else columns[group_name(field.id)]
        for field in fields
    }
