"""Predicates that are not null whenever an argument is: logic, tests for null and NaN, IN and <=>."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import pairwise

import numpy as np

from instar.skipping.columns import held_value
from instar.skipping.expression import BOOLEAN, Call, Expression, Literal, fields_needed
from instar.skipping.functions import Function
from instar.skipping.kernels import logic
from instar.skipping.kernels.compare import find_member
from instar.skipping.narrow import Evaluate, Scope, Want, assume
from instar.skipping.representation import comparable
from instar.skipping.results import Results, anything, truth_of
from instar.skipping.spans import NO

__all__ = [
    "conjoin",
    "disjoin",
    "is_nan",
    "is_not_null",
    "is_null",
    "member",
    "negate",
    "null_safe_equal",
]


def conjoin(call: Call, scope: Scope, evaluate: Evaluate) -> Results:
    """Evaluate AND from left to right. What is right of a condition can be true only where that is."""
    result = evaluate(call.args[0], scope)
    inner = scope
    for before, arg in pairwise(call.args):
        right = evaluate(arg, scope)
        joined = logic.conjunction(result, right)
        if scope.may_look_again and joined.truth.true.any():
            inner = assume(before, Want.TRUE, inner, evaluate)
            if _differs(arg, scope, inner):
                again = evaluate(arg, replace(inner, may_look_again=False))
                true = joined.truth.true & again.truth.true
                joined = truth_of(true, joined.truth.false, joined.null, joined.fail)
        result = joined
    return result


def disjoin(call: Call, scope: Scope, evaluate: Evaluate) -> Results:
    """Evaluate OR."""
    return reduce(logic.disjunction, (evaluate(arg, scope) for arg in call.args))


def _differs(expression: Expression, scope: Scope, inner: Scope) -> bool:
    """Tell whether an expression mentions a column that was narrowed."""
    return any(
        inner.columns.get(field_id) is not scope.columns.get(field_id)
        for field_id in fields_needed(expression)
    )


def null_safe_equal(call: Call, scope: Scope, evaluate: Evaluate) -> Results:
    """Evaluate <=>, which is never null."""
    left, right = (evaluate(arg, scope) for arg in call.args)
    result = logic.null_safe_equal(left, right)
    if comparable(arg.type for arg in call.args):
        return result
    known = result.truth
    either = left.some & right.some
    return truth_of(known.true | either, known.false | either, NO, result.fail)


def member(call: Call, scope: Scope, evaluate: Evaluate) -> Results:
    """Evaluate IN: true if found, null if not found and a null is there to be compared with."""
    value, *rest = call.args
    if not comparable(arg.type for arg in call.args):
        return anything(call.type)
    needle = evaluate(value, scope)
    literals = [arg for arg in rest if isinstance(arg, Literal) and arg.upto is None]
    known = [held_value(arg.value, arg.type) for arg in literals if arg.value is not None]
    if len(literals) == len(rest) and not any(held != held for held in known):  # noqa: PLR0124 -- NaN
        found = [find_member(span, known) for span in needle.spans]
        if None not in found:
            true = reduce(np.logical_or, (masks[0] for masks in found if masks), NO)
            false = reduce(np.logical_or, (masks[1] for masks in found if masks), NO)
            if len(known) < len(literals):
                return truth_of(true, NO, needle.null | false, needle.fail)
            return truth_of(true, false, needle.null, needle.fail)
    tests = (Call(Function.EQUAL, (value, arg), BOOLEAN) for arg in rest)
    not_found = truth_of(NO, needle.some, needle.null, needle.fail)
    return reduce(logic.disjunction, (evaluate(test, scope) for test in tests), not_found)


def negate(call: Call, scope: Scope, evaluate: Evaluate) -> Results:
    """Evaluate NOT."""
    return logic.negation(evaluate(call.args[0], scope))


def is_null(call: Call, scope: Scope, evaluate: Evaluate) -> Results:
    """Evaluate IS NULL."""
    return logic.is_null(evaluate(call.args[0], scope))


def is_not_null(call: Call, scope: Scope, evaluate: Evaluate) -> Results:
    """Evaluate IS NOT NULL."""
    return logic.is_not_null(evaluate(call.args[0], scope))


def is_nan(call: Call, scope: Scope, evaluate: Evaluate) -> Results:
    """Evaluate isnan."""
    return logic.is_nan(evaluate(call.args[0], scope))
