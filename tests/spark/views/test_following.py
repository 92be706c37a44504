"""Views that follow their tables, and what a query of one may rely on."""

from __future__ import annotations

import gc
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import instar
from instar.errors import ReaderFencedError, TableNotFoundError
from tests.tables import list_leases

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from instar import Store, Table


def rows(*pairs: tuple[int, str]) -> pa.Table:
    """Return data for a table `k int, v string`."""
    return pa.table({"k": pa.array([k for k, _ in pairs], pa.int32()), "v": [v for _, v in pairs]})


def retract(table: Table, *pairs: tuple[int, str]) -> None:
    """Take rows back."""
    data = rows(*pairs)
    table.apply(data.append_column("_diff", pa.array([-1] * data.num_rows)))


def ask(spark: SparkSession, sql: str) -> list[tuple[Any, ...]]:
    """Run a query and sort its rows."""
    return sorted(tuple(row) for row in spark.sql(sql).collect())


def count_leases(table: Table) -> int:
    """Count who holds a table."""
    return len(list(list_leases(table._services, table.state.table_id)))


@pytest.mark.native
def test_a_view_shows_what_its_table_holds_at_each_query(spark: SparkSession, store: Store) -> None:
    """Appends, retractions and re-additions after the registration are seen by the next query."""
    table = store.create_table("billing/events", "k int, v string")
    assert instar.register(spark, store) == ["billing/events"]
    query = "select k, v from `billing/events`"
    assert ask(spark, query) == []
    table.append(rows((1, "a"), (2, "b"), (2, "b")))
    assert ask(spark, query) == [(1, "a"), (2, "b"), (2, "b")]
    retract(table, (2, "b"))
    assert ask(spark, query) == [(1, "a"), (2, "b")]
    assert ask(spark, "select count(*), max(v) from `billing/events`") == [(2, "b")]
    table.append(rows((3, "c"), (2, "b")))
    assert ask(spark, query) == [(1, "a"), (2, "b"), (2, "b"), (3, "c")]


@pytest.mark.native
def test_columns_that_come_later_do_not_disturb_a_view(spark: SparkSession, store: Store) -> None:
    """A view goes on under its own schema, also over rows that differ only in what it does not show."""
    table = store.create_table("t", "k int, v string")
    table.append(rows((1, "a")))
    instar.register(spark, store)
    table.evolve().add_column("extra", "int").rename_column("v", "text").commit()
    new = pa.table(
        {"k": pa.array([7, 7], pa.int32()), "text": ["x", "x"], "extra": pa.array([1, 2], pa.int32())}
    )
    table.append(new)
    table.apply(new.slice(0, 1).append_column("_diff", pa.array([-1])))
    assert ask(spark, "select * from t") == [(1, "a"), (7, "x")]
    instar.register(spark, store)
    assert ask(spark, "select text, extra, k from t where k = 7") == [("x", 2, 7)]


@pytest.mark.native
def test_a_fenced_query_raises_the_error_itself(spark: SparkSession, store: Store) -> None:
    """Whatever Spark was doing when it asked, the caller gets `ReaderFencedError`."""
    table = store.create_table("t", "k int, v string")
    table.append(rows((1, "a")))
    instar.register(spark, store)
    planned = spark.sql("select count(*) from t group by upper(v)")
    planned.explain()
    table.evolve().drop_column("v").commit()
    with pytest.raises(ReaderFencedError, match=r"column `v` \(field 2\) was dropped by schema 1"):
        planned.collect()
    with pytest.raises(ReaderFencedError, match="`t` at schema 0"):
        ask(spark, "select * from t")
    with pytest.raises(ReaderFencedError):
        spark.sql("select x.v from t x join t y on x.k = y.k").toPandas()
    instar.register(spark, store)
    assert ask(spark, "select * from t") == [(1,)]


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.native
def test_what_a_query_does_not_read_does_not_fence_it(
    spark: SparkSession, store: Store, adaptive: str
) -> None:
    """Wherever in a query the lost column is read, the whole of it is fenced, and no other query is."""
    table = store.create_table("t", "k int, v string")
    table.append(rows((1, "a"), (2, "b")))
    instar.register(spark, store)
    table.evolve().drop_column("v").commit()
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        assert ask(spark, "select k from t where k > 1") == [(2,)]
        assert ask(spark, "select count(*) from t") == [(2,)]
        assert ask(spark, "select x.k from t x join t y on x.k = y.k where y.k = 1") == [(1,)]
        assert ask(spark, "select k from t where k = (select max(k) from t)") == [(2,)]
        [report] = instar.scan_reports(spark.sql("select max(k) from t where k > 7"))
        assert (report.total, report.read) == (1, 0)
        for query in (
            "select k from t where v = 'a'",
            "select count(v) from t",
            "select x.k from t x join t y on x.k = y.k and y.v > 'a'",
            "select k from t where k = (select max(k) from t where v = 'b')",
            "select k, exists (select 1 from t u where u.v = 'a') from t",
            "select k from t where k in (select k from t order by v limit 1)",
            "with w as (select k, upper(v) u from t) select a.k from t a, w where a.k = w.k and w.u = 'A'",
            "select k from t union all select length(v) from t",
        ):
            with pytest.raises(ReaderFencedError, match="column `v`"):
                ask(spark, query)
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")


@pytest.mark.native
def test_rows_that_are_added_up_need_all_their_columns(spark: SparkSession, store: Store) -> None:
    """Which rows are equal is told by every column that the view had."""
    table = store.create_table("t", "k int, v string")
    table.append(rows((1, "a"), (1, "b")))
    retract(table, (1, "a"))
    instar.register(spark, store)
    table.evolve().drop_column("v").commit()
    with pytest.raises(ReaderFencedError):
        ask(spark, "select k from t")


@pytest.mark.native
def test_a_view_of_a_dropped_table_says_so(spark: SparkSession, store: Store) -> None:
    """A table that has ended cannot be read, and a later one of its name is another table."""
    store.create_table("t", "k int")
    instar.register(spark, store)
    store.drop_table("t")
    with pytest.raises(TableNotFoundError):
        ask(spark, "select * from t")
    store.create_table("t", "k string")
    with pytest.raises((TableNotFoundError, ReaderFencedError)):
        ask(spark, "select * from t")


@pytest.mark.native
def test_one_query_reads_one_state(
    spark: SparkSession, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit between two questions of a query changes nothing for it: rows are neither lost nor doubled."""
    table = store.create_table("t", "k int, v string")
    table.append(rows((1, "a"), (2, "b")))
    instar.register(spark, store)
    again = spark.sql("select k from t")
    asked = []

    def disturb(*_: object) -> None:
        """Move every row from the plain scan to the consolidation, and back, between questions."""
        asked.append(True)
        if len(asked) % 2:
            retract(table, (1, "a"))
        else:
            table.append(rows((1, "a")))

    def disturbed(original: Callable[..., object]) -> Callable[..., object]:
        def method(*args: object, **named: object) -> object:
            answer = original(*args, **named)
            disturb()
            return answer

        return method

    from instar.spark.native import file_index, views  # noqa: PLC0415 -- the test needs Spark, not the file
    from instar.spark.planner.choice import PartChoice  # noqa: PLC0415
    from instar.spark.planner.table import PlannedTable  # noqa: PLC0415

    for owner, name in (
        (file_index.PartIndex, "listFiles"),
        (PlannedTable, "apply"),
        (PartChoice, "apply"),
        (views._View, "replacement"),
    ):
        monkeypatch.setattr(owner, name, disturbed(getattr(owner, name)))
    joined = "select x.k, y.k from t x join t y on x.k <= y.k where x.k in (select k from t)"
    for _ in range(3):
        there = table.snapshot().to_arrow().column("k").to_pylist()
        assert ask(spark, joined) == sorted((x, y) for x in there for y in there if x <= y)
    assert len(asked) >= 12
    first = again.collect()
    assert again.collect() == first


@pytest.mark.native
def test_a_lease_is_held_as_long_as_spark_knows_the_plan(spark: SparkSession, store: Store) -> None:
    """What a plan lists survives a vacuum; when Spark has forgotten the plan, the lease is given back."""
    table = store.create_table("t", "k int, v string")
    table.append(rows((1, "a")))
    instar.register(spark, store)
    assert count_leases(table) == 0
    frame = spark.sql("select k from t")
    assert [row.k for row in frame.collect()] == [1]
    assert count_leases(table) > 0
    del frame
    ask(spark, "select 1")
    store.create_table("other", "k int")
    instar.register(spark, store)
    ask(spark, "select * from other")  # lets go of what ended executions held
    for _ in range(100):
        gc.collect()
        spark._jvm.java.lang.System.gc()  # type: ignore[union-attr]
        if count_leases(table) == 0:
            break
        time.sleep(0.1)
    assert count_leases(table) == 0


@pytest.mark.native
def test_an_rdd_of_a_view_has_the_rows_of_its_query(spark: SparkSession, store: Store) -> None:
    """It is planned as a query is, whatever was retracted."""
    table = store.create_table("t", "k int, v string")
    table.append(rows((1, "a"), (2, "b")))
    instar.register(spark, store)
    assert sorted(row.k for row in spark.sql("select k from t").rdd.collect()) == [1, 2]
    retract(table, (1, "a"))
    assert [row.k for row in spark.sql("select k from t").rdd.collect()] == [2]


@pytest.mark.native
def test_a_view_is_one_scan(spark: SparkSession, store: Store) -> None:
    """Nothing is united or added up, nor planned, also if rows are retracted by position."""
    table = store.create_table("t", "k int, v string")
    table.append(rows((1, "a"), (2, "b")))
    instar.register(spark, store)

    def planned() -> str:
        frame = spark.sql("select x.k from t x join t y on x.k = y.k where y.v >= 'a'")
        return str(frame._jdf.queryExecution().optimizedPlan().toString())

    assert planned().count("Relation") == 2
    assert not re.search("Union|Aggregate|Generate", planned())
    table.append(rows((3, "c")))
    table.delete("k = 1")
    assert planned().count("Relation") == 2
    assert not re.search("Union|Aggregate|Generate", planned())
    assert ask(spark, "select x.k from t x join t y on x.k = y.k where y.v >= 'a'") == [(2,), (3,)]


@pytest.mark.native
def test_what_is_retracted_after_a_query_was_planned_is_in_it(spark: SparkSession, store: Store) -> None:
    """It has the rows of the state that it was planned for, all of them; the next query has those of now."""
    table = store.create_table("t", "k int, v string")
    table.append(rows((1, "a"), (2, "b")))
    instar.register(spark, store)
    text = "select x.k from t x join t y on x.k = y.k where x.k in (select k from t)"
    planned = spark.sql(text)
    planned.explain()
    retract(table, (1, "a"))
    table.append(rows((3, "c")))
    assert ask(spark, text) == [(2,), (3,)]
    assert sorted(row.k for row in planned.collect()) == [1, 2]
    table.append(rows((1, "a")))
    table.compact(full=True)
    table.vacuum(grace_ms=0)
    assert sorted(row.k for row in planned.where("k > 0").collect()) == [1, 2, 3]
    assert sorted(row.k for row in planned.collect()) == [1, 2]


@pytest.mark.native
def test_conditions_reach_the_parts_of_a_view_with_retractions(spark: SparkSession, store: Store) -> None:
    """The scan that a view becomes skips what a filter excludes."""
    table = store.create_table("t", "k int, v string")
    for k in range(4):
        table.append(rows((k, "a"), (k, "b")))
    table.delete("v = 'b' and k < 2")
    instar.register(spark, store)
    reports = instar.scan_reports(spark.sql("select v from t where k = 1"))
    assert [(report.total, report.read) for report in reports] == [(4, 1)]
    assert ask(spark, "select v from t where k = 1") == [("a",)]


@pytest.mark.native
def test_columns_of_a_view_with_retractions_are_found_wherever_it_stands(
    spark: SparkSession, store: Store
) -> None:
    """A join or a subquery right above it finds the columns, also those that are called as in files."""
    for name in ("x", "y"):
        table = store.create_table(name, "f1 int, f2 string")
        table.append(pa.table({"f1": pa.array([1, 2, 3], pa.int32()), "f2": ["a", "b", name]}))
        table.delete("f1 = 1")
    instar.register(spark, store)
    scalar = "select f2, (select max(f2) from y where y.f1 = x.f1) from x"
    assert ask(spark, scalar) == [("b", "b"), ("x", "y")]
    assert ask(spark, "select * from x join y using (f1)") == [(2, "b", "b"), (3, "x", "y")]
    assert ask(spark, "select f2 from x where f1 not in (select f1 from y where f2 = 'b')") == [("x",)]


@pytest.mark.native
def test_another_session_is_told_that_a_view_is_not_its_own(spark: SparkSession, store: Store) -> None:
    """A session that shares nothing with the one of the view has no rule for it; others have."""
    table = store.create_table("t", "k int, v string")
    table.append(rows((1, "a")))
    table.follow(spark).createOrReplaceGlobalTempView("followed")
    try:
        table.delete("true")
        table.append(rows((2, "b")))
        assert ask(spark.newSession(), "select k from global_temp.followed") == [(2,)]
    finally:
        spark.catalog.dropGlobalTempView("followed")


def test_threads_query_views_at_the_same_time(spark: SparkSession, store: Store) -> None:
    """Many Python threads share a session, each with its own query and answer."""
    for number in range(3):
        store.create_table(f"t{number}", "k int, v string").append(rows((number, "a"), (number + 10, "b")))
    instar.register(spark, store)
    barrier = threading.Barrier(4)

    def work(thread: int) -> None:
        barrier.wait()
        for turn in range(3):
            number = (thread + turn) % 3
            assert ask(spark, f"select k from t{number}") == [(number,), (number + 10,)]

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, thread) for thread in range(4)]:
            done.result()


@pytest.mark.native
def test_a_cached_view_stays_as_it_was(spark: SparkSession, store: Store) -> None:
    """A cache holds the rows of the query that filled it until it is dropped."""
    table = store.create_table("t", "k int, v string")
    table.append(rows((1, "a"), (2, "b")))
    retract(table, (2, "b"))
    instar.register(spark, store)
    cached = spark.sql("select k from t").cache()
    try:
        assert cached.count() == 1
        table.append(rows((3, "c")))
        assert sorted(row.k for row in cached.collect()) == [1]
    finally:
        cached.unpersist(blocking=True)
    assert ask(spark, "select k from t") == [(1,), (3,)]


@pytest.mark.native
def test_explain_names_the_table(spark: SparkSession, store: Store) -> None:
    """A plan says which table it reads, not only which files."""
    store.create_table("billing/events", "k int")
    instar.register(spark, store)
    plan = spark.sql("select * from `billing/events`")._jdf.queryExecution().toString()
    assert "instar:/billing/events]" in plan


@pytest.mark.native
def test_a_small_table_is_broadcast_and_a_large_one_is_not(spark: SparkSession, store: Store) -> None:
    """Joins go by the real sizes of tables."""
    small = store.create_table("small", "k int, v string")
    small.append(rows((1, "a")))
    big = store.create_table("big", "k int, v string")
    big.append(
        pa.table({"k": pa.array(range(50_000), pa.int32()), "v": [f"{n * n:x}" for n in range(50_000)]})
    )
    size = big.state.totals.bytes
    instar.register(spark, store)
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", str(size // 20))
    try:
        frame = spark.sql("select big.v from big join small on big.k = small.k")
        plan = frame._jdf.queryExecution().sparkPlan().toString()
        assert "BroadcastHashJoin" in plan
        assert "BuildRight" in plan
        itself = spark.sql("select a.v from big a join big b on a.k = b.k")
        assert "SortMergeJoin" in itself._jdf.queryExecution().sparkPlan().toString()
        assert [tuple(row) for row in frame.collect()] == [("1",)]
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", str(before))


def test_names_that_spark_cannot_tell_apart_have_no_view(spark: SparkSession, store: Store) -> None:
    """Two tables that differ only in case would silently be one view; all others are registered."""
    for name in ("Events", "events", "other"):
        store.create_table(name, "k int")
    with pytest.warns(UserWarning, match="no views of Events, events"):
        assert instar.register(spark, store) == ["other"]


def test_registering_changes_no_setting(spark: SparkSession, store: Store) -> None:
    """The session is as it was, but for views and the data source."""
    store.create_table("t", "k int")
    before = dict(spark.conf.getAll)
    instar.register(spark, store)
    assert dict(spark.conf.getAll) == before


def test_of_many_tables_there_are_no_views_but_a_catalog(
    store: Store, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not all are opened; a warning says how to query them, and a prefix chooses some."""
    monkeypatch.setattr("instar.api.sessions._MOST_VIEWS", 2)
    for name in ("a/one", "a/two", "b/three"):
        store.create_table(name, "k int, v string").append(rows((1, name)))
    with pytest.warns(UserWarning, match=r"more than 2 tables.*lazy\.`table`"):
        assert instar.register(spark, store, "lazy") == []
    assert ask(spark, "select v from lazy.`b/three`") == [("b/three",)]
    assert instar.register(spark, store, "lazy", prefix="a/") == ["a/one", "a/two"]
    assert ask(spark, "select v from `a/two`") == [("a/two",)]
