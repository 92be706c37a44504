"""Results: everything that an expression may come to, in all parts at once.

Null and failure are apart from values. Values are a few alternative spans, so that a CASE keeps the
values of its branches apart; past `MOST` of them they are merged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Final

import numpy as np

from instar.skipping.spans import NO, YES, Mask, Opaque, Span, Truth, full_span, hull, live, restrict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from instar.schema import Type

__all__ = ["MOST", "Results", "any_of", "anything", "nothing", "null_only", "truth_of"]

MOST: Final = 8
"""The most alternatives that are kept apart."""


@dataclass(frozen=True, slots=True)
class Results:
    """For every part: may it be null, may it fail, and which values may it have?"""

    null: Mask
    fail: Mask
    spans: tuple[Span, ...]

    @property
    def some(self) -> Mask:
        """Where a value is possible."""
        return reduce(np.logical_or, (live(span) for span in self.spans), NO)

    @property
    def whole(self) -> Span:
        """All alternatives as one span."""
        return hull(self.spans) if self.spans else Opaque(NO)

    @property
    def truth(self) -> Truth:
        """The possible truth values. What is not known to be a boolean may be either."""
        spans = [span if isinstance(span, Truth) else Truth(live(span), live(span)) for span in self.spans]
        return Truth(
            reduce(np.logical_or, (span.true for span in spans), NO),
            reduce(np.logical_or, (span.false for span in spans), NO),
        )

    def where(self, mask: Mask) -> Results:
        """Keep what is possible only in the parts of a mask."""
        return Results(self.null & mask, self.fail & mask, tuple(restrict(span, mask) for span in self.spans))

    def or_null(self, mask: Mask) -> Results:
        """Let it be null too, where the mask says so."""
        return replace(self, null=self.null | mask)

    def or_fail(self, mask: Mask) -> Results:
        """Let it fail too, where the mask says so."""
        return replace(self, fail=self.fail | mask)


def anything(type_: Type | None) -> Results:
    """Return any value, null or an error."""
    return Results(YES, YES, (full_span(type_),))


def nothing() -> Results:
    """Return the results of what is never evaluated."""
    return Results(NO, NO, ())


def null_only() -> Results:
    """Return the results of what is always null."""
    return Results(YES, NO, ())


def truth_of(true: Mask, false: Mask, null: Mask = NO, fail: Mask = NO) -> Results:
    """Return the results of a predicate."""
    return Results(null, fail, (Truth(true, false),))


def any_of(results: Iterable[Results]) -> Results:
    """Return all that any of several may come to."""
    given = list(results)
    null = reduce(np.logical_or, (result.null for result in given), NO)
    fail = reduce(np.logical_or, (result.fail for result in given), NO)
    return Results(null, fail, merged([span for result in given for span in result.spans]))


def merged(spans: list[Span]) -> tuple[Span, ...]:
    """Drop alternatives that no part has, and merge truth values and what is past the limit."""
    spans = [span for span in spans if live(span).any()]
    if len(spans) <= 1:
        return tuple(spans)
    kinds = {type(span) for span in spans}
    if len(kinds) > 1:
        return (Opaque(reduce(np.logical_or, (live(span) for span in spans))),)
    if isinstance(spans[0], Truth | Opaque) or len(spans) > MOST:
        return (hull(spans),)
    return tuple(spans)
