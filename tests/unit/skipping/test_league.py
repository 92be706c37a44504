"""The league through SQL text: as many parts as there must be, and no more."""

from __future__ import annotations

import pytest

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
