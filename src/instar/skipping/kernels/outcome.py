"""`Outcome`: what a kernel gives back, and the few outcomes that all kernels share.

A kernel looks only at values: the interpreter adds what comes from null and failing arguments, and
forgets whatever a kernel says about parts in which an argument has no value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from instar.skipping.exact import Ints, compact, constant
from instar.skipping.functions import Mode
from instar.skipping.kinds import limits
from instar.skipping.spans import NO, YES, Mask, Span, Truth, Whole, full_span

if TYPE_CHECKING:
    from instar.schema import Type
    from instar.skipping.expression import Call

__all__ = ["Kernel", "Outcome", "any_value", "fitted", "predicate", "unknown"]


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
