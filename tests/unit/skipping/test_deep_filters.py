"""Filters of any size: what is nested too deeply, or too long a number, decides nothing."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

import instar
from instar.errors import UsageError
from instar.schema import parse_schema_ddl
from instar.skipping import (
    Anything,
    Call,
    Expression,
    decide,
    explain,
    parse_catalyst,
    parse_filter,
    prune,
)
from instar.skipping.expression import DEEPEST
from tests.unit.skipping.foreseen import bounds_of, parts_read

SCHEMA = parse_schema_ddl("i int, s string, d date")
LEVELS = 1000
DIGITS = "9" * 5001
DEEP = {
    "parentheses": "(" * LEVELS + "i > 1" + ")" * LEVELS,
    "calls": "abs(" * LEVELS + "i" + ")" * LEVELS + " > 1",
    "sums": " + ".join(["i"] * LEVELS) + " > 1",
    "negations": "not " * LEVELS + "(i > 1)",
    "signs": "- " * LEVELS + "i > 1",
    "branches": "case when i > 1 then " * LEVELS + "1" + " end" * LEVELS + " > 0",
    "conditions": "i > 1 and (i < 5 or (" * LEVELS + "i = 1" + "))" * LEVELS,
    "digits": f"i > {DIGITS}",
    "digits of a bigint": f"i > {DIGITS}L",
    "digits of a negative number": f"i > -{DIGITS}",
    "digits after the point": f"i > 0.{DIGITS}",
    "an exponent": "i > 1e99999",
    "digits of an interval": f"d > d + interval '{DIGITS}' day",
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_what_is_too_deep_or_too_long_decides_nothing(text: str) -> None:
    """Such a filter reads everything, and can be shown and explained."""
    parts: list[dict[str, list[Any]]] = [{"i": [3], "s": ["a"], "d": [0]}]
    bounds, rows = bounds_of(parts, SCHEMA)
    expression = parse_filter(text, SCHEMA)
    assert decide(expression, bounds, rows).read.all()
    assert explain(expression, bounds, rows).read == 1
    assert len(str(expression)) < 10_000
    assert hash(expression) == hash(expression)


@pytest.mark.parametrize("name", ["sums", "digits", "an exponent"])
def test_other_conditions_still_count(name: str) -> None:
    """A condition that decides nothing leaves it to the others."""
    assert parts_read(f"{DEEP[name]} and i = 5", "i int, s string", [{"i": [3], "s": ["a"]}]) == []


def test_a_chain_of_conditions_is_not_deep() -> None:
    """Thousands of conditions side by side are one level, and decide as one does."""
    parts = [{"i": [0, 9]}, {"i": [5000, 5009]}]
    assert parts_read(" or ".join(f"i = {10 * number + 5}" for number in range(400)), "i int", parts) == [0]
    assert parts_read(" || ".join(["s"] * 500) + " < 'b'", "s string", [{"s": ["a"]}, {"s": ["c"]}]) == [0]
    assert parts_read(" and ".join(f"i <> {number}" for number in range(400)), "i int", parts) == [1]


def nested(name: str, levels: int) -> str:
    """Return the JSON of a class of Catalyst around itself around a column."""
    package = "org.apache.spark.sql.catalyst.expressions."
    column = {"class": f"{package}AttributeReference", "num-children": 0, "name": "i", "dataType": "integer"}
    outer = {"class": f"{package}{name}", "num-children": 1, "child": 0, "failOnError": True}
    return json.dumps([*([outer] * levels), column])


def depth(expression: Expression) -> int:
    """Return how deep an expression is nested."""
    found, level = 0, [expression]
    while level:
        level = [arg for one in level if isinstance(one, Call) for arg in one.args]
        found += 1
    return found


@pytest.mark.parametrize("name", ["Abs", "Not", "KnownNotNull", "IsNull"])
def test_what_spark_prints_may_be_nested_at_will(name: str) -> None:
    """An expression of Catalyst is cut where it is too deep, and what it is cut to is anything."""
    fields = {field.name: field for field in SCHEMA.fields}
    assert depth(parse_catalyst(nested(name, 10_000), fields, "UTC")) <= DEEPEST + 1
    assert not isinstance(parse_catalyst(nested("Abs", DEEPEST // 2), fields, "UTC"), Anything)


def test_nested_conditions_are_not_looked_at_again_and_again() -> None:
    """AND inside OR inside AND takes no longer a level than the level before: 16 levels, and not 65,536."""
    text = "i < 4 and (j > 3 or (" * 16 + "i < j" + "))" * 16
    asked: list[Any] = []

    class Counting(dict[int, Any]):
        def get(self, key: int, default: Any = None) -> Any:  # noqa: ANN401 -- as dict has it
            asked.append(key)
            return super().get(key, default)

    schema = parse_schema_ddl("i int, j int")
    bounds, rows = bounds_of([{"i": [0, 5], "j": [1, 7]}], schema)
    expression = parse_filter(text, schema)
    scope = prune.make_scope(expression, bounds, rows, None)
    prune.outcomes(expression, type(scope)(Counting(scope.columns), scope.now))
    assert len(asked) < 20_000


@pytest.mark.parametrize("name", ["parentheses", "sums", "digits"])
def test_rows_are_not_filtered_by_what_is_too_deep(name: str, tmp_path: Any) -> None:  # noqa: ANN401 -- a path
    """Reading in process refuses such a filter in words, and `explain` shows it."""
    with instar.open(tmp_path / "lake") as store:
        table = store.create_table("t", "i int")
        table.append(pa.table({"i": pa.array([3], pa.int32())}))
        assert table.explain(DEEP[name]).read == 1
        with pytest.raises(UsageError, match="cannot be decided without Spark"):
            table.snapshot().to_arrow(where=DEEP[name])
