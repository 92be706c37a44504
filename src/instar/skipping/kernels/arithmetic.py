"""Arithmetic on integers and decimals: exact ranges, and what happens past the ends of the type.

Whether a call can overflow or divide by zero is decided from the ranges of its arguments. Floating
point is in `floating.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from instar.schema import Decimal
from instar.skipping import exact
from instar.skipping.exact import Ints, constant
from instar.skipping.functions import Mode
from instar.skipping.kernels.outcome import Outcome, fitted, unknown
from instar.skipping.representation import limits, scale_of
from instar.skipping.spans import NO, Mask, Whole

if TYPE_CHECKING:
    from instar.skipping.expression import Call

__all__ = [
    "absolute",
    "add",
    "divide",
    "integral_divide",
    "magnitude",
    "multiply",
    "negate",
    "positive_remainder",
    "remainder",
    "subtract",
]


_KEPT_DIGITS: Final = 34
"""The digits that Spark keeps of a decimal where it changes the sign."""
_QUOTIENT_DIGITS: Final = 38
"""The most digits that the quotient behind a remainder of decimals may have."""


def add(call: Call, left: Whole, right: Whole) -> Outcome:
    """Add: both bounds with both bounds."""
    a, b, scale = _same_scale(call, left, right)
    return _rescaled(exact.add(a.lo, b.lo), exact.add(a.hi, b.hi), scale, call)


def subtract(call: Call, left: Whole, right: Whole) -> Outcome:
    """Subtract: the least less the greatest, and the greatest less the least."""
    a, b, scale = _same_scale(call, left, right)
    return _rescaled(exact.subtract(a.lo, b.hi), exact.subtract(a.hi, b.lo), scale, call)


def multiply(call: Call, left: Whole, right: Whole) -> Outcome:
    """Multiply: the extremes are among the products of the bounds."""
    scale = scale_of(call.args[0].type) + scale_of(call.args[1].type)
    return _rescaled(*_extremes(exact.multiply, left, right), scale, call)


def divide(call: Call, left: Whole, right: Whole) -> Outcome:
    """Divide decimals. The quotient is rounded twice, so the bounds are taken one step further out."""
    target = call.type
    shift = scale_of(target) + scale_of(call.args[1].type) - scale_of(call.args[0].type)
    scaled = Whole(_shifted(left.lo, shift, up=False), _shifted(left.hi, shift, up=True), left.some)
    return _by_sign(call, scaled, right, slack=1)


def integral_divide(call: Call, left: Whole, right: Whole) -> Outcome:
    """Divide and drop what is after the point."""
    if scale_of(call.args[0].type) or scale_of(call.args[1].type):
        a, b, _ = _same_scale(call, left, right)
        return _by_sign(call, a, b, slack=0)
    return _by_sign(call, left, right, slack=0)


def remainder(call: Call, left: Whole, right: Whole) -> Outcome:
    """Take the remainder: of the dividend's sign, no greater than it, and less than the divisor."""
    return _remainder(call, left, right, positive=False)


def positive_remainder(call: Call, left: Whole, right: Whole) -> Outcome:
    """Take the remainder that is not negative if the divisor is not: less than it in magnitude."""
    return _remainder(call, left, right, positive=True)


def _remainder(call: Call, left: Whole, right: Whole, *, positive: bool) -> Outcome:
    a, b, scale = _same_scale(call, left, right)
    if scale != scale_of(call.type):
        return unknown(call)
    null, fail = _zero_divisor(b, call.mode)
    most = exact.subtract(magnitude(b), constant(1))
    # Between two multiples of one divisor, the remainder grows with the dividend.
    fixed = np.asarray((b.lo == b.hi) & (b.lo != 0), np.bool_)
    if positive:
        lo = np.where((b.lo > 0) | (a.lo >= 0), 0, exact.negate(most))
        hi = np.where(a.lo >= 0, np.minimum(a.hi, most), most)
        fixed = fixed & np.asarray(b.lo > 0, np.bool_)
        divide: exact.Operation = exact.floor_divide
    else:
        lo = np.where(a.lo < 0, np.maximum(a.lo, exact.negate(most)), 0)
        hi = np.where(a.hi > 0, np.minimum(a.hi, most), 0)
        fixed = fixed & np.asarray((a.lo >= 0) | (a.hi <= 0), np.bool_)
        divide = exact.trunc_divide
    divisor = np.where(fixed, b.lo, 1)
    first, last = divide(a.lo, divisor), divide(a.hi, divisor)
    same = fixed & np.asarray(first == last, np.bool_)
    lo = np.where(same, exact.subtract(a.lo, exact.multiply(first, divisor)), lo)
    hi = np.where(same, exact.subtract(a.hi, exact.multiply(last, divisor)), hi)
    zero_only = np.asarray((b.lo == 0) & (b.hi == 0), np.bool_)
    return Outcome((Whole(exact.compact(lo), exact.compact(hi), ~zero_only),), null, fail | _impossible(a, b))


def negate(call: Call, span: Whole) -> Outcome:
    """Negate; the least integer has no counterpart."""
    return _overturned(call, exact.negate(span.hi), exact.negate(span.lo))


def absolute(call: Call, span: Whole) -> Outcome:
    """Take the magnitude; the least integer has none that fits."""
    low, high = exact.negate(span.hi), exact.negate(span.lo)
    lo = np.where(span.lo >= 0, span.lo, np.where(span.hi <= 0, low, 0))
    return _overturned(call, lo, np.maximum(span.hi, high))


def magnitude(span: Whole) -> Ints:
    """Return the greatest magnitude of each range."""
    result: Ints = np.maximum(span.hi, exact.negate(span.lo))
    return result


def _overturned(call: Call, lo: Ints, hi: Ints) -> Outcome:
    """Fit what was negated: only the least integer does not fit, and wrapped around it is itself."""
    if isinstance(call.type, Decimal):
        return _rounded(call.type, lo, hi)
    least, most = limits(call.type)
    over = np.asarray(hi > most, np.bool_)
    kept = Whole(exact.compact(lo), exact.compact(np.minimum(hi, most)), np.asarray(lo <= most, np.bool_))
    if not over.any():
        return Outcome((kept,))
    fail = over if call.mode.may_fail else NO
    null = over if call.mode in (Mode.TRY, Mode.UNKNOWN) else NO
    spans = (kept, Whole(constant(least), constant(least), over)) if call.mode.may_wrap else (kept,)
    return Outcome(spans, null, fail)


def _rounded(type_: Decimal, lo: Ints, hi: Ints) -> Outcome:
    """Round outwards to the digits that are kept, and fail past the ends of the type in any mode."""
    if type_.precision > _KEPT_DIGITS:
        kept, unit = constant(10**_KEPT_DIGITS), constant(10 ** (type_.precision - _KEPT_DIGITS))
        lo = np.where(np.abs(lo) < kept, lo, exact.multiply(exact.floor_divide(lo, unit), unit))
        hi = np.where(np.abs(hi) < kept, hi, exact.multiply(exact.ceil_divide(hi, unit), unit))
    return fitted(lo, hi, type_, Mode.ANSI, wraps=False)


def _by_sign(call: Call, left: Whole, right: Whole, *, slack: int) -> Outcome:
    """Divide by the negative and by the positive divisors apart: across zero, a quotient has no bounds."""
    null, fail = _zero_divisor(right, call.mode)
    spans: list[Whole] = []
    negative = Whole(np.minimum(right.lo, -1), np.minimum(right.hi, -1), np.asarray(right.lo < 0, np.bool_))
    positive = Whole(np.maximum(right.lo, 1), np.maximum(right.hi, 1), np.asarray(right.hi > 0, np.bool_))
    for divisor in (negative, positive):
        some = divisor.some
        if not some.any():
            continue
        lo, hi = _extremes(exact.trunc_divide, left, divisor)
        # Overflow wraps only for the least bigint by -1, and then any value is said to be possible.
        lo, hi = exact.subtract(lo, constant(slack)), exact.add(hi, constant(slack))
        fits = fitted(lo, hi, call.type, call.mode, wraps=slack == 0)
        null, fail = null | (fits.null & some), fail | (fits.fail & some)
        spans += [Whole(span.lo, span.hi, span.some & some) for span in fits.spans if isinstance(span, Whole)]
    return Outcome(tuple(spans), null, fail)


def _zero_divisor(right: Whole, mode: Mode) -> tuple[Mask, Mask]:
    zero = np.asarray((right.lo <= 0) & (right.hi >= 0), np.bool_)
    return (zero if mode.may_be_null else NO, zero if mode.may_fail else NO)


def _impossible(left: Whole, right: Whole) -> Mask:
    """Tell where the quotient behind a remainder of decimals may have too many digits, which always fails."""
    if max(exact.peak(left.lo), exact.peak(left.hi)) < 10**_QUOTIENT_DIGITS:
        return NO
    least = np.maximum(np.maximum(right.lo, exact.negate(right.hi)), 1)
    most = exact.multiply(least, constant(10**_QUOTIENT_DIGITS))
    return np.asarray(magnitude(left) >= most, np.bool_)


def _extremes(operation: exact.Operation, left: Whole, right: Whole) -> tuple[Ints, Ints]:
    corners = [operation(a, b) for a in (left.lo, left.hi) for b in (right.lo, right.hi)]
    lo, hi = corners[0], corners[0]
    for corner in corners[1:]:
        lo, hi = np.minimum(lo, corner), np.maximum(hi, corner)
    return lo, hi


def _same_scale(call: Call, left: Whole, right: Whole) -> tuple[Whole, Whole, int]:
    """Bring two numbers to the same digits after the point."""
    scales = scale_of(call.args[0].type), scale_of(call.args[1].type)
    most = max(scales)
    first, second = (
        span
        if scale == most
        else Whole(
            exact.multiply(span.lo, constant(10 ** (most - scale))),
            exact.multiply(span.hi, constant(10 ** (most - scale))),
            span.some,
        )
        for span, scale in zip((left, right), scales, strict=True)
    )
    return first, second, most


def _rescaled(lo: Ints, hi: Ints, scale: int, call: Call) -> Outcome:
    """Round a result to the digits of its type, and fit it. Only integers wrap around."""
    target = scale_of(call.type)
    wraps = not isinstance(call.type, Decimal)
    if target >= scale:
        factor = constant(10 ** (target - scale))
        lo, hi = (exact.multiply(lo, factor), exact.multiply(hi, factor)) if target > scale else (lo, hi)
    else:
        lo, hi = exact.half_up(lo, 10 ** (scale - target)), exact.half_up(hi, 10 ** (scale - target))
    return fitted(lo, hi, call.type, call.mode, wraps=wraps)


def _shifted(column: Ints, digits: int, *, up: bool) -> Ints:
    """Multiply by a power of ten; if it is negative, round outwards."""
    if digits >= 0:
        return exact.multiply(column, constant(10**digits))
    divisor = constant(10**-digits)
    return exact.ceil_divide(column, divisor) if up else exact.floor_divide(column, divisor)
