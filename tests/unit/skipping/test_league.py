"""The league through SQL text: as many parts as there must be, and no more."""

from __future__ import annotations

import pytest

from bench.skipping.filters import league_filters
from instar.skipping import decide, fields_needed, parse_filter
from testbed.league import FILTERS, NOW, PARTS, SCHEMA, part
from tests.unit.skipping.foreseen import bounds_of

BOUNDS, ROWS = bounds_of([part(number) for number in range(PARTS)], SCHEMA)


@pytest.mark.parametrize(("text", "ideal"), FILTERS.items())
def test_exactly_the_parts_with_a_match_are_read(text: str, ideal: int) -> None:
    """Each of the twenty filters reads the ideal number of parts."""
    expression = parse_filter(text, SCHEMA)
    needed = {field_id: BOUNDS[field_id] for field_id in fields_needed(expression)}
    decision = decide(expression, needed, ROWS, (NOW, NOW + 1_000_000))
    assert int(decision.read.sum()) == ideal


@pytest.mark.parametrize("text", FILTERS)
def test_no_parts_are_decided_as_well(text: str) -> None:
    """Whatever the filter, there may be no part left to decide on."""
    none = {field_id: bounds.slice(0, 0) for field_id, bounds in BOUNDS.items()}
    assert decide(parse_filter(text, SCHEMA), none, ROWS.slice(0, 0)).read.tolist() == []


def test_what_is_certain_is_true_for_every_row() -> None:
    """Of twenty filters, none is called certain in a part with a row that it is not true for."""
    some = 0
    for text, condition in zip(FILTERS, league_filters(), strict=True):
        expression = parse_filter(text, SCHEMA)
        certain = decide(expression, BOUNDS, ROWS, (NOW, NOW + 1_000_000)).certain.nonzero()[0].tolist()
        each = ROWS[0].as_py()
        rows = {row for number in certain for row in range(number * each, (number + 1) * each)}
        assert rows <= condition.ids, text
        some += bool(certain)
    assert some > 10


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("id >= 19000", 10),
        ("id >= 19050", 9),
        ("id >= 0", PARTS),
        ("id >= 19000 and d is not null and id <> 19555", 9),
        ("not (id >= 100) or id > 19899", 2),
        ("not (id < 19000 or id > 19899)", 9),
        ("id >= 0 or 1 / (id - 5) > 0", PARTS - 1),  # which fails on a row
        ("id >= 0 and n >= 0", PARTS - 30),  # null for some rows of thirty parts
        ("rand() < 2", 0),
        ("true", PARTS),
    ],
)
def test_parts_are_certain_by_each_conjunct(text: str, parts: int) -> None:
    """A filter is certain where all of its conjuncts are, or one side of an OR that cannot fail."""
    assert int(decide(parse_filter(text, SCHEMA), BOUNDS, ROWS).certain.sum()) == parts
