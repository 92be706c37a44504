"""Functions that round: ceil, floor, round and sign. All keep the order of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from instar.schema import Decimal
from instar.skipping import exact
from instar.skipping.exact import Ints, constant
from instar.skipping.expression import Literal
from instar.skipping.functions import Mode
from instar.skipping.kernels.floating import Reals, rounded
from instar.skipping.kernels.outcome import Kernel, Outcome, fitted, unknown
from instar.skipping.representation import scale_of
from instar.skipping.spans import Real, Span, Whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.skipping.expression import Call

__all__ = ["round_real", "round_whole", "sign_of_real", "to_whole_real", "to_whole_whole"]

_EXACT: Final = 2.0**52
"""From here on, every double is an integer."""


def to_whole_whole(divide: exact.Operation) -> Kernel:
    """Make a kernel for ceil or floor of an integer or a decimal, which divides by a power of ten."""

    def kernel(call: Call, span: Whole) -> Outcome:
        divisor = constant(10 ** scale_of(call.args[0].type))
        return fitted(divide(span.lo, divisor), divide(span.hi, divisor), call.type, Mode.UNKNOWN, wraps=True)

    return kernel


def to_whole_real(to: np.ufunc) -> Kernel:
    """Make a kernel for ceil or floor of a double, which is a bigint: past its ends, anything may happen."""

    def kernel(_: Call, span: Real) -> Outcome:
        lo, hi = to(span.lo), to(span.hi)
        limit = 2.0**62
        outside = span.nan | (span.some & ((lo < -limit) | (hi > limit)))
        inside = span.some & ~outside
        safe_lo, safe_hi = (np.where(inside, column, 0.0).astype(np.int64) for column in (lo, hi))
        least, most = -(1 << 63), (1 << 63) - 1
        spans: tuple[Span, ...] = (
            Whole(safe_lo, safe_hi, inside),
            Whole(constant(least), constant(most), outside),
        )
        return Outcome(spans, outside, outside)

    return kernel


def round_whole(divide: Callable[[Ints, int], Ints]) -> Kernel:
    """Make a kernel that rounds an integer or a decimal to some digits after the point."""

    def kernel(call: Call, span: Whole, _: Whole) -> Outcome:
        digits = _digits(call)
        if digits is None:
            return unknown(call)
        before, after = scale_of(call.args[0].type), scale_of(call.type)
        step = before - min(digits, before)
        lo, hi = (
            exact.multiply(divide(column, 10**step), constant(10**step)) for column in (span.lo, span.hi)
        )
        if before != after:
            shift = 10 ** abs(before - after)
            move = exact.floor_divide if before > after else exact.multiply
            lo, hi = move(lo, constant(shift)), move(hi, constant(shift))
        return fitted(lo, hi, call.type, Mode.UNKNOWN, wraps=not isinstance(call.type, Decimal))

    return kernel


def round_real(call: Call, span: Real, _: Whole) -> Outcome:
    """Round a double by its decimal text. The bounds have room for every way to break a tie."""
    digits = _digits(call)
    if digits is None or abs(digits) > 15:  # noqa: PLR2004 -- more than a double has
        return unknown(call)
    lo, hi = _rounded_down(span.lo, digits), _rounded_up(span.hi, digits)
    return Outcome((Real(rounded(lo, call.type), rounded(hi, call.type), span.some, span.nan),))


def sign_of_real(_: Call, span: Real) -> Outcome:
    """Take the sign, as a double."""
    return Outcome((Real(np.sign(span.lo), np.sign(span.hi), span.some, span.nan),))


def _digits(call: Call) -> int | None:
    wanted = call.args[1]
    return wanted.value if isinstance(wanted, Literal) and isinstance(wanted.value, int) else None


def _rounded_down(column: Reals, digits: int) -> Reals:
    """Return at most what rounding gives."""
    power = 10.0 ** abs(digits)
    with np.errstate(all="ignore"):
        scaled = column * power if digits >= 0 else column / power
        nearest = np.floor(scaled + 0.5)
        # So near to a tie, it may have gone the other way.
        close = np.abs(scaled + 0.5 - np.round(scaled + 0.5)) < 1e-6 * np.maximum(np.abs(scaled), 1.0)
        whole = np.where(close, nearest - 1, nearest)
        # One correct rounding of two exact numbers: just what the decimal text comes to.
        result = whole / power if digits >= 0 else whole * power
        far = np.nextafter(column - (1 / power if digits >= 0 else power), -np.inf)
        result = np.where(np.abs(scaled) < _EXACT / 1e7, result, far)
    return np.where(np.isfinite(column), result, column)


def _rounded_up(column: Reals, digits: int) -> Reals:
    """Return at least what rounding gives."""
    return -_rounded_down(-column, digits)
