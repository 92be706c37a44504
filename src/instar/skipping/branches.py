"""Functions that choose between their arguments: CASE, IF, COALESCE, GREATEST, LEAST, nanvl, try.

The values of branches stay apart as alternatives, so whatever is done with the result is done with each
of them; and a branch is evaluated knowing the conditions that lead to it.
"""

from __future__ import annotations

from functools import reduce
from itertools import product
from typing import TYPE_CHECKING

from instar.skipping.expression import BOOLEAN, Call, Column
from instar.skipping.functions import Function
from instar.skipping.kernels import logic
from instar.skipping.kernels.extremes import greater, lesser
from instar.skipping.narrow import Evaluate, Scope, Want, assume
from instar.skipping.representation import comparable, representation_of
from instar.skipping.results import Results, any_of, anything, merged, nothing
from instar.skipping.spans import NO, YES, Real, full_span, representation_of_span, restrict

if TYPE_CHECKING:
    from instar.schema import Type

__all__ = ["attempt", "case", "coalesce", "extreme", "nanvl"]


def case(call: Call, scope: Scope, evaluate: Evaluate) -> Results:
    """Evaluate CASE: conditions and values in turn, and the ELSE at the end. IF is a short one.

    A condition that is null is passed over like one that is false. Nothing past a condition counts in
    parts where it is always true.
    """
    reached = YES
    outcomes: list[Results] = []
    for condition, value in zip(call.args[:-1:2], call.args[1::2], strict=True):
        test = evaluate(condition, scope).where(reached)
        taken = test.truth.true
        if taken.any():
            inner = assume(condition, Want.TRUE, scope, evaluate)
            outcomes.append(evaluate(value, inner).where(taken))
        outcomes.append(nothing().or_fail(test.fail))
        scope = assume(condition, Want.NOT_TRUE, scope, evaluate)
        reached = test.truth.false | test.null
    outcomes.append(evaluate(call.args[-1], scope).where(reached))
    return _united(call, outcomes)


def coalesce(call: Call, scope: Scope, evaluate: Evaluate) -> Results:
    """Evaluate COALESCE: each argument counts only where all before it may be null."""
    reached = YES
    outcomes: list[Results] = []
    for arg in call.args:
        result = evaluate(arg, scope).where(reached)
        outcomes.append(Results(NO, result.fail, result.spans))
        reached = result.null
        if isinstance(arg, Column):
            scope = assume(Call(Function.IS_NULL, (arg,), BOOLEAN), Want.TRUE, scope, evaluate)
    return _united(call, outcomes).or_null(reached)


def extreme(call: Call, scope: Scope, evaluate: Evaluate) -> Results:
    """Evaluate GREATEST and LEAST, which pass over nulls and are null only if all arguments are."""
    if not comparable(arg.type for arg in call.args):
        return anything(call.type)
    choose = greater if call.function is Function.GREATEST else lesser

    def fold(left: Results, right: Results) -> Results:
        spans = [restrict(span, right.null) for span in left.spans]
        spans += [restrict(span, left.null) for span in right.spans]
        spans += [choose(a, b) for a, b in product(left.spans, right.spans)]
        return Results(left.null & right.null, left.fail | right.fail, merged(spans))

    return reduce(fold, (evaluate(arg, scope) for arg in call.args))


def nanvl(call: Call, scope: Scope, evaluate: Evaluate) -> Results:
    """Evaluate nanvl: the second argument where the first is NaN."""
    left, right = (evaluate(arg, scope) for arg in call.args)
    nan = logic.is_nan(left).truth.true
    numbers = tuple(Real(s.lo, s.hi, s.some, NO) if isinstance(s, Real) else s for s in left.spans)
    return _united(call, [Results(left.null, left.fail, numbers), right.where(nan)])


def attempt(call: Call, scope: Scope, evaluate: Evaluate) -> Results:
    """Evaluate an expression whose errors become null."""
    result = evaluate(call.args[0], scope)
    return Results(result.null | result.fail, NO, result.spans)


def _united(call: Call, outcomes: list[Results]) -> Results:
    """Bring branches together. Branches of other types than the call's tell nothing about its values."""
    united = any_of(outcomes)
    kind = representation_of(call.type)
    if _values_agree(call) and all(representation_of_span(span) is kind for span in united.spans):
        return united
    return Results(united.null, united.fail, (full_span(call.type, united.some),))


def _values_agree(call: Call) -> bool:
    """Tell whether what may be chosen is held like the call's own type."""
    values: list[Type | None] = [arg.type for arg in call.args]
    if call.function in (Function.CASE, Function.IF):
        values = [*values[1:-1:2], values[-1]]
    return comparable([call.type, *values])
