"""Laws of spans: uniting loses nothing, meeting adds nothing, and order is judged alike from both sides."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from instar.skipping import strings
from instar.skipping.results import Results, any_of
from instar.skipping.spans import NO, Real, Span, Text, Whole, hull, meet, orders, restrict

NUMBERS = st.integers(-3, 3)
FLOATS = st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 1.5, np.inf])
TEXTS = st.sampled_from([b"", b"a", b"ab", b"b", b"\xf4\x8f\xbf\xbf"])


def mask(value: bool) -> np.ndarray:
    """Make a mask of one part."""
    return np.array([value])


@st.composite
def wholes(draw: st.DrawFn) -> Span:
    """Draw a range of integers, or nothing."""
    low, high = sorted((draw(NUMBERS), draw(NUMBERS)))
    return Whole(np.array([low]), np.array([high]), mask(draw(st.booleans())))


@st.composite
def reals(draw: st.DrawFn) -> Span:
    """Draw a range of doubles, perhaps with NaN."""
    low, high = sorted((draw(FLOATS), draw(FLOATS)))
    return Real(np.array([low]), np.array([high]), mask(draw(st.booleans())), mask(draw(st.booleans())))


@st.composite
def texts(draw: st.DrawFn) -> Span:
    """Draw a range of strings, perhaps without an end."""
    low, high = sorted((draw(TEXTS), draw(TEXTS)))
    end = draw(st.sampled_from([high, None]))
    return Text(strings.constant(low), strings.constant(end), mask(draw(st.booleans())))


PAIRS = st.one_of(st.tuples(wholes(), wholes()), st.tuples(reals(), reals()), st.tuples(texts(), texts()))


def values(span: Span) -> set[object]:
    """List the sample values that a span has; NaN by its name."""
    found: set[object] = set()
    match span:
        case Whole(lo=lo, hi=hi, some=some):
            found = {value for value in range(-4, 5) if some[0] and lo[0] <= value <= hi[0]}
        case Real(lo=lo, hi=hi, some=some, nan=nan):
            samples = (-np.inf, -1.0, 0.0, 1.0, 1.5, np.inf)
            found = {value for value in samples if some[0] and lo[0] <= value <= hi[0]} | (
                {"NaN"} if nan[0] else set()
            )
        case Text(lo=low, hi=high, some=some):
            first, last = low[0].as_py(), high[0].as_py()
            pieces = (b"", b"a", b"aa", b"ab", b"b", b"c", b"\xf4\x8f\xbf\xbf", b"\xf4\x8f\xbf\xbfa")
            found = {
                value for value in pieces if some[0] and first <= value and (last is None or value <= last)
            }
    return found


@given(PAIRS)
def test_a_hull_has_the_values_of_both(pair: tuple[Span, Span]) -> None:
    """Uniting keeps every value, in either order, and a span united with itself is itself."""
    left, right = pair
    assert values(left) | values(right) <= values(hull([left, right]))
    assert values(hull([left, right])) == values(hull([right, left]))
    assert values(hull([left, left])) == values(left)


@given(PAIRS)
def test_a_meeting_has_exactly_what_is_common(pair: tuple[Span, Span]) -> None:
    """A value is in the meeting if and only if it is in both; order does not matter."""
    left, right = pair
    assert values(meet(left, right)) == values(left) & values(right)
    assert values(meet(right, left)) == values(meet(left, right))
    assert values(meet(left, hull([left, right]))) == values(left)


@given(PAIRS)
def test_every_order_between_values_is_foreseen(pair: tuple[Span, Span]) -> None:
    """Whatever two values compare as is possible for their spans, and mirrored from the other side."""
    left, right = pair
    found, mirrored = orders(left, right), orders(right, left)

    def rank(value: object) -> tuple[int, object]:
        return (1, 0) if value == "NaN" else (0, value)

    for a in values(left):
        for b in values(right):
            x, y = rank(a), rank(b)
            assert (found.less if x < y else found.equal if x == y else found.greater)[0]
    assert (found.less[0], found.equal[0], found.greater[0]) == (
        mirrored.greater[0],
        mirrored.equal[0],
        mirrored.less[0],
    )


@given(PAIRS, st.booleans())
def test_alternatives_keep_all_values(pair: tuple[Span, Span], kept: bool) -> None:
    """Results of two branches have the values of both where they are reached, and none elsewhere."""
    left, right = pair
    both = any_of([Results(NO, NO, (left,)), Results(NO, NO, (right,)).where(mask(kept))])
    found = set().union(*(values(span) for span in both.spans)) if both.spans else set()
    assert found == values(left) | (values(right) if kept else set())
    assert values(restrict(left, mask(False))) == set()
