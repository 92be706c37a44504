"""The filter as a whole against brute force: every row of a skipped part is ruled out by what cannot fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.skipping.foreseen import parts_read

if TYPE_CHECKING:
    from collections.abc import Callable

Row = tuple[int | None, int | None]


@dataclass(frozen=True)
class Filter:
    """A filter, and how to tell that a row is ruled out: it is not true and does not fail."""

    text: str
    rules_out: Callable[[Row], bool]


def compare(column: int, name: str, value: int, *, less: bool) -> Filter:
    """Compare a column with a number: null is not true."""

    def out(row: Row) -> bool:
        found = row[column]
        return found is None or not (found < value if less else found > value)

    return Filter(f"{name} {'<' if less else '>'} {value}", out)


def divide(column: int, name: str, value: int) -> Filter:
    """Divide by a column: zero fails, which rules nothing out."""

    def out(row: Row) -> bool:
        found = row[column]
        return found is None or (found != 0 and not 6 / found > value)

    return Filter(f"6 / {name} > {value}", out)


NUMBERS = st.integers(-4, 4)
SIDES = st.sampled_from([(0, "i"), (1, "j")])
LEAVES = st.one_of(
    st.builds(
        lambda side, value, less: compare(side[0], side[1], value, less=less), SIDES, NUMBERS, st.booleans()
    ),
    st.builds(lambda side, value: divide(side[0], side[1], value), SIDES, NUMBERS),
    st.builds(lambda side: Filter(f"{side[1]} is null", lambda row: row[side[0]] is not None), SIDES),
    st.just(Filter("i < j", lambda row: row[0] is None or row[1] is None or row[0] >= row[1])),
    st.just(Filter("unheard_of(i)", lambda _: False)),
)


def both(left: Filter, right: Filter) -> Filter:
    """Join by AND: one side is enough to rule a row out."""
    return Filter(f"({left.text} and {right.text})", lambda row: left.rules_out(row) or right.rules_out(row))


def either(left: Filter, right: Filter) -> Filter:
    """Join by OR: both sides must rule it out."""
    return Filter(f"({left.text} or {right.text})", lambda row: left.rules_out(row) and right.rules_out(row))


FILTERS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.builds(both, inner, inner), st.builds(either, inner, inner)),
    max_leaves=6,
)
VALUES = st.one_of(st.none(), NUMBERS)


@given(FILTERS, st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=5))
def test_a_skipped_part_has_no_row_that_is_not_ruled_out(given_filter: Filter, rows: list[Row]) -> None:
    """AND rules out if one side does, OR if both do; narrowing one conjunct by another adds no mistakes."""
    part = {"i": [row[0] for row in rows], "j": [row[1] for row in rows]}
    if parts_read(given_filter.text, "i int, j int", [part]) == []:
        assert all(given_filter.rules_out(row) for row in rows)
