"""Arithmetic on floats and doubles: rounding keeps the order, so bounds come from bounds.

Infinities and NaN are followed exactly where they can arise. A float is rounded to its 24 bits after
each operation, which doubles are wide enough to do without rounding twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from instar.skipping.expression import Call, Expression
from instar.skipping.functions import Function
from instar.skipping.kernels.outcome import Outcome
from instar.skipping.representation import INTEGERS, name_of
from instar.skipping.spans import NO, YES, Mask, Real

if TYPE_CHECKING:
    from instar.schema import Type

__all__ = [
    "Reals",
    "absolute",
    "add",
    "divide",
    "multiply",
    "negate",
    "real",
    "remainder",
    "rounded",
    "subtract",
]

Reals = npt.NDArray[np.float64]

_TINY: Final = 5e-324
"""The least positive double."""


def rounded(column: Reals, type_: Type) -> Reals:
    """Round to the precision of a type."""
    if name_of(type_) != "float":
        return column
    with np.errstate(all="ignore"):
        return column.astype(np.float32).astype(np.float64)


def real(call: Call, lo: Reals, hi: Reals, nan: Mask, some: Mask = YES) -> Real:
    """Make a span of a call's type. A bound that came out as NaN bounds nothing."""
    lost = np.isnan(lo) | np.isnan(hi)
    low, high = rounded(lo, call.type), rounded(hi, call.type)
    return Real(np.where(lost, -np.inf, low), np.where(lost, np.inf, high), some, nan)


def add(call: Call, left: Real, right: Real) -> Outcome:
    """Add; opposite infinities make NaN."""
    with np.errstate(all="ignore"):
        lo, hi = left.lo + right.lo, left.hi + right.hi
    clash = (_top(left) & _bottom(right)) | (_bottom(left) & _top(right))
    return _with_nan(call, lo, hi, left, right, clash)


def subtract(call: Call, left: Real, right: Real) -> Outcome:
    """Subtract; like infinities make NaN."""
    with np.errstate(all="ignore"):
        lo, hi = left.lo - right.hi, left.hi - right.lo
    clash = (_top(left) & _top(right)) | (_bottom(left) & _bottom(right))
    return _with_nan(call, lo, hi, left, right, clash)


def multiply(call: Call, left: Real, right: Real) -> Outcome:
    """Multiply; zero times infinity makes NaN."""
    with np.errstate(all="ignore"):
        corners = [a * b for a in (left.lo, left.hi) for b in (right.lo, right.hi)]
    clash = (_zero(left) & (_top(right) | _bottom(right))) | (_zero(right) & (_top(left) | _bottom(left)))
    return _with_nan(call, *_extremes(corners), left, right, clash)


def divide(call: Call, left: Real, right: Real) -> Outcome:
    """Divide by the negative and by the positive divisors apart; zero of either sign is no divisor."""
    zero = _zero(right)
    infinite = (_top(left) | _bottom(left)) & (_top(right) | _bottom(right))
    nan = (left.nan & (right.some | right.nan)) | (right.nan & left.some) | (left.some & infinite)
    spans = []
    least = 1.0 if _was_integer(call.args[1]) else _TINY
    for lo, hi, some in (
        (right.lo, np.minimum(right.hi, -least), right.lo < 0),
        (np.maximum(right.lo, least), right.hi, right.hi > 0),
    ):
        with np.errstate(all="ignore"):
            corners = [a / b for a in (left.lo, left.hi) for b in (lo, hi)]
        spans.append(real(call, *_extremes(corners), NO, some & right.some & left.some))
    # NaN divided by zero fails too: the divisor is looked at first.
    nan_only = Real(np.array([0.0]), np.array([0.0]), NO, nan)
    return Outcome(
        (*spans, nan_only),
        zero if call.mode.may_be_null else NO,
        zero if call.mode.may_fail else NO,
    )


def remainder(call: Call, left: Real, right: Real) -> Outcome:
    """Take the remainder: of the dividend's sign, and no greater in magnitude than either."""
    zero = _zero(right)
    most = np.maximum(np.abs(right.lo), np.abs(right.hi))
    lo = np.where(left.lo < 0, np.maximum(left.lo, -most), 0.0)
    hi = np.where(left.hi > 0, np.minimum(left.hi, most), 0.0)
    nan = left.nan | right.nan | _top(left) | _bottom(left)
    span = real(call, lo, hi, nan, left.some & right.some)
    return Outcome((span,), zero if call.mode.may_be_null else NO, zero if call.mode.may_fail else NO)


def negate(call: Call, span: Real) -> Outcome:
    """Negate; NaN stays apart, so it does not become a bound."""
    return Outcome((real(call, -span.hi, -span.lo, span.nan, span.some),))


def absolute(call: Call, span: Real) -> Outcome:
    """Take the magnitude."""
    lo = np.where(span.lo >= 0, span.lo, np.where(span.hi <= 0, -span.hi, 0.0))
    return Outcome((real(call, lo, np.maximum(span.hi, -span.lo), span.nan, span.some),))


def _was_integer(expression: Expression) -> bool:
    """Tell whether a number is an integer that was cast: none is nearer to zero than 1."""
    return (
        isinstance(expression, Call)
        and expression.function is Function.CAST
        and name_of(expression.args[0].type) in INTEGERS
    )


def _with_nan(call: Call, lo: Reals, hi: Reals, left: Real, right: Real, clash: Mask) -> Outcome:
    both = left.some & right.some
    return Outcome((real(call, lo, hi, left.nan | right.nan | (both & clash), both),))


def _extremes(corners: list[Reals]) -> tuple[Reals, Reals]:
    # A NaN corner makes both extremes NaN, and then `real` gives up the bounds.
    lo, hi = corners[0], corners[0]
    for corner in corners[1:]:
        lo, hi = np.minimum(lo, corner), np.maximum(hi, corner)
    return lo, hi


def _zero(span: Real) -> Mask:
    return span.some & (span.lo <= 0) & (span.hi >= 0)


def _top(span: Real) -> Mask:
    return span.some & np.isposinf(span.hi)


def _bottom(span: Real) -> Mask:
    return span.some & np.isneginf(span.lo)
