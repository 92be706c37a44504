"""Functions of floating point numbers that keep or turn round the order: roots, powers, logarithms.

Java's functions are at most one step away from the exact result, and so is what is computed here; bounds have
room for both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from instar.skipping.kernels.outcome import Kernel, Outcome, unknown
from instar.skipping.spans import NO, YES, Mask, Real, full_span, single

if TYPE_CHECKING:
    from instar.skipping.expression import Call
    from instar.skipping.kernels.floating import Reals

__all__ = ["increasing", "logarithm", "power"]

_STEPS: Final = 4
_MORE_STEPS: Final = 16
"""For a quotient of two results, each of which may be a step away."""
_EXACT: Final = 2.0**52


def increasing(
    function: np.ufunc,
    above: float = -np.inf,
    *,
    least: float = -np.inf,
    includes: bool = True,
    null_outside: bool = False,
    steps: int = _STEPS,
) -> Kernel:
    """Make a kernel of a function that grows with its argument, from some number on.

    Below that number, and at it unless the domain includes it, it is NaN, or null if so said. `least` is the
    least that it ever is, and `steps` how far apart Java's result and the one here may be.
    """

    def kernel(_: Call, span: Real) -> Outcome:
        outside = span.some & ((span.lo < above) if includes else (span.lo <= above))
        inside = span.some & ((span.hi >= above) if includes else (span.hi > above))
        with np.errstate(all="ignore"):
            lo, hi = (function(np.maximum(column, above)) for column in (span.lo, span.hi))
        found = Real(*_outwards(lo, hi, least, steps), inside, span.nan | (NO if null_outside else outside))
        return Outcome((found,), outside if null_outside else NO)

    return kernel


def power(call: Call, base: Real, by: Real) -> Outcome:
    """Raise to a power that is known: it grows with its base or falls, from zero on or everywhere."""
    exponent = float(by.lo[0]) if by.lo.size == 1 and single(by).all() else 0.0
    if not np.isfinite(exponent) or exponent == 0:
        return unknown(call)
    whole = abs(exponent) < _EXACT and exponent == int(exponent)
    negative: Mask = base.some & (base.lo < 0)
    if negative.any() and not (whole and exponent > 0):
        return unknown(call)
    with np.errstate(all="ignore"):
        corners = np.power(base.lo, exponent), np.power(base.hi, exponent)
    lo, hi = np.minimum(*corners), np.maximum(*corners)
    if whole and exponent % 2 == 0:
        lo = np.where((base.lo < 0) & (base.hi > 0), 0.0, lo)
    least = np.where((base.lo >= 0) | (exponent % 2 == 0), 0.0, -np.inf)
    return Outcome((Real(*_outwards(lo, hi, least), base.some, base.nan),))


def logarithm(call: Call, base: Real, value: Real) -> Outcome:
    """Take the logarithm to a base that is known. It grows if the base is above 1; below 0 it is null."""
    number = float(base.lo[0]) if base.lo.size == 1 and single(base).all() else 0.0
    if not 1 < number < np.inf:
        return Outcome((full_span(call.type),), YES)
    with np.errstate(all="ignore"):
        lo, hi = (np.log(np.maximum(column, 0.0)) / np.log(number) for column in (value.lo, value.hi))
    found = Real(*_outwards(lo, hi, -np.inf, _MORE_STEPS), value.some & (value.hi > 0), value.nan)
    return Outcome((found,), value.some & (value.lo <= 0))


def _outwards(lo: Reals, hi: Reals, least: Reals | float, steps: int = _STEPS) -> tuple[Reals, Reals]:
    with np.errstate(all="ignore"):
        for _ in range(steps):
            lo, hi = np.nextafter(lo, -np.inf), np.nextafter(hi, np.inf)
    lost = np.isnan(lo) | np.isnan(hi)
    return np.where(lost, least, np.maximum(lo, least)), np.where(lost, np.inf, hi)
