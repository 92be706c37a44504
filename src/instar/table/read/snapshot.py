"""Planning a snapshot: which parts hold the rows as of a time, and which of them must be consolidated.

Parts whose diffs are all +1 and whose times are all past are a plain scan. Only where retractions
exist, and only for parts that may hold a retracted row, rows have to be added up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from instar.errors import ReaderFencedError, SchemaNotFoundError, UsageError
from instar.schema import Schema, check_reader
from instar.state.chunk import FILES, PLACES, TIMES
from instar.state.manifest import stats_fields
from instar.stats import bounds_columns
from instar.table.log.manifest import load_parts
from instar.table.log.sheets import load_retractions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from instar.schema import Field
    from instar.state import TableState
    from instar.stats import FieldStats
    from instar.table.log.manifest import ChunkReader
    from instar.table.log.part_set import Mask, PartSet

__all__ = [
    "KeyBounds",
    "Reader",
    "SnapshotPlan",
    "check_fence",
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
    """The parts of a snapshot: those to scan as they are, and those to consolidate."""

    state: TableState
    reader: Reader
    as_of: int
    scan: PartSet
    merge: PartSet


class KeyBounds(NamedTuple):
    """What is known about some keys: the bounds of leaves, by field, and how many keys there are."""

    stats: Mapping[int, FieldStats]
    rows: int

    def fields(self, schema: Schema) -> list[Field]:
        """Return the fields of a schema whose bounds tell whether a part may have one of the keys."""
        return [field for field in stats_fields(schema) if field.id in self.stats]

    def may_be_in(self, known: PartSet, schema: Schema) -> Mask:
        """Tell which parts may have one of the keys: the bounds of none of these fields are apart."""
        counts = pa.concat_arrays([known.rows, pa.array([self.rows], pa.int64())])
        kept = np.ones(len(known), dtype=bool)
        for field in self.fields(schema):
            own = bounds_columns([self.stats[field.id]], field.type)
            bounds = pa.concat_batches([known.bounds[field.id], own])
            kept &= ~_apart(bounds, counts, len(kept))[:-1]
        return kept


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
    """Raise if the reader's schema no longer fits this state."""
    fences = check_reader(state.history, reader.schema)
    if fences:
        raise ReaderFencedError(
            state.name, fences, reader_schema=reader.schema_id, latest=state.history.latest_id
        )


def plan_snapshot(chunks: ChunkReader, state: TableState, reader: Reader, as_of: int | None) -> SnapshotPlan:
    """Plan the rows as of a time; by default the last time that is complete."""
    check_fence(state, reader)
    time = state.upper - 1 if as_of is None else as_of
    earliest = state.since or -1  # before the first time of all there was nothing, and that can be read
    if as_of is not None and not earliest <= as_of < max(state.upper, 0):
        raise UsageError(
            f"cannot read `{state.name}` as of {as_of}: the earliest time that can be read is {state.since}, "
            f"its since, and the latest is {state.upper - 1}, the last complete time"
        )
    whole = load_parts(chunks, state, (), (PLACES, TIMES, FILES))
    live = whole.less(load_retractions(chunks.sheets, state, as_of=time))
    first, latest, plain = live.times
    visible = first <= time
    scan = visible & plain & (latest <= time)
    retracting = visible & ~plain
    if retracting.any():
        fields = _telling_fields(state)
        known = load_parts(chunks, state, fields, ()).keep(live.mask)
        scan &= ~_may_overlap(known, scan, retracting)
    return SnapshotPlan(state, reader, time, live.keep(scan), live.keep(visible & ~scan))


def plan_keys(chunks: ChunkReader, plan: SnapshotPlan, keys: KeyBounds) -> SnapshotPlan:
    """Leave out the parts that can have none of some keys.

    This applies only to plain scans: otherwise retractions in other parts would not add up.
    """
    known = load_parts(chunks, plan.state, keys.fields(plan.state.history.latest), ())
    kept = keys.may_be_in(known, plan.state.history.latest)
    return plan._replace(scan=plan.scan.keep(kept[plan.scan.mask]))


def _telling_fields(state: TableState) -> list[Field]:
    """Choose the fields whose bounds tell parts apart best: first those that the table is sorted by."""
    leading = dict.fromkeys((*state.order_by, *state.key))
    fields = list(stats_fields(state.history.latest))
    return sorted(fields, key=lambda field: field.id not in leading)[:_OVERLAP_FIELDS]


def _may_overlap(known: PartSet, candidates: Mask, retracting: Mask) -> Mask:
    """Tell which candidates may hold a row that also is in a retracting part: no field keeps them apart."""
    bounds = known.bounds.values()
    overlapping = np.zeros(len(known), dtype=bool)
    for index in np.flatnonzero(retracting):
        together = candidates & ~overlapping
        for own in bounds:
            if not together.any():
                break
            together &= ~_apart(own, known.rows, int(index))
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
