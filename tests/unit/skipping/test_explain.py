"""Explanations: what each conjunct excludes alone, and why a part is skipped, in words."""

from __future__ import annotations

from instar.skipping import Verdict, explain, explain_part, parse_filter
from instar.skipping.expression import conjuncts
from testbed.league import PARTS, SCHEMA, part
from tests.unit.skipping.foreseen import bounds_of

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
        == "(n is not null) is never true: n has only null (100 null)"
    )
    read = explain_part(parse_filter("id >= 19000", SCHEMA), BOUNDS, ROWS, 195)
    assert read.verdict is Verdict.READ
    assert read.text == "(id >= 19000) may be true: id is between 19500 and 19599"


def test_conditions_are_shown_in_the_words_of_sql() -> None:
    """Values look like their types, and functions have the names that Spark has for them."""
    shown = {
        "date_trunc('day', ts) = '2025-01-02'": "(date_trunc('day', ts) = timestamp'2025-01-02 00:00:00')",
        "d >= '2025-01-02' or d is null": "((d >= date'2025-01-02') or (d is null))",
        "ts < timestamp'2025-01-02 03:04:05.5'": "(ts < timestamp'2025-01-02 03:04:05.500000')",
        "ts + interval 1 day > now()": "((ts + interval '86400' second) > now())",
        "f = 0.0000000010": "(f = cast(0.0000000010 as double))",
        "s like 'a%' and not s in ('it\\'s', 'b')": "(s like 'a%') and (not (s in ('it\\'s', 'b')))",
        "if(id > 1, true, false)": "if((id > 1), true, false)",
        "case when id > 1 then a else -b end = 2": "(case when (id > 1) then a else (- b) end = 2)",
        "try_add(a, 1) = try_cast(s as int)": "(try_add(a, 1) = try_cast(s as int))",
        "to_utc_timestamp(ts, 'UTC') > ts": "(to_utc_timestamp(ts, 'UTC') > ts)",
    }
    said = {text: " and ".join(map(str, conjuncts(parse_filter(text, SCHEMA)))) for text in shown}
    assert said == shown
