"""Joins and subqueries prune the parts of the tables that they join, when they run, by any column."""

from __future__ import annotations

import datetime as dt
import random
from itertools import product
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import instar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from instar import Store, Table

    Star = tuple[Table, Table]

DAY = dt.date(2026, 1, 1)
PRUNING = "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly"
WORTH = "spark.sql.optimizer.dynamicPartitionPruning.fallbackFilterRatio"
ADAPTIVE = "spark.sql.adaptive.enabled"
BROADCAST = "spark.sql.autoBroadcastJoinThreshold"
WAYS = [*product(("true", "false"), ("10485760", "-1"))]
NAMES = [
    f"{'adaptive' if ada == 'true' else 'fixed'}, {'merged' if way == '-1' else 'broadcast'}"
    for ada, way in WAYS
]


@pytest.fixture
def star(store: Store) -> Star:
    """Return a fact table of 10 parts, a day each and 20 keys, and a smaller dimension of its keys."""
    facts = store.create_table("facts", "k int, d date, x double")
    luck = random.Random(1)
    for day in range(10):
        keys = pa.array([key for key in range(day * 20, day * 20 + 20) for _ in range(50)], pa.int32())
        days = [DAY + dt.timedelta(day)] * 1000
        facts.append(pa.table({"k": keys, "d": days, "x": [day + luck.random() for _ in range(1000)]}))
    dimension = store.create_table("dimension", "key bigint, day date, name string, code int")
    days = [DAY + dt.timedelta(number // 10) for number in range(100)]
    rows = {"key": range(0, 200, 2), "day": days, "name": [f"n{number // 10}" for number in range(100)]}
    dimension.append(pa.table({**rows, "code": pa.array(range(100), pa.int32())}))
    return facts, dimension


@pytest.fixture(params=WAYS, ids=NAMES)
def joining(planned: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """Return a session that plans scans, and joins in one of the ways that there are."""
    settings = {ADAPTIVE: request.param[0], BROADCAST: request.param[1], PRUNING: "false", WORTH: "0.5"}
    for name, value in settings.items():
        planned.conf.set(name, value)
    yield planned
    for name in settings:
        planned.conf.unset(name)


def parts_read(frame: DataFrame, table: str = "facts") -> list[int]:
    """Return how many parts the scans of a table read in a query that has run."""
    return [report.read for report in instar.scan_reports(frame) if report.table == table]


@pytest.mark.parametrize(("asked", "read"), [(None, 10), ("0.5", 1)])
def test_sort_merge_joins_prune_by_what_is_small(
    planned: SparkSession, star: Star, asked: str | None, read: int
) -> None:
    """What prunes is run once more there, so that it has to be small; the session's own setting stays."""
    session = planned.newSession()
    session.conf.set(BROADCAST, "-1")
    if asked is not None:
        session.conf.set(WORTH, asked)
    facts, dimension = (table.read(session) for table in star)
    joined = facts.join(dimension.where("name = 'n3'"), facts.k == dimension.key).agg({"x": "count"})
    assert joined.collect() == [(500,)]
    assert parts_read(joined) == [read]
    assert session.conf.get(WORTH) == (asked or "0.02")


def test_a_filter_on_a_dimension_prunes_facts(joining: SparkSession, star: Star) -> None:
    """Only parts whose bounds meet the keys of the dimension are opened, and the report says why."""
    facts, dimension = (table.read(joining) for table in star)
    joined = (
        facts.join(dimension.where("name = 'n3'"), facts.k == dimension.key)
        .groupBy("name")
        .agg({"x": "count"})
    )
    assert [tuple(row) for row in joined.collect()] == [("n3", 500)]
    (report,) = (own for own in instar.scan_reports(joined) if own.table == "facts")
    assert (report.total, report.read, report.bytes_read < report.bytes_total) == (10, 1, True)
    (condition,) = report.joins
    assert condition.excludes == 9
    assert "k" in condition.text
    assert "10 values that a join has" in condition.text
    assert "joins left 1 of 10 parts" in joined._jdf.queryExecution().executedPlan().toString()


def test_a_scalar_subquery_prunes(joining: SparkSession, star: Star) -> None:
    """A comparison with the result of a subquery skips parts like one with a literal."""
    for name, table in zip(("facts", "dimension"), star, strict=True):
        table.read(joining).createOrReplaceTempView(name)
    query = (
        "SELECT count(*) FROM facts WHERE d > (SELECT max(day) FROM dimension WHERE name <= 'n7') AND k <> 5"
    )
    found = joining.sql(query)
    assert found.collect()[0][0] == 2000
    assert parts_read(found) == [2]


def test_an_empty_dimension_reads_nothing(joining: SparkSession, star: Star) -> None:
    """Where no key is left, no part of the other table is opened."""
    facts, dimension = (table.read(joining) for table in star)
    joined = facts.join(dimension.where("code % 7 = 9"), facts.k == dimension.key)
    assert joined.collect() == []
    assert all(read == 0 for read in parts_read(joined))


def test_places_that_share_a_scan_prune_for_themselves(planned: SparkSession, star: Star) -> None:
    """A table that is read twice, once with a join that prunes it and once without, gives all its rows."""
    facts, dimension = (table.read(planned) for table in star)
    some = facts.join(dimension.where("name = 'n3'"), facts.k == dimension.key).select("k", "x")
    both = some.unionAll(facts.select("k", "x"))
    assert len(both.collect()) == 10_500
    assert sorted(parts_read(both)) == [1, 10]
    alone = facts.alias("a").join(facts.alias("b").where("x < 1 AND k = 3"), "k").selectExpr("a.k", "b.x")
    assert len(alone.collect()) == 2500


def test_a_large_dimension_prunes_by_ranges(planned: SparkSession, star: Star) -> None:
    """More keys than are looked at one by one still prune, by the widest gaps between them."""
    facts = star[0].read(planned)
    keys = planned.range(20_000).selectExpr("if(id < 10, 45 + id % 5, 1000 + id) AS key", "id % 2 AS odd")
    joined = facts.join(keys.where("odd < 2").hint("broadcast"), facts.k == keys.key)
    assert len(joined.collect()) == 500
    (report,) = instar.scan_reports(joined)
    assert report.read == 1


@pytest.mark.parametrize(
    ("type_", "pruned"),
    [("bigint", True), ("int", True), ("date", True), ("timestamp", True), ("string", False)],
)
def test_many_keys_of_any_type_lose_no_rows(
    planned: SparkSession, store: Store, type_: str, *, pruned: bool
) -> None:
    """Keys in heaps equally far apart, and at both ends, prune by ranges where they are whole numbers.

    Each of ten parts has the values between two heaps, and the first and the last also a heap.
    """
    to_key = {"date": "date_from_unix_date(int({}))", "timestamp": "timestamp_micros({})"}.get(
        type_, f"cast({{}} AS {type_})"
    )
    least, most = (-(2**63) + 1, 2**63 - 1) if type_ == "bigint" else (-(2**17), 2**17)
    facts = store.create_table("ends", f"k {type_}")
    for part in range(10):
        between = planned.range(part * 1000 + 400, part * 1000 + 900, 1, 1)
        heap = planned.range(part * 1000, part * 1000 + 50, 1, 1)
        rows = between.union(heap) if part in (0, 9) else between
        facts.append(rows.selectExpr(f"{to_key.format('id')} AS k"))
    number = f"CASE id WHEN 20000 THEN {least} WHEN 20001 THEN {most} ELSE id div 200 * 1000 + id % 200 END"
    keys = planned.range(20_003).selectExpr(
        f"if(id = 20002, null, {to_key.format(f'({number})')}) AS k", "id % 2 AS odd"
    )
    rows = facts.read(planned)
    joined = rows.join(keys.where("odd < 2").hint("broadcast"), "k").select("k")
    assert joined.count() == 100
    joined.collect()
    assert parts_read(joined, "ends") == [2 if pruned else 10]


def test_keys_that_are_everywhere_prune_nothing(planned: SparkSession, star: Star, store: Store) -> None:
    """By a column whose values are in every part, Spark is not asked to prune: it would do so for nothing."""
    mixed = store.create_table("mixed", "k int, n int")
    for part in range(4):
        keys = pa.array([part, *range(10, 200, 10), 200 - part], pa.int32())
        mixed.append(pa.table({"k": keys, "n": pa.array([part] * len(keys), pa.int32())}))
    rows, dimension = mixed.read(planned), star[1].read(planned).where("name = 'n3'")
    for column, prunes in (("k", False), ("n", True)):
        joined = rows.join(dimension.hint("broadcast"), rows[column] == dimension.key)
        plan = joined._jdf.queryExecution().executedPlan().toString()
        assert ("dynamicpruning" in plan.lower()) == prunes, column
        joined.collect()
