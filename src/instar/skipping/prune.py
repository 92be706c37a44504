"""The decision: which parts may a filter be true for, or fail on? Only the others are skipped.

A filter is taken apart at its ANDs and ORs. A part is excluded by one conjunct that is never true and never
fails there, or by several that never fail there and are never true for the same row. Whatever the remaining
conjuncts would do, errors included, is not looked at: SQL orders no conjuncts, and Spark's own row group
filters take them one by one too. A conjunct that may fail in a part takes no part in excluding it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from instar.skipping.columns import results_of_column, unknown_column
from instar.skipping.exact import constant
from instar.skipping.expression import BOOLEAN, Call, Column, Expression, Now, conjuncts, fields_needed, walk
from instar.skipping.functions import Function
from instar.skipping.interpret import evaluate
from instar.skipping.narrow import Scope, Want, assume
from instar.skipping.results import Results, any_of
from instar.skipping.spans import NO, YES, Mask, Whole, full_span

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Decision", "Verdict", "decide", "make_scope", "outcomes"]


class Verdict(Enum):
    """What to do with a part, or with a chunk of them."""

    READ = "read"
    """The filter may be true for a row, or may fail on one."""
    SKIP = "skip"
    """Conjuncts that fail on no row are never all true for one."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict for each of many parts."""

    read: Mask
    """One for each part: whether it has to be read."""
    certain: Mask
    """Whether the filter is true for every row of a part that is read."""

    def __len__(self) -> int:
        return len(self.read)

    def verdict(self, part: int) -> Verdict:
        """Return the verdict for one part."""
        return Verdict.READ if self.read[part] else Verdict.SKIP

    @property
    def skipped(self) -> int:
        """How many parts are skipped."""
        return len(self.read) - int(self.read.sum())


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Whether a filter may be true for a row of a part, may fail on one, and is true for all of them."""

    true: Mask
    fail: Mask
    certain: Mask

    @property
    def excluded(self) -> Mask:
        """Where neither can happen."""
        return ~self.true & ~self.fail

    def among(self, kept: Mask) -> Outcomes:
        """Return the same of some of the parts; a mask of one is about all of them."""
        masks = (mask if len(mask) == 1 else mask[kept] for mask in (self.true, self.fail, self.certain))
        return Outcomes(*masks)


def decide(
    expression: Expression,
    bounds: Mapping[int, pa.RecordBatch],
    rows: pa.Array,
    now: tuple[int, int] | None = None,
) -> Decision:
    """Decide which parts a filter needs.

    `bounds` has the statistics of each field of `fields_needed`, one row a part, as `bounds_columns` lays
    them out and in the types of the expression; a field that is missing may be anything. `rows` are the
    numbers of rows of the parts. `now` are the first and the last microsecond at which the query may run.
    """
    count = len(rows)
    left = np.arange(count)
    certain = np.ones(count, np.bool_)
    parts = conjuncts(expression)
    plain: list[Outcomes] = []  # of each conjunct by itself
    known: dict[int, Results] = {}  # what columns may be in the parts that are left
    for stage in (*parts, expression) if len(parts) > 1 else parts:
        if not len(left):
            break
        # Each conjunct is asked by itself, of what the ones before have left; then all of them together.
        scope = make_scope(stage, bounds, rows, now, known)
        found = _all_of(parts, scope, plain) if len(plain) == len(parts) else outcomes(stage, scope)
        plain.append(found)
        certain[left] &= found.certain
        excluded = np.broadcast_to(found.excluded, len(left))
        if excluded.any():
            plain = [each.among(~excluded) for each in plain]
            known.clear()
            kept = pa.array(~excluded)
            bounds = {field_id: batch.filter(kept) for field_id, batch in bounds.items()}
            rows, left = rows.filter(kept), left[~excluded]
    read = np.zeros(count, np.bool_)
    read[left] = True
    return Decision(read, certain & read)


def make_scope(
    expression: Expression,
    bounds: Mapping[int, pa.RecordBatch],
    rows: pa.Array,
    now: tuple[int, int] | None,
    known: dict[int, Results] | None = None,
) -> Scope:
    """Return what the columns of an expression may be in each part; `known` keeps them for the next time."""
    types = {node.field_id: node.type for node in walk(expression) if isinstance(node, Column)}
    columns = {} if known is None else known
    for field_id, type_ in types.items():
        if field_id not in columns:
            columns[field_id] = (
                results_of_column(bounds[field_id], rows, type_)
                if field_id in bounds
                else unknown_column(type_)
            )
    columns = {field_id: columns[field_id] for field_id in types}
    moment = full_span(Now().type) if now is None else Whole(constant(now[0]), constant(now[1]), YES)
    return Scope(columns, Results(NO, NO, (moment,)))


def outcomes(expression: Expression, scope: Scope) -> Outcomes:
    """Say where a filter may be true and where it may fail, part of it by part of it."""
    expression = _without_not(expression)
    match expression:
        case Call(function=Function.OR, args=args):
            each = [outcomes(arg, scope) for arg in args]
            fail = _any(one.fail for one in each)
            return Outcomes(_any(one.true for one in each), fail, _any(one.certain for one in each) & ~fail)
        case Call(function=Function.AND):
            parts = conjuncts(expression)
            return _all_of(parts, scope, [outcomes(part, scope) for part in parts])
    result = evaluate(expression, scope)
    certain = result.truth.true & ~result.truth.false & ~result.null & ~result.fail
    return Outcomes(result.truth.true, result.fail, certain)


def _all_of(parts: tuple[Expression, ...], scope: Scope, each: Sequence[Outcomes]) -> Outcomes:
    """Say the same of conjuncts together, of which `each` is known by itself."""
    excluded = _any(one.excluded for one in each)
    if scope.may_look_again and not excluded.all():
        inner = replace(_narrowed(parts, each, scope), may_look_again=False)
        for part, plain in zip(parts, each, strict=True):
            if any(inner.columns.get(id_) is not scope.columns.get(id_) for id_ in fields_needed(part)):
                excluded = excluded | (~outcomes(part, inner).true & ~plain.fail)
    fail, true = _any(one.fail for one in each), _all(one.true for one in each)
    return Outcomes(true & ~excluded, fail & ~excluded, _all(one.certain for one in each))


def _any(masks: Iterable[Mask]) -> Mask:
    found: Mask = np.logical_or.reduce(np.broadcast_arrays(*masks))
    return found


def _all(masks: Iterable[Mask]) -> Mask:
    found: Mask = np.logical_and.reduce(np.broadcast_arrays(*masks))
    return found


def _narrowed(parts: tuple[Expression, ...], each: Sequence[Outcomes], scope: Scope) -> Scope:
    """Narrow columns by all conjuncts that do not fail: a row that is wanted makes all of them true."""
    for part, plain in zip(parts, each, strict=True):
        if plain.fail.all():
            continue
        inner = assume(part, Want.TRUE, scope, evaluate)
        if plain.fail.any():
            columns = {
                field_id: before
                if (after := inner.columns[field_id]) is before
                else any_of([after.where(~plain.fail), before.where(plain.fail)])
                for field_id, before in scope.columns.items()
            }
            inner = replace(scope, columns=columns)
        scope = inner
    return scope


def _without_not(expression: Expression) -> Expression:
    """Move a NOT inwards, past AND and OR."""
    match expression:
        case Call(function=Function.NOT, args=(Call(function=Function.NOT, args=(inner,)),)):
            return _without_not(inner)
        case Call(function=Function.NOT, args=(Call(function=Function.AND | Function.OR) as inner,)):
            flipped = Function.OR if inner.function is Function.AND else Function.AND
            return Call(flipped, tuple(Call(Function.NOT, (arg,), BOOLEAN) for arg in inner.args), BOOLEAN)
    return expression
