"""Narrowing: what a condition says about the columns it mentions, in the rows where it holds.

Used inside the branch that a condition guards, and between the conjuncts of a filter. It only ever takes
possibilities away that the condition rules out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from instar.skipping import exact, strings
from instar.skipping.columns import held_value
from instar.skipping.expression import Call, Column, Expression, Literal
from instar.skipping.functions import Function
from instar.skipping.kernels.compare import FLIPPED, NEGATED
from instar.skipping.representation import INTEGERS, comparable, name_of
from instar.skipping.results import Results, any_of, merged
from instar.skipping.spans import NO, YES, Mask, Real, Span, Text, Truth, Whole, meet, restrict, single

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Evaluate", "Scope", "Want", "assume"]


@dataclass(frozen=True, slots=True)
class Scope:
    """What every column may be, in the rows that are looked at."""

    columns: Mapping[int, Results]
    now: Results
    may_look_again: bool = True
    """Whether a condition may be looked at once more, knowing what others say of its columns.

    Not inside of such a second look: each level of nested conditions would take twice as long as the last."""


class Want(Enum):
    """What is assumed of a condition."""

    TRUE = "true"
    FALSE = "false"
    NOT_TRUE = "not true"
    """False or null, as where IF takes its ELSE."""
    NOT_FALSE = "not false"


_OPPOSITE: Final = {
    Want.TRUE: Want.FALSE,
    Want.FALSE: Want.TRUE,
    Want.NOT_TRUE: Want.NOT_FALSE,
    Want.NOT_FALSE: Want.NOT_TRUE,
}


Evaluate = Callable[[Expression, Scope], Results]


def assume(condition: Expression, want: Want, scope: Scope, evaluate: Evaluate) -> Scope:
    """Narrow the columns of a scope to what they may be where a condition comes out as wanted."""
    match condition:
        case Column():
            return _narrow_boolean(condition, want, scope)
        case Call(function=Function.NOT, args=(arg,)):
            return assume(arg, _OPPOSITE[want], scope, evaluate)
        case Call(function=Function.AND | Function.OR):
            return _assume_logic(condition, want, scope, evaluate)
        case Call(function=Function.IS_NULL | Function.IS_NOT_NULL, args=(Column() as column,)):
            is_null = (condition.function is Function.IS_NULL) == (want in (Want.TRUE, Want.NOT_FALSE))
            return _with(scope, column, _only_null if is_null else _never_null)
        case Call(function=Function.IN, args=(Column() as column, *values)) if (
            want is Want.TRUE and comparable(arg.type for arg in condition.args)
        ):
            allowed = any_of(evaluate(value, scope) for value in _ends(values))
            return _compared(scope, column, Function.EQUAL, allowed, nullable=False)
        case Call(function=Function.EQUAL_NULL_SAFE, args=(left, right)) if want is Want.TRUE:
            return _assume_comparison(Function.EQUAL, (left, right), scope, evaluate, null_safe=True)
        case Call(function=function, args=(left, right)) if function in FLIPPED:
            nullable = want in (Want.NOT_TRUE, Want.NOT_FALSE)
            if want in (Want.FALSE, Want.NOT_TRUE):
                negated = NEGATED.get(function)
                if negated is None:
                    return _assume_different((left, right), scope, evaluate, nullable=nullable)
                function = negated
            return _assume_comparison(function, (left, right), scope, evaluate, nullable=nullable)
    return scope


def _ends(values: list[Expression]) -> list[Expression]:
    """Return the least and the greatest of literals, which bound all of them; or all that is listed."""
    held = {
        held_value(each.value, each.type): each
        for each in values
        if isinstance(each, Literal) and each.value is not None and each.upto is None
    }
    if len(held) < 2 or not all(isinstance(each, Literal) for each in values):  # noqa: PLR2004 -- two ends
        return values
    if any(key != key for key in held) or any(isinstance(each, Literal) and each.upto for each in values):  # noqa: PLR0124
        return values
    return [held[min(held)], held[max(held)]]


def _assume_logic(condition: Call, want: Want, scope: Scope, evaluate: Evaluate) -> Scope:
    all_hold = (condition.function is Function.AND) == (want in (Want.TRUE, Want.NOT_FALSE))
    if all_hold:
        for arg in condition.args:
            scope = assume(arg, want, scope, evaluate)
        return scope
    options = [assume(arg, want, scope, evaluate) for arg in condition.args]
    touched = {
        field_id
        for field_id, before in scope.columns.items()
        if all(option.columns[field_id] is not before for option in options)
    }
    columns = {field_id: any_of(option.columns[field_id] for option in options) for field_id in touched}
    return replace(scope, columns={**scope.columns, **columns})


def _assume_comparison(
    function: str,
    sides: tuple[Expression, Expression],
    scope: Scope,
    evaluate: Evaluate,
    *,
    nullable: bool = False,
    null_safe: bool = False,
) -> Scope:
    for (target, other), towards in ((sides, function), (sides[::-1], FLIPPED[function])):
        column = _bare(target)
        if column is None or not comparable((target.type, other.type)):
            continue
        bound = evaluate(other, scope)
        # Where the other side may be null, it says nothing if null will do.
        says = ~bound.null if nullable or null_safe else YES
        if says.any():
            scope = _compared(scope, column, towards, bound, nullable=nullable, says=says)
    return scope


def _assume_different(
    sides: tuple[Expression, Expression], scope: Scope, evaluate: Evaluate, *, nullable: bool
) -> Scope:
    """Narrow a column that is not equal to one value, where that value is one of its ends."""
    for target, other in (sides, sides[::-1]):
        column = _bare(target)
        if column is None or not comparable((target.type, other.type)):
            continue
        bound = evaluate(other, scope)
        value = bound.whole
        if not isinstance(value, Whole):
            continue
        says = single(value) & ~bound.null if nullable else single(value)
        scope = _with(scope, column, partial(_without, value=value, says=says, nullable=nullable))
    return scope


def _without(before: Results, *, value: Whole, says: Mask, nullable: bool) -> Results:
    spans: list[Span] = []
    for span in before.spans:
        if not isinstance(span, Whole):
            return before
        first, last = (np.asarray(says & (end == value.lo), np.bool_) for end in (span.lo, span.hi))
        lo = np.where(first, exact.add(span.lo, exact.constant(1)), span.lo)
        hi = np.where(last, exact.subtract(span.hi, exact.constant(1)), span.hi)
        spans.append(Whole(exact.compact(lo), exact.compact(hi), span.some & np.asarray(lo <= hi, np.bool_)))
    return Results(before.null if nullable else before.null & ~says, before.fail, merged(spans))


def _bare(expression: Expression) -> Column | None:
    """See through casts that change no value."""
    if isinstance(expression, Column):
        return expression
    if isinstance(expression, Call) and expression.function is Function.CAST:
        inner = expression.args[0]
        before, after = name_of(inner.type), name_of(expression.type)
        if INTEGERS.get(before, 99) <= INTEGERS.get(after, 0) or (before, after) == ("float", "double"):
            return _bare(inner)
    return None


def _compared(
    scope: Scope, column: Column, function: str, bound: Results, *, nullable: bool, says: Mask = YES
) -> Scope:
    allowed = _allowed(function, bound)
    if allowed is None:
        return scope

    def narrowed(before: Results) -> Results:
        spans: list[Span] = []
        for span in before.spans:
            if type(span) is not type(allowed):
                return before
            spans += [restrict(meet(span, allowed), says), restrict(span, ~says)]
        null = before.null if nullable else before.null & ~says
        return Results(null, before.fail, merged(spans))

    return _with(scope, column, narrowed)


def _allowed(function: str, bound: Results) -> Span | None:
    """Return the values that compare as wanted with at least one of some values."""
    if not bound.spans:
        return None
    match bound.whole:
        case Whole(lo=lo, hi=hi, some=some):
            if function in (Function.LESS, Function.LESS_EQUAL):
                lo = exact.constant(-(10**39))
                hi = exact.subtract(hi, exact.constant(1)) if function is Function.LESS else hi
            elif function is not Function.EQUAL:
                hi = exact.constant(10**39)
                lo = exact.add(lo, exact.constant(1)) if function is Function.GREATER else lo
            return Whole(lo, hi, some)
        case Real(lo=low, hi=high, some=some, nan=nan):
            if function in (Function.LESS, Function.LESS_EQUAL):
                low, high = np.array([-np.inf]), np.where(nan, np.inf, high)
                return Real(low, high, some | nan, nan if function is Function.LESS_EQUAL else NO)
            if function is Function.EQUAL:
                return Real(low, high, some, nan)
            # Above a number is also NaN; above NaN is nothing, and at least NaN is NaN.
            return Real(low, np.array([np.inf]), some, some | nan)
        case Text() as text:
            if function in (Function.LESS, Function.LESS_EQUAL):
                return Text(strings.constant(b""), text.hi, text.some)
            return text if function is Function.EQUAL else Text(text.lo, strings.constant(None), text.some)
        case Truth() as truth:
            return truth if function is Function.EQUAL else None
    return None


def _narrow_boolean(column: Column, want: Want, scope: Scope) -> Scope:
    true = want in (Want.TRUE, Want.NOT_FALSE)
    only = Truth(YES, NO) if true else Truth(NO, YES)
    nullable = want in (Want.NOT_TRUE, Want.NOT_FALSE)
    return _compared(scope, column, Function.EQUAL, Results(NO, NO, (only,)), nullable=nullable)


def _only_null(before: Results) -> Results:
    return Results(before.null, before.fail, ())


def _never_null(before: Results) -> Results:
    return Results(NO, before.fail, before.spans) if before.null.any() else before


def _with(scope: Scope, column: Column, change: Callable[[Results], Results]) -> Scope:
    before = scope.columns.get(column.field_id)
    after = None if before is None else change(before)
    if after is None or after is before:
        return scope
    return replace(scope, columns={**scope.columns, column.field_id: after})
