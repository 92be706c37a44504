"""Filters in process: which parts a filter needs, and for which rows it is true.

Both are the same question to the same interpreter: a part is a range of values, and a row is a range of
one. What it cannot decide for a row needs Spark, and is refused rather than guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from instar.errors import UsageError
from instar.schema import Field, Struct
from instar.skipping import Session, decide, fields_needed, parse_filter
from instar.skipping.interpret import evaluate
from instar.skipping.prune import make_scope
from instar.state.chunk import FILES, PLACES, TIMES, group_name
from instar.state.manifest import stats_fields
from instar.stats import bounds_schema
from instar.table.manifest import load_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.schema import Schema
    from instar.skipping import Expression
    from instar.table.manifest import ChunkReader
    from instar.table.snapshot import Mask, SnapshotPlan

__all__ = ["Filter"]


@dataclass(frozen=True)
class Filter:
    """A condition in Spark SQL over the columns of one schema, asked at one moment."""

    text: str
    schema: Schema
    expression: Expression
    now: int
    """Microseconds since 1970: what `now()` is."""

    @staticmethod
    def parse(text: str, schema: Schema, now_ms: int) -> Filter:
        """Read a condition; strings and times are compared as Spark does in UTC and ANSI mode."""
        return Filter(text, schema, parse_filter(text, schema, Session()), now_ms * 1000)

    @property
    def columns(self) -> frozenset[int]:
        """The ids of the top-level columns that the condition looks at."""
        needed = fields_needed(self.expression)
        return frozenset(
            field.id for field in self.schema.fields if any(leaf.id in needed for leaf in _leaves(field))
        )

    def plan(self, chunks: ChunkReader, plan: SnapshotPlan) -> SnapshotPlan:
        """Leave out the parts of a snapshot in which the condition is never true and never fails."""
        read = self.parts(chunks, plan)
        return plan._replace(
            scan=_keep(plan.scan, read[plan.scan_mask]),
            merge=_keep(plan.merge, read[plan.merge_mask]),
            scan_mask=plan.scan_mask & read,
            merge_mask=plan.merge_mask & read,
        )

    def parts(self, chunks: ChunkReader, plan: SnapshotPlan) -> Mask:
        """Tell which of the live parts of a snapshot's state have to be read."""
        needed = fields_needed(self.expression)
        fields = [field for field in stats_fields(plan.state.history.latest) if field.id in needed]
        columns = load_columns(chunks, plan.state, fields, (FILES,))
        bounds = {field.id: columns[group_name(field.id)] for field in fields}
        return decide(self.expression, bounds, columns[FILES].column("rows"), (self.now, self.now)).read

    def rows(self, batch: pa.RecordBatch, schema: Schema) -> pa.Array:
        """Tell for which rows of a batch of a schema the condition is true."""
        needed = fields_needed(self.expression)
        bounds = {
            leaf.id: _as_bounds(array, leaf)
            for field, column in zip(schema.fields, batch.columns, strict=False)
            for leaf, array in _arrays(field, column)
            if leaf.id in needed
        }
        ones = pa.array(np.ones(batch.num_rows, np.int64))
        result = evaluate(self.expression, make_scope(self.expression, bounds, ones, (self.now, self.now)))
        truth = result.truth
        true, false, null, fail = np.broadcast_arrays(
            truth.true, truth.false, result.null, result.fail, subok=False
        )
        true, false, null, fail = (
            np.broadcast_to(mask, batch.num_rows) for mask in (true, false, null, fail)
        )
        if (fail | (true & (false | null))).any():
            raise UsageError(
                f"whether {self.text!r} is true for a row cannot be told without Spark: "
                "read with to_spark(spark).where(…), or write it with simpler functions"
            )
        return pa.array(true)


def _keep(columns: dict[str, pa.RecordBatch], read: Mask) -> dict[str, pa.RecordBatch]:
    chosen = pa.array(read)
    return {name: columns[name].filter(chosen) for name in (PLACES, TIMES, FILES)}


def _leaves(field: Field) -> Iterator[Field]:
    if isinstance(field.type, Struct):
        for member in field.type.fields:
            yield from _leaves(member)
    yield field


def _arrays(field: Field, column: pa.Array) -> Iterator[tuple[Field, pa.Array]]:
    """Yield the leaves of a column with their values; a member of a null struct is null."""
    if isinstance(field.type, Struct):
        for member, array in zip(field.type.fields, column.flatten(), strict=True):
            yield from _arrays(member, array)
    else:
        yield field, column


def _as_bounds(array: pa.Array, leaf: Field) -> pa.RecordBatch:
    """Return each value as the statistics of a part that holds nothing else."""
    nulls = pc.cast(array.is_null(), pa.int64())
    if pa.types.is_floating(array.type):
        nan = pc.fill_null(pc.is_nan(array), False)  # noqa: FBT003 -- a null is not NaN
        array = pc.if_else(nan, pa.scalar(None, array.type), array)
        nans = pc.cast(nan, pa.int64())
    else:
        nans = pa.array(np.zeros(len(array), np.int64))
    return pa.RecordBatch.from_arrays([nulls, nans, array, array], schema=bounds_schema(leaf.type))
