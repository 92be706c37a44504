"""Aggregations, limits and first rows are answered from metadata where it has the answer."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import instar
from instar.parts import compute_stats, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from instar import Store, Table
    from instar.schema import Schema
    from instar.stats import FieldStats

COLUMNS = "n int, big bigint, small tinyint, x double, r float, t string, d date, at timestamp, l timestamp_ntz, m decimal(20,3), b boolean"  # noqa: E501
NAMES = [column.split()[0] for column in COLUMNS.split(", ")]
NAN = math.nan
FEW_BYTES = 60
"""What the statistics of a part without those of most columns may take."""


def value_of(name: str, luck: Random) -> Any:  # noqa: ANN401 -- any value
    """Return a value of a column, sometimes an awkward one."""
    number = luck.choice([0, 1, -1, luck.randrange(-100, 100)])
    match name.removeprefix("was_"):
        case "n" | "big" | "small":
            return number
        case "x" | "r":
            return luck.choice([float(number), -0.0, NAN, math.inf, number / 4])
        case "t":
            return luck.choice(["", "a", "ü", "long" * 40, str(number)])
        case "d":
            return dt.date(2026, 1, 1) + dt.timedelta(number * 300)
        case "at" | "l":
            return dt.datetime(2026, 1, 1) + dt.timedelta(days=number * 99, microseconds=number)  # noqa: DTZ001
        case "m":
            return Decimal(number) / 8
    return number % 2 == 0


def rows_of(table: Table, luck: Random) -> pa.Table:
    """Return some rows in which some columns are often null, and some always."""
    schema = table.snapshot().to_arrow().schema
    odds = {name: luck.choice([0, 0, 0.3, 1]) for name in schema.names}
    count = luck.randrange(1, 6)
    columns = {
        name: [None if luck.random() < odds[name] else value_of(name, luck) for _ in range(count)]
        for name in schema.names
    }
    return pa.table({name: pa.array(columns[name]).cast(schema.field(name).type) for name in schema.names})


def few_stats(rows: pa.Table, schema: Schema, order_by: Sequence[int], _: int) -> dict[int, FieldStats]:
    """Return the statistics of the first columns."""
    return compute_stats(rows, schema, order_by, FEW_BYTES)


def history(store: Store, seed: int) -> Table:
    """Return a table with a random history.

    Columns are widened, dropped, added and have other names for a while, rows are sometimes retracted, and
    one part has statistics of its first columns only.
    """
    luck = Random(seed)
    table = store.create_table(f"h{seed}", COLUMNS)
    for step in range(6):
        with pytest.MonkeyPatch.context() as patched:
            if step == seed % 6:
                patched.setattr(write, "compute_stats", few_stats)
            table.append(rows_of(table, luck))
        if step in (2, 4):
            swapped = [("n", "t", "d"), ("was_n", "was_t", "was_d")][:: 1 if step == 2 else -1]
            update = table.evolve()
            for name, other in zip(*swapped, strict=True):
                update.rename_column(name, other)
            update.commit()
        if step == 1:
            table.evolve().widen_column("n", "bigint").widen_column("r", "double").commit()
        if step == 2:
            table.evolve().drop_column("small").add_column("small", "int").commit()
        if step == 3 and luck.random() < 0.5:
            table.delete("was_n > 50")
    assert table.unbounded()
    return table


def same(one: Any, other: Any) -> bool:  # noqa: ANN401 -- any values
    """Whether two values are equal, NaN to itself too, and zeros whatever their sign."""
    return one == other or (isinstance(one, float) and isinstance(other, float) and math.isnan(one + other))


def answered(frame: DataFrame) -> bool:
    """Whether a frame is answered without a scan."""
    return "LocalTableScan" in frame._jdf.queryExecution().executedPlan().toString()


@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_the_rows(planned: SparkSession, store: Store, seed: int) -> None:
    """Counts, least and greatest values of any history are the same from metadata as from rows."""
    table = history(store, seed)
    found = table.read(planned)
    planned.conf.set("instar.planner", "files")
    rows = table.read(planned).cache()
    questions = [f"{function}({name})" for name in NAMES for function in ("count", "min", "max")]
    for where in ("true", "n >= -1000", "n IS NULL", "n > 3", "d < '2026-01-01' AND t IS NOT NULL"):
        expected = rows.where(where).selectExpr("count(*)", *questions).collect()[0]
        together = found.where(where).selectExpr("count(*)", *questions).collect()[0]
        assert all(same(*pair) for pair in zip(together, expected, strict=True)), where
    for question, known in zip(questions, rows.selectExpr(*questions).collect()[0], strict=True):
        (alone,) = found.selectExpr(question).collect()[0]
        assert same(alone, known), question
    rows.unpersist()


def test_no_file_is_opened(planned: SparkSession, events: Table) -> None:
    """Counts and extremes of numbers take no scan, also under filters that metadata decides."""
    frame = events.read(planned)
    everything = frame.selectExpr("count(*)", "count(w)", "min(k)", "max(k)", "max(z)")
    assert answered(everything)
    assert tuple(everything.collect()[0]) == (11, 6, 0, 100, 0.5)
    decided = frame.where("k >= 4 AND k < 200").selectExpr("count(*)", "max(k)")
    assert answered(decided)
    assert tuple(decided.collect()[0]) == (7, 100)
    assert tuple(frame.where("k > 1000").selectExpr("count(*)", "max(k)").collect()[0]) == (0, None)


@pytest.fixture
def days(store: Store) -> Table:
    """Return a table whose parts have a day, a country and sometimes nothing in common."""
    table = store.create_table("days", "d date, c string, x double, n int")
    for day, country, numbers in (
        (1, "de", [1, 2]),
        (1, "fr", [3]),
        (2, "de", [None, 5, 6]),
        (2, None, [-7]),
    ):
        size = len(numbers)
        rows = {"d": [dt.date(2026, 1, day)] * size, "c": pa.array([country] * size, pa.string())}
        table.append(pa.table({**rows, "x": [0.5 * day] * size, "n": pa.array(numbers, pa.int32())}))
    return table


GROUPS = (
    "SELECT d, count(*), count(n), min(n), max(n) FROM days GROUP BY d",
    "SELECT c, d, count(*) FROM days GROUP BY c, d",
    "SELECT x, max(d), min(d), count(c) FROM days WHERE d >= '2026-01-02' GROUP BY x",
    "SELECT c FROM days GROUP BY c",
    "SELECT DISTINCT d FROM days",
)


@pytest.mark.parametrize("query", GROUPS)
def test_groups_that_parts_are_in(planned: SparkSession, days: Table, query: str) -> None:
    """Where each part has one value of the columns that are grouped by, no part is opened."""
    days.read(planned).createOrReplaceTempView("days")
    found = planned.sql(query)
    assert answered(found)
    planned.conf.set("instar.planner", "files")
    days.read(planned).createOrReplaceTempView("days")
    assert sorted(map(str, found.collect())) == sorted(map(str, planned.sql(query).collect()))


def test_groups_that_parts_are_not_in(planned: SparkSession, days: Table) -> None:
    """A column that may have several values in a part is grouped by reading it."""
    days.read(planned).createOrReplaceTempView("days")
    for query in ("n", "d, n", "year(d)"):
        assert not answered(planned.sql(f"SELECT {query}, count(*) FROM days GROUP BY {query}")), query
    days.append(
        pa.table({"d": [dt.date(2026, 1, 3)], "c": ["de"], "x": [-0.0], "n": pa.array([1], pa.int32())})
    )
    assert not answered(days.read(planned).groupBy("x").count())
    assert days.read(planned).groupBy("x").count().where("x = 0").collect()[0][1] == 1


def test_what_metadata_does_not_have_is_read(planned: SparkSession, events: Table) -> None:
    """Greatest texts may have been cut, filters may be true for some rows of a part, rows are retracted."""
    frame = events.read(planned)
    assert answered(frame.selectExpr("min(w)"))
    for question in ("max(w)", "max(s.a)", "count(DISTINCT k)", "sum(k)"):
        assert not answered(frame.selectExpr(question)), question
    assert not answered(frame.where("k >= 5").selectExpr("count(*)"))
    assert not answered(frame.groupBy("k").count())
    planned.conf.set("instar.skipping", "audit")
    try:
        assert not answered(events.read(planned).selectExpr("count(*)"))
    finally:
        planned.conf.unset("instar.skipping")
    events.delete("k = 4")
    assert events.read(planned).count() == 10
    assert events.read(planned).selectExpr("min(k)").collect()[0][0] == 0


def test_a_limit_opens_few_parts(planned: SparkSession, events: Table) -> None:
    """`LIMIT` reads as many parts as have the rows, and no more."""
    frame = events.read(planned)
    few = frame.limit(3)
    assert len(few.collect()) == 3
    assert [report.read for report in instar.scan_reports(few)] == [2]
    assert len(frame.limit(100).collect()) == 11
    filtered = frame.where("k >= 5").limit(2)
    assert sorted(row.k for row in filtered.collect()) != []
    assert all(row.k >= 5 for row in filtered.collect())
    assert len(frame.where("k >= 4").limit(6).collect()) == 6


ORDERS = (
    "x",
    "x DESC",
    "x NULLS LAST",
    "x DESC NULLS FIRST",
    "n, x",
    "n DESC, t",
    "d DESC",
    "t",
    "m",
    "at DESC",
    "b",
)


@pytest.mark.parametrize("seed", [7, 8])
def test_the_first_rows_in_any_order(planned: SparkSession, store: Store, seed: int) -> None:
    """`ORDER BY … LIMIT` finds the same rows as without skipping, whatever is null or NaN."""
    table = history(store, seed)
    found = table.read(planned)
    planned.conf.set("instar.planner", "files")
    rows = table.read(planned).cache()
    found.createOrReplaceTempView("found")
    rows.createOrReplaceTempView("kept")
    for order in ORDERS:
        for count in (1, 4):
            first = order.split(",", maxsplit=1)[0].split()[0]
            query = f"SELECT {first} FROM {{}} ORDER BY {order} LIMIT {count}"
            mine, theirs = (planned.sql(query.format(view)).collect() for view in ("found", "kept"))
            assert all(same(one[0], other[0]) for one, other in zip(mine, theirs, strict=True)), (
                order,
                count,
            )
    rows.unpersist()


def test_the_first_rows_open_few_parts(planned: SparkSession, events: Table) -> None:
    """Only parts that may have one of the first rows are read."""
    first = events.read(planned).orderBy("k").limit(2)
    assert [row.k for row in first.collect()] == [0, 1]
    assert [report.read for report in instar.scan_reports(first)] == [1]
    last = events.read(planned).where("k >= 4").orderBy("k", ascending=False).limit(1)
    assert [row.k for row in last.collect()] == [100]
    assert [report.read for report in instar.scan_reports(last)] == [1]
