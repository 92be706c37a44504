"""Functions of arrays and maps. Only whether there is one is known, and not what is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from instar.schema import List, Map
from instar.skipping.coercion import INT
from instar.skipping.expression import BOOLEAN
from instar.skipping.functions import Mode
from instar.skipping.kernels.outcome import Outcome, unknown
from instar.skipping.registry.row import Param, Row
from instar.skipping.representation import limits
from instar.skipping.results import Results
from instar.skipping.spans import NO, YES, Span, Whole, full_span

if TYPE_CHECKING:
    from instar.schema import Type
    from instar.skipping.expression import Call, Expression
    from instar.skipping.narrow import Evaluate, Scope

__all__ = ["COLLECTIONS"]

_ANY: Final = Param()


def _element(args: tuple[Expression, ...]) -> Type | None:
    match args[0].type:
        case List(element=element):
            return element
        case Map(value=value):
            return value
    return None


def _contains(call: Call, *_: Span) -> Outcome:
    """Look for an element: if it is not found and there is a null, the answer is null."""
    return Outcome((full_span(call.type),), YES)


def _size(call: Call, scope: Scope, evaluate: Evaluate) -> Results:
    """Count elements. Of null it is null, or perhaps -1 where the mode is not ANSI."""
    value = evaluate(call.args[0], scope)
    ansi = call.mode is Mode.ANSI
    least, most = np.array([-1]), np.array([limits(call.type)[1]])
    none = Whole(least, least, NO if ansi else value.null)
    return Results(value.null, value.fail, (none, Whole(np.array([0]), most, value.some)))


COLLECTIONS: Final = (
    Row(
        "size",
        INT,
        (Param(("array", "map")),),
        lazy=_size,
        sql=("size", "cardinality"),
        catalyst=("Size(child)",),
        samples=("int: size({array<int>})", "int: cardinality({array<int>})"),
    ),
    Row(
        "array_contains",
        BOOLEAN,
        (Param(("array",)), _ANY),
        _contains,
        sql=("array_contains",),
        catalyst=("ArrayContains",),
        samples=("boolean: array_contains({array<int>}, {int})",),
    ),
    Row(
        "element_at",
        _element,
        (Param(("array", "map")), _ANY),
        unknown,
        sql=("element_at",),
        catalyst=("ElementAt(left, right)", "GetArrayItem(child, ordinal)", "GetMapValue(child, key)"),
        samples=("int: element_at({array<int>}, #n)",),
    ),
)
