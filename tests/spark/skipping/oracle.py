"""Spark as the oracle: is a filter ever true, and does it ever fail, on rows that were skipped for it?

Many filters are asked in one query. Where one fails, the query is cut in halves until it is found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from instar.skipping.interpret import evaluate
from instar.skipping.prune import make_scope
from instar.skipping.representation import name_of
from instar.stats import bounds_columns
from tests.spark.skipping.poison import COLUMNS, SCHEMA, make_part, spark_literal, stats_of
from tests.unit.skipping.foreseen import allows, results_for

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from pyspark.sql import SparkSession

    from instar.schema import Type
    from instar.skipping import Expression
    from instar.skipping.results import Results
    from instar.skipping.spans import Mask

__all__ = [
    "SHAPE",
    "Case",
    "Claim",
    "Parts",
    "catalyst_json",
    "claim",
    "make_parts",
    "proved",
    "refuted",
    "register",
    "unforeseen",
]

SHAPE = "shape"
"""An empty view that the optimizer cannot see through."""


@dataclass(frozen=True)
class Parts:
    """Rows in parts, and the statistics that are known of them."""

    parts: list[dict[str, list[Any]]]
    bounds: dict[int, pa.RecordBatch]
    rows: pa.Array


@dataclass(frozen=True)
class Case:
    """A filter and the parts of which was proved that it is not true there, and does not fail either."""

    text: str
    parts: tuple[int, ...]
    front: str = "sql"


def make_parts(random: Random, count: int, rows: int) -> Parts:
    """Make parts with their statistics."""
    parts = [make_part(random, rows) for _ in range(count)]
    bounds = {
        leaf.id: bounds_columns(
            [stats_of(random, part[path[0]], COLUMNS[path[0]]) for part in parts], leaf.type
        )
        for path, leaf in SCHEMA.leaves()
    }
    return Parts(parts, bounds, pa.array([rows] * count, pa.int64()))


def register(spark: SparkSession, parts: Parts, name: str) -> None:
    """Make the rows of parts a view, which knows the part of each."""
    rows = []
    for number, part in enumerate(parts.parts):
        for values in zip(*part.values(), strict=True):
            literals = (
                spark_literal(value, type_) for value, type_ in zip(values, COLUMNS.values(), strict=True)
            )
            rows.append(f"({number}, {', '.join(literals)})")
    names = ", ".join(["part", *COLUMNS])
    shape = spark.createDataFrame([], ", ".join(f"{column} {type_}" for column, type_ in COLUMNS.items()))
    shape.createOrReplaceTempView(SHAPE)
    spark.sql(f"select * from values {', '.join(rows)} as t({names})").createOrReplaceTempView(name)


def proved(text: str, expression: Expression, parts: Parts, front: str = "sql") -> Case:
    """Interpret a filter as a whole, with Spark's order of evaluation.

    What is decided conjunct by conjunct goes further: there, an error in one may hide behind another.
    """
    result = evaluate(expression, make_scope(expression, parts.bounds, parts.rows, None))
    excluded = np.broadcast_to(~result.truth.true & ~result.fail, len(parts.rows))
    return Case(text, tuple(int(part) for part in excluded.nonzero()[0]), front)


@dataclass(frozen=True)
class Claim:
    """What an expression may come to, and in which parts it cannot fail."""

    text: str
    type: Type
    results: Results
    safe: Mask


def claim(text: str, expression: Expression, parts: Parts) -> Claim | None:
    """Interpret an expression; None if it may fail everywhere, or Spark has no number for its values."""
    type_ = expression.type
    results = results_for(expression, parts.bounds, parts.rows)
    safe = ~np.broadcast_to(results.fail, len(parts.rows))
    if type_ is None or name_of(type_) == "timestamp_ntz" or not safe.any():
        return None
    return Claim(text, type_, results, safe)


def unforeseen(spark: SparkSession, view: str, claims: Sequence[Claim], parts: Parts) -> list[str]:
    """Return the expressions that fail or come to a value in Spark where that was ruled out."""
    columns = [
        f"case when part in ({', '.join(map(str, np.flatnonzero(own.safe)))}) then {_shown(own)} end"
        for own in claims
    ]
    try:
        rows = spark.sql(f"select {', '.join(['part', *columns])} from {view}").collect()
    except (PySparkException, Py4JJavaError) as error:
        if len(claims) == 1:
            return [f"{claims[0].text}: {str(error).splitlines()[0][:300]}"]
        return [
            found for half in (claims[::2], claims[1::2]) for found in unforeseen(spark, view, half, parts)
        ]
    return [
        f"{own.text}: {row[number]!r} for one of {parts.parts[row[0]]}"
        for number, own in enumerate(claims, 1)
        for row in rows
        if own.safe[row[0]] and not allows(own.results, row[0], row[number], own.type)
    ]


def _shown(own: Claim) -> str:
    """Ask for a value as statistics store it."""
    match name_of(own.type):
        case "date":
            return f"unix_date({own.text})"
        case "timestamp":
            return f"unix_micros({own.text})"
    return own.text


def catalyst_json(spark: SparkSession, text: str, stage: str) -> str | None:
    """Return a filter as Spark prints it once it is analyzed, or optimized."""
    plan = getattr(spark.sql(f"select * from {SHAPE} where {text}")._jdf.queryExecution(), stage)()
    while plan.getClass().getSimpleName() != "Filter":
        if plan.children().isEmpty():
            return None
        plan = plan.children().apply(0)
    return str(plan.condition().toJSON())


def refuted(spark: SparkSession, view: str, cases: Sequence[Case]) -> list[tuple[Case, str]]:
    """Return the cases in which a part has a row that the filter is true for or fails on after all.

    An optimized filter asks first whether columns are null, which hides errors: it is only never true.
    """
    asked = [case for case in cases if case.parts]
    if not asked:
        return []
    columns = [
        f"case when part in ({', '.join(map(str, case.parts))}) "
        f"then coalesce({case.text}, false) else false end"
        for case in asked
    ]
    query = ", ".join(f"{column} as c{number}" for number, column in enumerate(columns))
    try:
        rows = spark.sql(f"select part, {query} from {view}").collect()
    except (PySparkException, Py4JJavaError) as error:
        if len(asked) == 1:
            hidden = asked[0].front == "optimizedPlan"
            return [] if hidden else [(asked[0], str(error).splitlines()[0][:300])]
        middle = len(asked) // 2
        return refuted(spark, view, asked[:middle]) + refuted(spark, view, asked[middle:])
    return [
        (case, f"true in part {row['part']}")
        for number, case in enumerate(asked)
        for row in [next((row for row in rows if row[f"c{number}"]), None)]
        if row is not None
    ]
