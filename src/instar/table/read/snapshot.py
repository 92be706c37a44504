"""Planning a snapshot: which parts hold the rows as of a time, and which of them must be consolidated.

Parts whose diffs are all +1 and whose times are all past are a plain scan. Only where retractions
exist, and only for parts that may hold a row that was retracted, have rows to be added up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from instar.errors import ReaderFencedError, SchemaNotFoundError, UsageError
from instar.schema import Schema, check_reader
from instar.state.chunk import FILES, PLACES, TIMES, group_name
from instar.state.manifest import stats_fields
from instar.stats import bounds_columns
from instar.table.log.manifest import keep_parts, load_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from instar.schema import Field
    from instar.state import TableState
    from instar.state.manifest import Columns
    from instar.stats import FieldStats
    from instar.table.log.manifest import ChunkReader, Mask

__all__ = [
    "Reader",
    "SnapshotPlan",
    "check_fence",
    "part_times",
    "plan_keys",
    "plan_snapshot",
    "resolve_reader",
]

_OVERLAP_FIELDS: Final = 8
"""How many fields' bounds are compared to tell parts from retractions."""


class Reader(NamedTuple):
    """What a reader wants to see: the columns, the schema they were chosen from, and its id if it has one."""

    schema: Schema
    whole: Schema
    schema_id: int | None


class SnapshotPlan(NamedTuple):
    """The parts of a snapshot, as columns: those to scan as they are, and those to consolidate.

    The masks tell which of the state's live parts these are, in the order of places.
    """

    state: TableState
    reader: Reader
    as_of: int
    scan: Columns
    merge: Columns
    scan_mask: Mask
    merge_mask: Mask


def resolve_reader(state: TableState, schema: Schema | int | None, columns: Sequence[str] | None) -> Reader:
    """Return the reader's schema: the latest, one of the history by its id, or one that is given."""
    history = state.history
    if isinstance(schema, Schema):
        chosen, schema_id = schema, None
    else:
        schema_id = history.latest_id if schema is None else schema
        if not 0 <= schema_id <= history.latest_id:
            raise SchemaNotFoundError(state.name, schema_id, latest=history.latest_id)
        chosen = history.schemas[schema_id]
    return Reader(chosen if columns is None else chosen.select(columns), chosen, schema_id)


def check_fence(state: TableState, reader: Reader) -> None:
    """Raise if the reader's schema can no longer be honoured in this very state."""
    fences = check_reader(state.history, reader.schema)
    if fences:
        raise ReaderFencedError(
            state.name, fences, reader_schema=reader.schema_id, latest=state.history.latest_id
        )


def plan_snapshot(chunks: ChunkReader, state: TableState, reader: Reader, as_of: int | None) -> SnapshotPlan:
    """Plan the rows as of a time; by default the last time that is complete."""
    check_fence(state, reader)
    time = state.upper - 1 if as_of is None else as_of
    if as_of is not None and not state.since <= as_of < max(state.upper, 1):
        raise UsageError(
            f"cannot read `{state.name}` as of {as_of}: its times from since {state.since} "
            f"up to, not including, upper {state.upper} can be read"
        )
    columns = load_columns(chunks, state, (), (PLACES, TIMES, FILES))
    earliest, latest, plain = part_times(columns)
    visible = earliest <= time
    scan = visible & plain & (latest <= time)
    retracting = visible & ~plain
    if retracting.any():
        fields = _telling_fields(state)
        bounds = load_columns(chunks, state, fields, (FILES,))
        scan &= ~_may_overlap(bounds, fields, scan, retracting)
    merge = visible & ~scan
    kept = keep_parts(columns, scan), keep_parts(columns, merge)
    return SnapshotPlan(state, reader, time, *kept, scan, merge)


def plan_keys(
    chunks: ChunkReader, plan: SnapshotPlan, keys: Mapping[int, FieldStats], rows: int
) -> SnapshotPlan:
    """Leave out the parts that can have none of some keys, of which the bounds of each leaf are known.

    Only of those that are scanned as they are: what is retracted elsewhere would not add up.
    """
    fields = [field for field in stats_fields(plan.state.history.latest) if field.id in keys]
    known = load_columns(chunks, plan.state, fields, (FILES,))
    counts = pa.concat_arrays([known[FILES].column("rows"), pa.array([rows], pa.int64())])
    kept = np.ones(len(plan.scan_mask), dtype=bool)
    for field in fields:
        own = bounds_columns([keys[field.id]], field.type)
        bounds = pa.concat_batches([known[group_name(field.id)], own])
        kept &= ~_apart(bounds, counts, len(kept))[:-1]
    scan = keep_parts(plan.scan, kept[plan.scan_mask])
    return plan._replace(scan=scan, scan_mask=plan.scan_mask & kept)


def _telling_fields(state: TableState) -> list[Field]:
    """Choose the fields whose bounds tell parts apart best: first those that the table is sorted by."""
    leading = dict.fromkeys((*state.order_by, *state.key))
    fields = list(stats_fields(state.history.latest))
    return sorted(fields, key=lambda field: field.id not in leading)[:_OVERLAP_FIELDS]


def part_times(columns: Columns) -> tuple[np.ndarray, np.ndarray, Mask]:
    """Return the earliest and latest time of each part, and whether all its diffs are +1."""
    times = columns[TIMES]
    own = pc.subtract(times.column("upper"), 1)
    earliest = pc.coalesce(times.column("ts_min"), own).to_numpy()
    latest = pc.coalesce(times.column("ts_max"), own).to_numpy()
    plain = (times.column("diff_min").to_numpy() == 1) & (times.column("diff_max").to_numpy() == 1)
    return earliest, latest, plain


def _may_overlap(columns: Columns, fields: Sequence[Field], candidates: Mask, retracting: Mask) -> Mask:
    """Tell which candidates may hold a row that also is in a retracting part: no field keeps them apart."""
    rows = columns[FILES].column("rows")
    overlapping = np.zeros(len(rows), dtype=bool)
    for index in np.flatnonzero(retracting):
        together = candidates & ~overlapping
        for field in fields:
            if not together.any():
                break
            together &= ~_apart(columns[group_name(field.id)], rows, int(index))
        overlapping |= together
    return overlapping


def _apart(bounds: pa.RecordBatch, rows: pa.Array, index: int) -> Mask:
    """Tell which parts can have no value of a field in common with the part at an index."""
    low, high, nulls, nans = (bounds.column(name) for name in ("min", "max", "nulls", "nans"))
    values = pc.subtract(rows, pc.add(nulls, nans))  # null where unknown
    disjoint = pc.or_kleene(pc.less(high, low[index]), pc.greater(low, high[index]))
    empty = pc.or_kleene(pc.equal(values, 0), pc.equal(values[index], 0))
    no_values = pc.or_kleene(disjoint, empty)
    no_nulls = pc.or_kleene(pc.equal(nulls, 0), pc.equal(nulls[index], 0))
    no_nans = pc.or_kleene(pc.equal(nans, 0), pc.equal(nans[index], 0))
    apart = pc.and_kleene(pc.and_kleene(no_values, no_nulls), no_nans)
    found: Mask = pc.fill_null(apart, False).to_numpy(zero_copy_only=False)  # noqa: FBT003
    return found
