"""The league through Catalyst: filters as Spark itself analyzes and optimizes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.types import StructType

from instar.schema import spark_json
from instar.skipping import decide, parse_catalyst
from testbed.league import FILTERS, NOW, PARTS, SCHEMA, part
from tests.unit.skipping.foreseen import bounds_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BOUNDS, ROWS = bounds_of([part(number) for number in range(PARTS)], SCHEMA)
FIELDS = {field.name: field for field in SCHEMA.fields}


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> DataFrame:
    """Return an empty DataFrame with the league's columns, which the optimizer does not know to be empty."""
    return spark.createDataFrame([], StructType.fromJson(spark_json(SCHEMA)))


def printed(table: DataFrame, text: str, stage: str) -> str:
    """Return a filter over the league's columns as Spark prints it."""
    plan = getattr(table.where(text)._jdf.queryExecution(), stage)()
    while plan.getClass().getSimpleName() != "Filter":
        plan = plan.children().apply(0)
    return str(plan.condition().toJSON())


@pytest.mark.parametrize("stage", ["analyzed", "optimizedPlan"])
def test_exactly_the_parts_with_a_match_are_read(table: DataFrame, stage: str) -> None:
    """Each of the twenty filters reads the ideal number of parts, analyzed and optimized alike."""
    found = {}
    for text, ideal in FILTERS.items():
        if "now()" in text and stage == "optimizedPlan":
            continue  # Spark's own clock is in it by then
        json_text = printed(table, text, stage)
        likes = [place for place, node in enumerate(json.loads(json_text)) if node["class"].endswith(".Like")]
        lost = {place: {"escapeChar": "\\"} for place in likes}
        expression = parse_catalyst(json_text, FIELDS, "UTC", lost)
        read = int(decide(expression, BOUNDS, ROWS, (NOW, NOW + 1_000_000)).read.sum())
        if read != ideal:
            found[text] = (read, ideal, str(expression))
    assert found == {}


def test_what_spark_does_not_print_is_supplied(table: DataFrame) -> None:
    """The members of a set, escapes and modes come from the caller, by the position of the node."""
    numbers = ", ".join(str(number) for number in (5, 10_050, *range(19_999, 20_020)))
    text = printed(table, f"id in ({numbers})", "optimizedPlan")
    place = next(place for place, node in enumerate(json.loads(text)) if node["class"].endswith("InSet"))
    without = parse_catalyst(text, FIELDS, "UTC")
    assert decide(without, BOUNDS, ROWS).read.all()
    lost = {place: {"hset": [str(number) for number in (5, 10_050, *range(19_999, 20_020))]}}
    assert int(decide(parse_catalyst(text, FIELDS, "UTC", lost), BOUNDS, ROWS).read.sum()) == 3
    like = printed(table, "s like 'k!_%' escape '!'", "optimizedPlan")
    place = next(place for place, node in enumerate(json.loads(like)) if node["class"].endswith("Like"))
    assert decide(parse_catalyst(like, FIELDS, "UTC"), BOUNDS, ROWS).read.all()
    known = parse_catalyst(like, FIELDS, "UTC", {place: {"escapeChar": "!"}})
    assert not decide(known, BOUNDS, ROWS).read.any()


def test_nodes_of_an_unknown_class_may_be_anything(table: DataFrame) -> None:
    """A function that is not understood keeps only what nothing else excludes."""
    text = printed(table, "soundex(s) = 'K000' and id < 50", "optimizedPlan")
    assert int(decide(parse_catalyst(text, FIELDS, "UTC"), BOUNDS, ROWS).read.sum()) == 1
    assert decide(parse_catalyst("[]", FIELDS, "UTC"), BOUNDS, ROWS).read.all()
    assert decide(parse_catalyst("nonsense", FIELDS, "UTC"), BOUNDS, ROWS).read.all()
