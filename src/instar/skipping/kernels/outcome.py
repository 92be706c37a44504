"""`Outcome`: what a kernel gives back, and the few outcomes that all kernels share.

A kernel looks only at values: the interpreter adds what comes from null and failing arguments, and
forgets whatever a kernel says about parts in which an argument has no value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Final

import numpy as np

from instar.skipping.exact import Ints, compact, constant
from instar.skipping.functions import Mode
from instar.skipping.representation import limits, name_of
from instar.skipping.spans import NO, YES, Mask, Span, Truth, Whole, full_span, restrict
from instar.skipping.zones import DAY

if TYPE_CHECKING:
    from instar.schema import Type
    from instar.skipping.expression import Call, Expression

__all__ = ["Kernel", "Outcome", "any_value", "fitted", "growing", "predicate", "unknown", "wary"]

_DAYS: Final = {"date": 1, "timestamp": DAY, "timestamp_ntz": DAY}
_MARGIN: Final = 400
"""Days: more than any function of dates goes back or on by itself."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The values that a call may have, and where it may be null or fail although its arguments are not."""

    spans: tuple[Span, ...]
    null: Mask = field(default_factory=lambda: NO)
    fail: Mask = field(default_factory=lambda: NO)


Kernel = Callable[..., Outcome]
"""From a call and one span for each argument to an outcome."""


def unknown(call: Call, *_: Span) -> Outcome:
    """Say that nothing is known: any value, null or an error."""
    return Outcome((full_span(call.type),), YES, YES)


def any_value(call: Call, *_: Span) -> Outcome:
    """Say that there is some value, neither null nor an error."""
    return Outcome((full_span(call.type),))


def predicate(true: Mask, false: Mask) -> Outcome:
    """Return the outcome of a test."""
    return Outcome((Truth(true, false),))


def wary(kernel: Kernel) -> Kernel:
    """Say that anything may happen to dates and times in the first and the last days that their types reach.

    Steps on the way to a result, such as the first day of a year or of the next week, may not fit there, and
    then Spark wraps around in some functions and fails in others.
    """

    def careful(call: Call, *spans: Span) -> Outcome:
        outcome = kernel(call, *spans)
        near = reduce(np.logical_or, map(_near_the_end, call.args, spans), NO)
        if not near.any():
            return outcome
        others = tuple(restrict(span, ~near) for span in outcome.spans)
        return Outcome((*others, full_span(call.type, near)), outcome.null | near, outcome.fail | near)

    return careful


def growing(step: Callable[[Ints], Ints]) -> Kernel:
    """Make a kernel from a function of integers that grows with its argument, or stays the same.

    What does not fit into the type of the call may wrap around, be null or fail.
    """

    def kernel(call: Call, span: Whole) -> Outcome:
        return fitted(step(span.lo), step(span.hi), call.type, Mode.UNKNOWN, wraps=True)

    return kernel


def _near_the_end(arg: Expression, span: Span) -> Mask:
    unit = _DAYS.get(name_of(arg.type))
    if unit is None or not isinstance(span, Whole):
        return NO
    least, most = limits(arg.type)
    margin = _MARGIN * unit
    return np.asarray((span.lo < least + margin) | (span.hi > most - margin), np.bool_)


def fitted(lo: Ints, hi: Ints, type_: Type, mode: Mode, *, wraps: bool) -> Outcome:
    """Fit a range of exact integers into a type, and say what becomes of those outside.

    They fail or are null, as the mode says; or, in legacy mode and if the function does that, they wrap
    around, and then any value is possible.
    """
    least, most = limits(type_)
    over = np.asarray((lo < least) | (hi > most), np.bool_)
    if not over.any():
        return Outcome((Whole(compact(lo), compact(hi), YES),))
    bottom, top = constant(least), constant(most)
    wrapped = wraps and mode.may_wrap
    null = over if mode in (Mode.TRY, Mode.UNKNOWN) or (mode is Mode.LEGACY and not wraps) else NO
    fail = over if mode.may_fail else NO
    low, high = np.minimum(np.maximum(lo, bottom), top), np.maximum(np.minimum(hi, top), bottom)
    some = YES if wrapped else np.asarray((lo <= most) & (hi >= least), np.bool_)
    if wrapped:
        low, high = np.where(over, bottom, low), np.where(over, top, high)
    return Outcome((Whole(compact(low), compact(high), some),), null, fail)
