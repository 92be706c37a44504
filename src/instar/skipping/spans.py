"""Spans: the possible values of one expression in all parts at once, apart from null and errors.

Each span is a row of inclusive ranges, one for each part, held as columns. `some` says where there is a
value at all; where it is false, the bounds mean nothing. Masks and columns of one row broadcast.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from instar.skipping import strings
from instar.skipping.exact import Ints, compact, constant
from instar.skipping.representation import Representation, limits, representation_of
from instar.skipping.strings import Mask, Strings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from instar.schema import Type

__all__ = [
    "NO",
    "YES",
    "Mask",
    "Opaque",
    "Orders",
    "Real",
    "Span",
    "Text",
    "Truth",
    "Whole",
    "choose",
    "full_span",
    "hull",
    "live",
    "meet",
    "orders",
    "representation_of_span",
    "restrict",
    "single",
]

YES: Final[Mask] = np.array([True])
NO: Final[Mask] = np.array([False])

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Whole:
    """Integers, and all that is held as integers."""

    lo: Ints
    hi: Ints
    some: Mask


@dataclass(frozen=True, slots=True)
class Real:
    """Floating point numbers: a range of those that are numbers, and whether NaN is possible."""

    lo: Reals
    hi: Reals
    some: Mask
    nan: Mask


@dataclass(frozen=True, slots=True)
class Text:
    """Strings or binaries, in the order of bytes; a missing `hi` means no upper bound."""

    lo: Strings
    hi: Strings
    some: Mask


@dataclass(frozen=True, slots=True)
class Truth:
    """Booleans: whether true is possible, and whether false is."""

    true: Mask
    false: Mask


@dataclass(frozen=True, slots=True)
class Opaque:
    """Values of a type that has no ranges here."""

    some: Mask


Span = Whole | Real | Text | Truth | Opaque


_KINDS: Final = {
    Whole: Representation.WHOLE,
    Real: Representation.REAL,
    Text: Representation.TEXT,
    Truth: Representation.TRUTH,
    Opaque: Representation.OPAQUE,
}


@dataclass(frozen=True, slots=True)
class Orders:
    """How a value of one span may compare with a value of another."""

    less: Mask
    equal: Mask
    greater: Mask


def full_span(type_: Type | None, some: Mask = YES) -> Span:
    """Return every value of a type."""
    match representation_of(type_):
        case Representation.WHOLE:
            low, high = limits(type_)
            return Whole(constant(low), constant(high), some)
        case Representation.REAL:
            return Real(np.array([-np.inf]), np.array([np.inf]), some, some)
        case Representation.TEXT:
            return Text(strings.constant(b""), strings.constant(None), some)
        case Representation.TRUTH:
            return Truth(some, some)
    return Opaque(some)


def representation_of_span(span: Span) -> Representation:
    """Return the kind of type that a span holds values of."""
    return _KINDS[type(span)]


def live(span: Span) -> Mask:
    """Tell where a span has any value."""
    match span:
        case Truth(true=true, false=false):
            return true | false
        case Real(some=some, nan=nan):
            return some | nan
    return span.some


def restrict(span: Span, mask: Mask) -> Span:
    """Keep values only where a mask says so."""
    match span:
        case Whole(lo=lo, hi=hi, some=some):
            return Whole(lo, hi, some & mask)
        case Real(lo=lo, hi=hi, some=some, nan=nan):
            return Real(lo, hi, some & mask, nan & mask)
        case Text(lo=lo, hi=hi, some=some):
            return Text(lo, hi, some & mask)
        case Truth(true=true, false=false):
            return Truth(true & mask, false & mask)
        case Opaque(some=some):
            return Opaque(some & mask)


def hull(spans: Sequence[Span]) -> Span:
    """Return the least single span that has all the values of some, which are of one kind."""
    return reduce(_hull, spans)


def choose(mask: Mask, then: Span, otherwise: Span) -> Span:
    """Take one span where the mask says so, and the other elsewhere."""
    return _hull(restrict(then, mask), restrict(otherwise, ~mask))


def meet(left: Span, right: Span) -> Span:
    """Return the values that two spans have in common."""
    match left, right:
        case Whole(), Whole():
            lo, hi = np.maximum(left.lo, right.lo), np.minimum(left.hi, right.hi)
            some = left.some & right.some & np.asarray(lo <= hi, np.bool_)
            return Whole(compact(lo), compact(hi), some)
        case Real(), Real():
            low, high = np.maximum(left.lo, right.lo), np.minimum(left.hi, right.hi)
            return Real(low, high, left.some & right.some & (low <= high), left.nan & right.nan)
        case Text(), Text():
            # The greater of two lower bounds: neither of them is ever missing.
            first = strings.greater_bound(left.lo, right.lo)
            last = strings.lesser_bound(left.hi, right.hi)
            return Text(first, last, left.some & right.some & strings.not_above(first, last))
        case Truth(), Truth():
            return Truth(left.true & right.true, left.false & right.false)
    return restrict(left, live(right))


def orders(left: Span, right: Span) -> Orders:
    """Say which of less, equal and greater are possible. NaN equals itself and is above all numbers."""
    match left, right:
        case Text(), Text():
            both = left.some & right.some
            return Orders(
                both & strings.strictly_below(left.lo, right.hi),
                both & strings.not_above(left.lo, right.hi) & strings.not_above(right.lo, left.hi),
                both & strings.strictly_below(right.lo, left.hi),
            )
        case Truth(), Truth():
            return Orders(
                left.false & right.true,
                (left.true & right.true) | (left.false & right.false),
                left.true & right.false,
            )
        case Real(), Real():
            found = _compare_ranges(left, right)
            return Orders(
                found.less | (left.some & right.nan),
                found.equal | (left.nan & right.nan),
                found.greater | (left.nan & right.some),
            )
        case Whole(), Whole():
            return _compare_ranges(left, right)
    both = live(left) & live(right)
    return Orders(both, both, both)


def single(span: Span) -> Mask:
    """Tell where a span has exactly one value, and which it is."""
    match span:
        case Whole(lo=lo, hi=hi, some=some):
            return some & np.asarray(lo == hi, np.bool_)
        case Real(lo=lo, hi=hi, some=some, nan=nan):
            return some & np.asarray(lo == hi, np.bool_) & ~nan
        case Text(lo=lo, hi=hi, some=some):
            return some & ~strings.strictly_below(lo, hi)
        case Truth(true=true, false=false):
            return true ^ false
    return NO


def _compare_ranges(left: Whole | Real, right: Whole | Real) -> Orders:
    both = left.some & right.some
    overlap = np.asarray((left.lo <= right.hi) & (right.lo <= left.hi), np.bool_)
    return Orders(
        both & np.asarray(left.lo < right.hi, np.bool_),
        both & overlap,
        both & np.asarray(right.lo < left.hi, np.bool_),
    )


def _hull(left: Span, right: Span) -> Span:
    match left, right:
        case Whole(), Whole():
            lo, hi = _joined(left, right)
            return Whole(compact(lo), compact(hi), left.some | right.some)
        case Real(), Real():
            lo, hi = _joined(left, right)
            return Real(lo, hi, left.some | right.some, left.nan | right.nan)
        case Text(), Text():
            low = strings.choose(
                left.some & right.some,
                strings.least(left.lo, right.lo),
                strings.choose(left.some, left.lo, right.lo),
            )
            high = strings.choose(
                left.some & right.some,
                strings.greater_bound(left.hi, right.hi),
                strings.choose(left.some, left.hi, right.hi),
            )
            return Text(low, high, left.some | right.some)
        case Truth(), Truth():
            return Truth(left.true | right.true, left.false | right.false)
    return Opaque(live(left) | live(right))


def _joined(left: Whole | Real, right: Whole | Real) -> tuple[Any, Any]:
    both = left.some & right.some
    lo = np.where(both, np.minimum(left.lo, right.lo), np.where(left.some, left.lo, right.lo))
    hi = np.where(both, np.maximum(left.hi, right.hi), np.where(left.some, left.hi, right.hi))
    return lo, hi
