"""Reading parts in process as Arrow batches, without an engine: one by one, or added up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from instar.parts import TS, RowChoice, read_part, snapshot_rows
from instar.schema import Schema, plan_migration
from instar.table.blob_file import BlobFile
from instar.table.outside import open_outside
from instar.table.read.selection import found_violation, select_parts
from instar.table.read.snapshot import check_fence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyroaring import BitMap

    from instar.parts import Probe
    from instar.state import Part, TableState
    from instar.storage import Blob
    from instar.table.log.part_set import PartSet, WrittenPart
    from instar.table.read.audit import Policy
    from instar.table.read.filter import Filter
    from instar.table.read.snapshot import SnapshotPlan
    from instar.table.services import Services

__all__ = [
    "filter_plan",
    "matching_rows",
    "merge_updates",
    "read_updates",
    "read_written",
]

_WHOLE: Final = 1 << 20
"""A part of at most so many bytes is fetched by one request, whatever is needed of it."""


class RowTest(Protocol):
    """Chooses rows, as a `Filter` does."""

    def rows(self, batch: pa.RecordBatch, schema: Schema) -> pa.Array:
        """Return which rows of a batch, under a schema, are wanted."""


def filter_plan(services: Services, plan: SnapshotPlan, condition: Filter, policy: Policy) -> SnapshotPlan:
    """Leave out the parts that a condition does not need; the reader gets the columns that it looks at."""
    shown = {field.id for field in plan.reader.schema.fields}
    also = [field for field in condition.schema.fields if field.id in condition.columns - shown]
    wider = plan.reader._replace(schema=Schema((*plan.reader.schema.fields, *also)))
    check_fence(plan.state, wider)
    chosen = []
    for parts in (plan.scan, plan.merge):
        selection = select_parts(services, plan.state, parts, condition.condition, policy)
        _check_skipped(services, plan.state, selection.checked, wider.schema, condition)
        chosen.append(selection.read)
    scan, merge = chosen
    return plan._replace(reader=wider, scan=scan, merge=merge)


def matching_rows(
    batch: pa.RecordBatch, schema: Schema, condition: Filter, shown: Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch that a condition is true for, if there are any, with the first columns."""
    kept = batch.filter(condition.rows(batch, schema))
    if kept.num_rows:
        yield kept.select(range(len(shown.fields)))


def _check_skipped(
    services: Services, state: TableState, skipped: PartSet, schema: Schema, condition: Filter
) -> None:
    """Read parts that were skipped, and raise if a condition is true for a row of one, or fails on it."""
    for written in skipped.written(state.history):
        for batch in read_written(services.blob, written, schema):
            row = condition.refuted(batch, schema)
            if row is not None:
                values = batch.slice(row, 1).to_pylist()[0]
                raise found_violation(services, state, condition.condition, written.part.key, values)


def read_updates(blob: Blob, parts: Iterable[WrittenPart], reader: Schema) -> Iterator[pa.RecordBatch]:
    """Yield the updates of parts, with `_ts` and `_diff`."""
    return (batch for written in parts for batch in read_written(blob, written, reader, updates=True))


def merge_updates(
    batches: Iterable[pa.RecordBatch],
    latest: Schema,
    as_of: int,
    reader: Schema,
    condition: RowTest | None,
) -> Iterator[pa.RecordBatch]:
    """Add up the diffs of equal rows of the whole table, then show what the reader wants to see.

    With a condition, which parts may have been left out for, only rows that it is true for are shown.
    """
    updates = pa.Table.from_batches(batches)
    past = updates.filter(pc.less_equal(updates.column(TS), as_of))
    shown = plan_migration(latest, reader)

    def wanted(counted: pa.Table) -> pa.ChunkedArray:
        assert condition is not None  # noqa: S101 -- for the type checker
        rows = counted.select(range(len(latest.fields)))
        masks = [condition.rows(shown.apply(batch), reader) for batch in rows.to_batches()]
        return pa.chunked_array(masks, pa.bool_())

    for batch in snapshot_rows(past, latest, None if condition is None else wanted):
        yield shown.apply(batch)


def read_written(
    blob: Blob,
    written: WrittenPart,
    reader: Schema,
    *,
    updates: bool = False,
    numbered: bool = False,
    only: BitMap | None = None,
    probe: Probe | None = None,
    ahead: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part under the reader's schema, or its updates with `_ts` and `_diff`.

    Rows that were retracted by position are left out; with `only`, these rows are read and no others. With
    `numbered`, positions come last. With a `probe`, row groups that can have none of its keys are left out.
    With `ahead`, more is read than was asked for, if that is faster.
    """
    part, ts, schema, taken = written
    choice = None if taken is None else RowChoice(taken)
    if only is not None:
        choice = RowChoice(only, only=True)
    return read_part(
        _open(blob, part),
        part,
        schema,
        reader,
        updates=updates,
        ts=ts,
        choice=choice,
        probe=probe,
        numbered=numbered,
        ahead=ahead,
    )


def _open(blob: Blob, part: Part) -> str | pa.NativeFile:
    """Open a part so that only what is needed of it is fetched."""
    if part.adopted is not None:
        return part.key if part.key.startswith("/") else open_outside(blob, part.key, part.size)
    location = blob.location(part.key)
    if location.startswith("/"):
        return location
    whole = part.size <= _WHOLE
    return pa.PythonFile(BlobFile(blob, part.key, part.size, whole=whole), mode="r")
