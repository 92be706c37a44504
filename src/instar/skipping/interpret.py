"""The interpreter: every expression is evaluated over sets of possible results instead of values.

It walks the tree once; each node is a handful of operations on columns, whatever the number of parts.
What a function does is in its row of the registry: a kernel, if it is null whenever an argument is, or
else what evaluates it lazily.
"""

from __future__ import annotations

from functools import reduce
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from instar.skipping.columns import results_of_literal, unknown_column
from instar.skipping.expression import Anything, Call, Column, Expression, Literal, Now
from instar.skipping.registry import load_row
from instar.skipping.representation import representation_of
from instar.skipping.results import MOST, Results, anything, merged
from instar.skipping.spans import NO, YES, Span, live, representation_of_span, restrict

if TYPE_CHECKING:
    from instar.skipping.narrow import Scope

__all__ = ["evaluate"]


def evaluate(expression: Expression, scope: Scope) -> Results:
    """Return everything that an expression may come to."""
    match expression:
        case Column(field_id=field_id, type=type_):
            found = scope.columns.get(field_id)
            return unknown_column(type_) if found is None else found
        case Literal():
            return results_of_literal(expression)
        case Now():
            return scope.now
        case Anything(type=type_):
            return anything(type_)
        case Call(function=function):
            lazy = load_row(function).lazy
            return _strict(expression, scope) if lazy is None else lazy(expression, scope, evaluate)


def _strict(call: Call, scope: Scope) -> Results:
    """Evaluate a function that is null if an argument is, and fails if an argument does."""
    kinds = [representation_of(arg.type) for arg in call.args]
    kernel = load_row(call.function).find_kernel(call)
    if kernel is None:
        return anything(call.type)
    args = [evaluate(arg, scope) for arg in call.args]
    null = reduce(np.logical_or, (arg.null for arg in args), NO)
    fail = reduce(np.logical_or, (arg.fail for arg in args), NO)
    choices = [arg.spans for arg in args]
    if prod(len(spans) for spans in choices) > MOST * MOST:
        choices = [(arg.whole,) if arg.spans else () for arg in args]
    found: list[Span] = []
    for spans in product(*choices):
        if [representation_of_span(span) for span in spans] != kinds:
            return anything(call.type)
        present = reduce(np.logical_and, (live(span) for span in spans), YES)
        outcome = kernel(call, *spans)
        found += [restrict(span, present) for span in outcome.spans]
        null, fail = null | (outcome.null & present), fail | (outcome.fail & present)
    return Results(null, fail, merged(found))
