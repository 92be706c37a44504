"""Comparisons: from the orders that are possible between two spans to the truths that are.

Membership in a list of literals, however long, is decided by a search in the sorted list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from instar.skipping import strings
from instar.skipping.functions import Function
from instar.skipping.kernels.outcome import Outcome, predicate, unknown
from instar.skipping.representation import comparable
from instar.skipping.spans import Mask, Orders, Real, Span, Text, Whole, live, orders, single

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.skipping.expression import Call

__all__ = ["FLIPPED", "NEGATED", "compare", "find_member"]

_Masks = tuple[Mask, Mask]

_TRUTHS: Final[dict[str, Callable[[Orders], _Masks]]] = {
    Function.EQUAL: lambda found: (found.equal, found.less | found.greater),
    Function.LESS: lambda found: (found.less, found.equal | found.greater),
    Function.LESS_EQUAL: lambda found: (found.less | found.equal, found.greater),
    Function.GREATER: lambda found: (found.greater, found.equal | found.less),
    Function.GREATER_EQUAL: lambda found: (found.greater | found.equal, found.less),
}

NEGATED: Final[dict[str, Function]] = {
    Function.LESS: Function.GREATER_EQUAL,
    Function.LESS_EQUAL: Function.GREATER,
    Function.GREATER: Function.LESS_EQUAL,
    Function.GREATER_EQUAL: Function.LESS,
}
"""What is true where a comparison of non-null values is false."""

FLIPPED: Final[dict[str, Function]] = {
    Function.EQUAL: Function.EQUAL,
    Function.LESS: Function.GREATER,
    Function.LESS_EQUAL: Function.GREATER_EQUAL,
    Function.GREATER: Function.LESS,
    Function.GREATER_EQUAL: Function.LESS_EQUAL,
}
"""The same comparison with its sides exchanged."""


def compare(call: Call, left: Span, right: Span) -> Outcome:
    """Compare two values."""
    if not comparable(arg.type for arg in call.args):
        return unknown(call)
    return predicate(*_TRUTHS[call.function](orders(left, right)))


def find_member(span: Span, values: list[Any]) -> _Masks | None:
    """Say whether a value may be among some, and whether it may not be. None if that takes a longer way.

    The values are as they are held: integers, floats without NaN, or bytes.
    """
    if not values:
        return np.zeros_like(live(span)), live(span)
    match span:
        case Whole(lo=lo, hi=hi, some=some):
            low, high = lo, hi
        case Real(lo=lo, hi=hi, some=some):
            low, high = lo, hi
        case Text(lo=lo, hi=hi, some=some):
            top = strings.successor(max(values)) or max(values) + b"\xff"
            low = np.array(lo.to_pylist(), object)
            high = np.array(hi.fill_null(top).to_pylist(), object)
        case _:
            return None
    ordered = _sorted_column(values, low)
    first = np.searchsorted(ordered, low, side="left")
    past = np.searchsorted(ordered, high, side="right")
    found = some & (past > first)
    return found, live(span) & ~(found & single(span))


def _sorted_column(values: list[Any], like: Any) -> Any:  # noqa: ANN401 -- a column of any dtype
    try:
        return np.array(sorted(set(values)), like.dtype)
    except OverflowError:
        return np.array(sorted(set(values)), object)
