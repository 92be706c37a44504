"""Explanations: what each conjunct excludes alone, and why a part is skipped, in words."""

from __future__ import annotations

from instar.skipping import Verdict, explain, explain_part, parse_filter
from tests.unit.skipping.laboratory import bounds_of
from tests.unit.skipping.league import PARTS, SCHEMA, part

BOUNDS, ROWS = bounds_of([part(number) for number in range(PARTS)], SCHEMA)


def test_each_conjunct_is_counted_alone() -> None:
    """Two conjuncts that each exclude many parts leave what both need."""
    found = explain(parse_filter("id >= 10000 and id < 10100 and unheard_of(s)", SCHEMA), BOUNDS, ROWS)
    assert (found.total, found.read, found.skipped) == (200, 1, 199)
    assert [(one.text, one.excludes) for one in found.conjuncts] == [
        ("(id >= 10000)", 100),
        ("(id < 10100)", 99),
        ("UNHEARD_OF(s)", 0),
    ]


def test_the_deciding_bound_is_said_in_words() -> None:
    """A skipped part names the conjunct and the bounds that ruled it out."""
    expression = parse_filter("n is not null and id >= 19000", SCHEMA)
    skipped = explain_part(expression, BOUNDS, ROWS, 0)
    assert skipped.verdict is Verdict.SKIP
    assert skipped.text == "(id >= 19000) is never true: id is between 0 and 99"
    assert (
        explain_part(expression, BOUNDS, ROWS, 190).text
        == "is_not_null(n) is never true: n has only null (100 null)"
    )
    read = explain_part(parse_filter("id >= 19000", SCHEMA), BOUNDS, ROWS, 195)
    assert read.verdict is Verdict.READ
    assert read.text == "(id >= 19000) may be true: id is between 19500 and 19599"
