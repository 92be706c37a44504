"""Filters in process: which parts a filter needs, and for which rows it is true.

Both are the same question to the same interpreter: a part is a range of values, and a row is a range of
one. If it cannot decide for a row, Spark is needed, and the filter is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from instar.errors import UsageError
from instar.schema import Field, Struct, format_type
from instar.skipping import Session, fields_needed, parse_filter
from instar.skipping.expression import BOOLEAN
from instar.skipping.interpret import evaluate
from instar.skipping.prune import make_scope
from instar.skipping.sql import columns_mentioned
from instar.stats import bounds_schema
from instar.table.read.pruning import Condition
from instar.table.read.undecided import undecided

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.schema import Schema
    from instar.skipping import Expression
    from instar.skipping.results import Results
    from instar.table.log.part_set import Mask

__all__ = ["Filter", "outcomes_of_rows"]


class RowOutcomes(NamedTuple):
    """What a condition may be, for each row."""

    true: Mask
    false: Mask
    null: Mask
    fail: Mask


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
        expression = parse_filter(text, schema, Session())
        if expression.type not in (BOOLEAN, None):
            kind = format_type(expression.type)
            raise UsageError(f"{text!r} is not a condition: it is of type {kind}, and never true or false")
        return Filter(text, schema, expression, now_ms * 1000)

    @cached_property
    def columns(self) -> frozenset[int]:
        """The ids of the top-level columns that the condition names, whether it looks at them or not."""
        return columns_mentioned(self.text, self.schema)

    @property
    def condition(self) -> Condition:
        """The same, as parts are asked."""
        return Condition(self.expression, (self.now, self.now))

    def rows(self, batch: pa.RecordBatch, schema: Schema) -> pa.Array:
        """Tell for which rows of a batch of a schema the condition is true."""
        found = self._outcomes(batch, schema)
        open_ = found.fail | (found.true & (found.false | found.null))
        if open_.any():
            row = batch.slice(int(open_.argmax()), 1)
            raise undecided(
                f"whether {self.text!r} is true for a row",
                self.expression,
                lambda piece: outcomes_of_rows(piece, row, schema, self.now),
                "Use Spark (to_spark(spark).where(…), or `instar query`), or write it with simpler functions",
            )
        return pa.array(found.true)

    def refuted(self, batch: pa.RecordBatch, schema: Schema) -> int | None:
        """Find a row that the condition is certainly true for, or certainly fails on."""
        found = self._outcomes(batch, schema)
        certain = (found.true ^ found.fail) & ~found.false & ~found.null
        return int(certain.argmax()) if certain.any() else None

    def _outcomes(self, batch: pa.RecordBatch, schema: Schema) -> RowOutcomes:
        """Say for each row what the condition may be."""
        result = outcomes_of_rows(self.expression, batch, schema, self.now)
        truth = result.truth
        masks = (truth.true, truth.false, result.null, result.fail)
        return RowOutcomes(*(np.broadcast_to(mask, batch.num_rows) for mask in masks))


def outcomes_of_rows(expression: Expression, batch: pa.RecordBatch, schema: Schema, now: int) -> Results:
    """Return the possible values of an expression for each row; to the interpreter, a row is a part."""
    needed = fields_needed(expression)
    bounds = {
        leaf.id: _as_bounds(array, leaf)
        for field, column in zip(schema.fields, batch.columns, strict=False)
        for leaf, array in _arrays(field, column)
        if leaf.id in needed
    }
    ones = pa.array(np.ones(batch.num_rows, np.int64))
    return evaluate(expression, make_scope(expression, bounds, ones, (now, now)))


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
