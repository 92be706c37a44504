"""The greater and the lesser of two values that are not null; NaN is the greatest of all."""

from __future__ import annotations

import numpy as np

from instar.skipping import strings
from instar.skipping.spans import Opaque, Real, Span, Text, Truth, Whole, live

__all__ = ["greater", "lesser"]


def greater(left: Span, right: Span) -> Span:
    """Return what the greater of two values may be."""
    match left, right:
        case Whole(), Whole():
            return Whole(np.maximum(left.lo, right.lo), np.maximum(left.hi, right.hi), left.some & right.some)
        case Real(), Real():
            nan = (left.nan & (right.some | right.nan)) | (right.nan & (left.some | left.nan))
            return Real(
                np.maximum(left.lo, right.lo), np.maximum(left.hi, right.hi), left.some & right.some, nan
            )
        case Text(), Text():
            # A lower bound is never missing, so the greater of two is as for upper bounds.
            low = strings.greater_bound(left.lo, right.lo)
            return Text(low, strings.greater_bound(left.hi, right.hi), left.some & right.some)
        case Truth(), Truth():
            both = live(left) & live(right)
            return Truth(both & (left.true | right.true), left.false & right.false)
    return Opaque(live(left) & live(right))


def lesser(left: Span, right: Span) -> Span:
    """Return what the lesser of two values may be."""
    match left, right:
        case Whole(), Whole():
            return Whole(np.minimum(left.lo, right.lo), np.minimum(left.hi, right.hi), left.some & right.some)
        case Real(), Real():
            # With a NaN on one side it is the other side.
            lo = np.where(
                left.some & right.some, np.minimum(left.lo, right.lo), _either(left, right, low=True)
            )
            hi = np.where(
                left.some & right.some, np.minimum(left.hi, right.hi), _either(left, right, low=False)
            )
            hi = np.where(left.some & right.nan, np.maximum(hi, left.hi), hi)
            hi = np.where(right.some & left.nan, np.maximum(hi, right.hi), hi)
            some = (left.some & (right.some | right.nan)) | (right.some & left.nan)
            return Real(lo, hi, some, left.nan & right.nan)
        case Text(), Text():
            return Text(
                strings.least(left.lo, right.lo),
                strings.lesser_bound(left.hi, right.hi),
                left.some & right.some,
            )
        case Truth(), Truth():
            both = live(left) & live(right)
            return Truth(left.true & right.true, both & (left.false | right.false))
    return Opaque(live(left) & live(right))


def _either(left: Real, right: Real, *, low: bool) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Take the bound of whichever side has numbers."""
    return np.where(left.some, left.lo if low else left.hi, right.lo if low else right.hi)
