"""The format `instar` for frames: what is read and written, with filters pushed and without."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

import instar
from instar.table.metrics import PARTS_SKIPPED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from instar import Store, Table

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def store(tmp_path: Path, spark: SparkSession) -> Iterator[Store]:
    """Return a store whose format is known to Spark."""
    with instar.open(tmp_path / "lake") as opened:
        opened.initialise()
        instar.register(spark, opened)
        yield opened


@pytest.fixture(params=["true", "false"])
def pushdown(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """Let Spark push filters to Python, or not."""
    before = spark.conf.get(PUSHDOWN)
    spark.conf.set(PUSHDOWN, request.param)
    yield request.param
    spark.conf.set(PUSHDOWN, str(before))


def load(spark: SparkSession, store: Store, table: str, **options: str) -> DataFrame:
    """Read a table by its format."""
    return spark.read.format("instar").options(store=store.location, table=table, **options).load()


def fill(table: Table) -> None:
    """Add rows of several kinds, and take one back."""
    rows = pa.table(
        {
            "k": pa.array([1, 2, 3, None], pa.int32()),
            "v": ["a", "b", None, "d"],
            "f": [1.5, float("nan"), -0.0, None],
            "d": [Decimal("1.10"), Decimal("2.20"), None, Decimal("4.40")],
            "at": [dt.datetime(2026, 11, day, tzinfo=dt.UTC) for day in (1, 2, 3, 4)],
            "s": [{"x": 1}, {"x": 2}, None, {"x": None}],
            "l": [[1, 2], [], None, [3]],
            "m": pa.array([[("a", 1)], [], None, [("b", None)]], pa.map_(pa.string(), pa.int32())),
        }
    )
    table.append(rows.slice(0, 2))
    table.append(rows.slice(2))
    table.apply(rows.slice(1, 1).append_column("_diff", pa.array([-1])))


COLUMNS = """
    k int, v string, f double, d decimal(9,2), at timestamp, s struct<x: bigint>,
    l array<bigint>, m map<string, int>
"""
FILTERS = (
    "true",
    "k = 3",
    "k > 1 or k is null",
    "k in (1, 3)",
    "v is null",
    "v >= 'b' and v is not null",
    "f > 1",
    "f = 0.0",
    "d = 1.10",
    "s.x = 1",
    "at >= timestamp'2026-11-03 00:00:00'",
    "not (k <=> 1)",
)


def test_filters_find_the_same_rows_whether_pushed_or_not(
    spark: SparkSession, store: Store, pushdown: str
) -> None:
    """One frame answers one filter after another, and a join with itself, as a snapshot does."""
    table = store.create_table("t", COLUMNS)
    fill(table)
    snapshot, loaded = table.read(spark).cache(), load(spark, store, "t")

    def found(frame: DataFrame, where: str) -> list[str]:
        return sorted(str(row) for row in frame.where(where).collect())

    try:
        for where in FILTERS:
            assert found(loaded, where) == found(snapshot, where), where
        both = loaded.where("k = 1").select("v").crossJoin(loaded.where("k = 3").select("f"))
        assert [tuple(row) for row in both.collect()] == [("a", -0.0)]
    finally:
        snapshot.unpersist()


def test_options_choose_columns_time_and_schema(spark: SparkSession, store: Store) -> None:
    """`columns`, `as_of` and `schema` are those of `table.snapshot`; `changes` shows updates instead."""
    table = store.create_table("t", "k int, v string")
    first = table.append(pa.table({"k": pa.array([1], pa.int32()), "v": ["a"]}))
    table.evolve().add_column("w", "int").rename_column("v", "text").commit()
    second = table.append(pa.table({"k": pa.array([2], pa.int32()), "text": ["b"]}))

    def rows(**options: str) -> list[Any]:
        return sorted(tuple(row) for row in load(spark, store, "t", **options).collect())

    assert rows(columns="text, k") == [("a", 1), ("b", 2)]
    assert rows(as_of=str(first.ts), schema="0") == [(1, "a")]
    assert load(spark, store, "t", schema="0").columns == ["k", "v"]
    changed = rows(changes="true", since=str(first.ts), columns="k")
    assert changed == [(2, second.ts, 1)]


def test_a_loaded_frame_stays_as_it_was_and_is_fenced_when_it_is_planned(
    spark: SparkSession, store: Store
) -> None:
    """What comes after `load()` is seen by the next one; a schema that cannot be honoured is refused."""
    table = store.create_table("t", "k int, v string")
    empty = load(spark, store, "t")
    table.append(pa.table({"k": pa.array([1], pa.int32()), "v": ["a"]}))
    assert empty.collect() == []
    frame = load(spark, store, "t")
    table.append(pa.table({"k": pa.array([2], pa.int32()), "v": ["b"]}))
    assert [tuple(row) for row in frame.collect()] == [(1, "a")]
    assert load(spark, store, "t").count() == 2
    late = load(spark, store, "t")
    table.evolve().drop_column("v").commit()
    with pytest.raises(AnalysisException, match=r"ReaderFencedError: reader of `t` at schema 0 is fenced"):
        late.select("k").collect()


def test_a_frame_is_written_in_one_commit(spark: SparkSession, store: Store) -> None:
    """Tasks store parts, the driver commits once; a token makes writing again do nothing."""
    table = store.create_table("t", "k bigint, v string")
    frame = spark.range(100, numPartitions=4).selectExpr("id as k", "string(id) as v")
    for _ in range(2):
        writer = frame.write.format("instar").mode("append").option("token", "once")
        writer.options(store=store.location, table="t").save()
    assert sorted(table.snapshot().to_arrow().column("k").to_pylist()) == list(range(100))
    assert len([commit for commit in table.history() if "appended" in commit.what]) == 1
    with pytest.raises(AnalysisException, match="only adds rows"):
        frame.write.format("instar").mode("overwrite").options(store=store.location, table="t").save()


def test_a_frame_without_rows_remembers_its_token(store: Store, spark: SparkSession) -> None:
    """As an append does: writing again does nothing, although there are rows by then."""
    table = store.create_table("t", "k int")
    for sql, token in (("select 1 k where false", "once"), ("select 2 k", "once"), ("select 3 k", "twice")):
        writer = spark.sql(sql).write.format("instar").mode("append").option("token", token)
        writer.options(store=store.location, table="t").save()
    assert table.to_arrow().to_pylist() == [{"k": 3}]


def test_the_session_that_was_registered_last_writes_by_format(spark: SparkSession, store: Store) -> None:
    """Another session that has become the active one meanwhile is not in the way."""
    table = store.create_table("t", "k bigint")
    spark.newSession().createDataFrame([(1,)], "k bigint")  # which makes that one active
    instar.register(spark, store)
    spark.range(3).withColumnRenamed("id", "k").write.format("instar").mode("append").options(
        store=store.location, table="t"
    ).save()
    assert table.count() == 3


def test_every_session_that_registers_knows_the_format(spark: SparkSession, store: Store) -> None:
    """Also one that does so while another session that knows it is the active one."""
    store.create_table("t", "k bigint").append([{"k": 1}])
    for _ in range(3):
        own = spark.newSession()
        instar.register(own, store)
        assert load(own, store, "t").count() == 1


def test_what_cannot_be_is_said(spark: SparkSession, store: Store) -> None:
    """Missing options, unknown tables and types that Spark does not take from Python are named."""
    store.create_table("months", "m interval year to month")
    with pytest.raises(AnalysisException, match=r"needs \.option\(.store"):
        spark.read.format("instar").load()
    with pytest.raises(AnalysisException, match="TableNotFoundError: table `nope` does not exist"):
        load(spark, store, "nope")
    with pytest.raises(Exception, match="column `m` is interval year to month"):
        load(spark, store, "months")
    with pytest.raises(Exception, match=r"leave out \.schema"):
        spark.read.format("instar").options(store=store.location, table="months").schema(
            "a int"
        ).load().show()


WHERE = (
    "k = 3",
    "k > 1 or k is null",
    "v is null",
    "f > 1",
    "f = 0.0",
    "d >= 2",
    "at > '2026-11-02'",
    "s.x = 1",
)


def test_a_condition_for_the_whole_frame(spark: SparkSession, store: Store) -> None:
    """The option `where` opens only parts that it needs, and leaves only rows that it is true for."""
    table = store.create_table("t", COLUMNS)
    fill(table)
    everything = table.read(spark).cache()
    for where in WHERE:
        found = load(spark, store, "t", where=where, columns="k, v")
        assert found.columns == ["k", "v"]
        expected = everything.where(where).select("k", "v").collect()
        assert sorted(map(str, found.collect())) == sorted(map(str, expected)), where
    everything.unpersist()
    considered = PARTS_SKIPPED._value.get()
    table.snapshot().to_arrow("k = 3")
    assert PARTS_SKIPPED._value.get() > considered
    for options, message in (
        ({"where": "k ="}, "condition"),
        ({"where": "missing = 1"}, "missing"),
        ({"where": "k = 1", "changes": "true"}, "changes"),
    ):
        with pytest.raises(Exception, match=message):
            load(spark, store, "t", **options).collect()
