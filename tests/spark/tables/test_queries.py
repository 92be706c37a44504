"""Queries of snapshots: joins, caches, threads, plans, and changes that meet other changes."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

import instar
from instar.errors import ConflictError, ReaderFencedError, UsageError
from instar.table.write.rows import ATTEMPTS
from tests.tables import before_commit

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession

    from instar import Store, Table

    Settings = Callable[[dict[str, str]], AbstractContextManager[None]]

NAN = float("nan")


def rows(*pairs: tuple[int | None, str | None]) -> pa.Table:
    """Return data for a table `k int, v string`."""
    return pa.table(
        {"k": pa.array([k for k, _ in pairs], pa.int32()), "v": pa.array([v for _, v in pairs], pa.string())}
    )


def retract(table: Table, *pairs: tuple[int | None, str | None]) -> None:
    """Take rows back."""
    data = rows(*pairs)
    table.apply(data.append_column("_diff", pa.array([-1] * data.num_rows)))


def found(frame: DataFrame) -> list[tuple[Any, ...]]:
    """Return the rows of a frame in order."""
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def plan_of(frame: DataFrame) -> str:
    """Return what Spark has decided to do."""
    return str(frame._jdf.queryExecution().toString())


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_joins_and_subqueries_see_one_snapshot(
    spark: SparkSession, store: Store, with_settings: Settings, adaptive: str
) -> None:
    """A table joined with itself and with others, in frames and in SQL, with retractions on both sides."""
    left, right = (store.create_table(name, "k int, v string") for name in ("l", "r"))
    left.append(rows((1, "a"), (2, "b"), (2, "b"), (3, "c"), (None, "n")))
    retract(left, (2, "b"), (3, "c"))
    right.append(rows((2, "x"), (2, "y"), (4, "z"), (None, "m")))
    retract(right, (2, "y"))
    read = left.read(spark)
    with with_settings({"spark.sql.adaptive.enabled": adaptive}):
        assert found(read.join(right.read(spark), "k")) == [(2, "b", "x")]
        assert found(read.alias("a").join(read.alias("b"), "k").selectExpr("k", "a.v", "b.v")) == [
            (1, "a", "a"),
            (2, "b", "b"),
        ]
        assert found(read.join(right.read(spark), "k", "left_anti")) == [(1, "a"), (None, "n")]
        read.createOrReplaceTempView("lv")
        right.read(spark).createOrReplaceTempView("rv")
        query = (
            "select lv.v, (select max(v) from rv) from lv where exists (select 1 from rv where rv.k = lv.k) "
            "union all select v, string(k) from lv where k not in (select k from rv where k is not null)"
        )
        assert found(spark.sql(query)) == [("a", "1"), ("b", "z")]


def test_a_snapshot_stays_as_it_is(spark: SparkSession, store: Store) -> None:
    """Appends, deletes and evolutions after it was taken change nothing, also for a frame that was cached."""
    table = store.create_table("t", "k int, v string")
    table.append(rows((1, "a"), (2, "b")))
    frame, cached = table.read(spark), table.read(spark).cache()
    assert cached.count() == 2
    table.append(rows((3, "c")))
    retract(table, (1, "a"))
    assert table.delete("k = 2", spark).rows == 1
    table.evolve().drop_column("v").commit()
    try:
        assert found(frame) == [(1, "a"), (2, "b")]
        assert found(frame.join(frame.withColumnRenamed("v", "w"), "k")) == [(1, "a", "a"), (2, "b", "b")]
        assert found(cached) == [(1, "a"), (2, "b")]
        assert found(table.read(spark)) == [(3,)], "a cache of one snapshot does not answer for another"
    finally:
        cached.unpersist()


@pytest.mark.native
def test_sizes_decide_what_is_broadcast(spark: SparkSession, store: Store, with_settings: Settings) -> None:
    """Spark knows how large a snapshot is, scanned or consolidated, and how large an old one was."""
    small, big = (store.create_table(name, "k int, v string") for name in ("small", "big"))
    small.append(rows((1, "a"), (2, "b")))
    retract(small, (2, "b"))
    before = big.append(rows((1, "x")))
    big.append(
        pa.table({"k": pa.array(range(20_000), pa.int32()), "v": [f"{n * n:x}" for n in range(20_000)]})
    )
    size = big.state.totals.bytes
    with with_settings({"spark.sql.autoBroadcastJoinThreshold": str(size // 4)}):
        joined = big.read(spark).join(small.read(spark), "k")
        assert "BroadcastHashJoin" in plan_of(joined)
        itself = big.read(spark).join(big.read(spark).withColumnRenamed("v", "w"), "k")
        assert "SortMergeJoin" in plan_of(itself)
        assert "BroadcastHashJoin" not in plan_of(itself)
        past = big.snapshot(as_of=before.ts).to_spark(spark)
        assert "BroadcastHashJoin" in plan_of(big.read(spark).join(past.withColumnRenamed("v", "w"), "k"))
        assert found(joined) == [(1, "1", "a"), (1, "x", "a")]


@pytest.mark.native
def test_explain_names_the_table_and_its_state(spark: SparkSession, store: Store) -> None:
    """A plan says which version of which table is scanned, and which parts are added up."""
    table = store.create_table("billing/events", "k int, v string")
    table.append(rows((1, "a")))
    table.append(rows((20, "b")))
    seqno = table.state.seqno
    assert f"instar:/billing/events@{seqno} (2 parts)]" in plan_of(table.read(spark))
    table.append(rows((20, "c"), (21, "d")))
    retract(table, (20, "b"), (21, "d"))
    assert f"instar:/billing/events@{seqno + 2} (2 parts)]" in plan_of(table.read(spark))
    retract(table, (21, "d"))  # more often than it was added
    assert f"instar:/billing/events@{seqno + 3} (4 parts to add up)]" in plan_of(table.read(spark))


@pytest.mark.native
def test_threads_get_their_own_rows_and_errors(spark: SparkSession, store: Store) -> None:
    """Many queries at once from Python threads: no rows and no errors are mixed up."""
    tables = [store.create_table(f"t{number}", "k int, v string") for number in range(4)]
    for number, table in enumerate(tables):
        table.append(rows((number, "a"), (number + 10, "b")))
        retract(table, (number + 10, "b"))
    following = [table.follow(spark) for table in tables]
    for table in tables[2:]:
        table.evolve().drop_column("v").commit()
    barrier = threading.Barrier(4)

    def work(thread: int) -> None:
        barrier.wait(60)
        for turn in range(3):
            number = (thread + turn) % 4
            assert found(tables[number].read(spark).select("k")) == [(number,)]
            if number < 2:
                assert found(following[number]) == [(number, "a")]
            else:
                with pytest.raises(ReaderFencedError) as caught:
                    following[number].collect()
                assert caught.value.table == f"t{number}"

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, thread) for thread in range(4)]:
            done.result()


# --- changes that depend on what is there ---------------------------------------------------------


def test_a_delete_is_not_disturbed_by_appends_and_evolutions(
    spark: SparkSession, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that came meanwhile stay; a column that was dropped meanwhile is no obstacle."""
    table = store.create_table("t", "k int, v string")
    table.append(rows((1, "a"), (2, "b")))
    before_commit(monkeypatch, lambda: table.append(rows((1, "late"))))
    table.delete("k = 1", spark)
    assert found(table.read(spark)) == [(1, "late"), (2, "b")]
    before_commit(monkeypatch, lambda: table.evolve().drop_column("v").commit())
    table.delete("k = 2", spark)
    assert found(table.read(spark)) == [(1,)]


def test_a_delete_that_always_meets_commits_fails_whole(
    spark: SparkSession, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is applied, and calling it again does all of it."""
    table = store.create_table("t", "k int, v string", key=["k"])
    table.append(rows((1, "a"), (2, "b")))
    table.append(rows(*((n, "z") for n in range(10, 10 + ATTEMPTS))))
    left = iter(range(10, 10 + ATTEMPTS))
    object.__setattr__(table._services, "patience", 0)
    before_commit(monkeypatch, lambda: store.table("t").apply(gone(next(left))), times=ATTEMPTS)
    with pytest.raises(ConflictError, match="Try again"):
        table.delete("k < 9", spark)
    assert found(table.read(spark)) == [(1, "a"), (2, "b")]
    assert table.delete("k < 9", spark).rows == 2
    assert found(table.read(spark)) == []


def gone(number: int) -> pa.Table:
    """Return what retracts a row by value."""
    return pa.table({"k": pa.array([number], pa.int32()), "v": ["z"], "_diff": [-1]})


def test_a_frame_replaces_the_rows_of_the_same_key(
    spark: SparkSession, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys are equal as rows are, as they are in process: null is null, NaN is NaN, zeros have no sign."""
    table = store.create_table("t", "s struct<id: double, x: int>, k int, v string", key=["s.id", "k"])
    layout = table.snapshot().to_arrow().schema
    old = [(1.0, None), (NAN, 1), (-0.0, 1), (None, None), (5.0, 5)]
    table.append(
        pa.Table.from_pylist([{"s": {"id": d, "x": 1}, "k": k, "v": "old"} for d, k in old], schema=layout)
    )
    new = spark.createDataFrame(
        pa.Table.from_pylist(
            [
                {"s": {"id": d, "x": 2}, "k": k, "v": "new"}
                for d, k in [(1.0, None), (NAN, 1), (0.0, 1), (None, None)]
            ],
            schema=layout,
        )
    )
    before_commit(monkeypatch, lambda: table.append(pa.Table.from_pylist([{"k": 7}], schema=layout)))
    assert table.upsert(new).rows == 8
    there = found(table.read(spark).selectExpr("string(s.id)", "s.x", "k", "v"))
    assert there == sorted(
        [
            ("1.0", 2, None, "new"),
            ("NaN", 2, 1, "new"),
            ("0.0", 2, 1, "new"),
            (None, 2, None, "new"),
            ("5.0", 1, 5, "old"),
            (None, None, 7, None),
        ],
        key=repr,
    )
    with pytest.raises(UsageError, match=r"the same key \(s\.id, k\) more than once"):
        table.upsert(new.unionAll(new))
    assert table.state.totals.rows + table.state.totals.retracted == 14


@pytest.mark.native
def test_months_are_kept_at_every_level(spark: SparkSession, store: Store) -> None:
    """Intervals of years and months, for which PySpark has no Arrow type, come and go in frames."""
    table = store.create_table(
        "t",
        "y interval year, m interval month, s struct<i: interval year to month>, "
        "l array<interval year>, p map<interval month, interval year to month>",
    )
    sql = (
        "select interval '3' year y, interval '-5' month m, "
        "named_struct('i', interval '1-2' year to month) s, array(interval '2' year, null) l, "
        "map(interval '1' month, interval '-0-1' year to month) p"
    )
    frame = spark.sql(f"{sql} union all select null, null, null, null, null")
    table.append(frame)
    assert [tuple(row.values()) for row in table.snapshot().to_arrow().to_pylist() if row["y"]] == [
        (36, -5, {"i": 14}, [24, None], [(1, -1)])
    ]
    texts = [f"string({name})" for name in ("y", "m", "s", "l", "p")]
    assert found(table.read(spark).selectExpr(texts)) == found(frame.selectExpr(texts))
    assert table.delete("y = interval '3' year", spark).rows == 1
    assert found(table.read(spark).selectExpr(texts)) == [(None,) * 5]
    assert instar.open(store.location).table("t").snapshot().to_arrow().num_rows == 1


def test_columns_may_be_called_anything(spark: SparkSession, store: Store) -> None:
    """Names that need quotes are appended, deleted by and replaced by in frames."""
    names = ("a.b", "a`b", "two words", "f1", "_0")
    columns = ", ".join("`" + name.replace("`", "``") + "` int" for name in names)
    table = store.create_table("t", columns, key=["`a.b`", "`a``b`"])
    frame = spark.range(3).selectExpr(*["int(id)"] * len(names)).toDF(*names)
    table.append(frame)
    assert table.delete("`a.b` = 0", spark).rows == 1
    assert table.upsert(frame).rows == 5
    assert found(table.read(spark)) == [(number,) * len(names) for number in range(3)]


def test_an_upsert_asks_for_its_data_once(spark: SparkSession, store: Store) -> None:
    """Data that is different each time it is asked for replaces the rows whose keys it adds."""
    table = store.create_table("t", "k int, v string", key=["k"])
    table.append(rows(*((k, "old") for k in range(100))))
    some = F.udf(lambda: random.SystemRandom().randrange(100), "int").asNondeterministic()
    table.upsert(spark.range(1).select(some().alias("k"), F.lit("new").alias("v")))
    seen = found(table.read(spark))
    assert len(seen) == len({k for k, _ in seen}) == 100
    assert [v for _, v in seen].count("new") == 1


@pytest.mark.parametrize(
    "key", ["bigint(k)", "string(k)", "timestamp_millis(k)", "date_add(date'2026-01-01', k)"]
)
@pytest.mark.directory
def test_an_upsert_reads_only_parts_that_may_have_a_key(spark: SparkSession, store: Store, key: str) -> None:
    """A part whose bounds are elsewhere need not even be there; nulls are keys too."""
    keys = spark.range(10, 40).selectExpr("int(id) k")
    frame = keys.selectExpr("k n", f"{key} k", "'old' v")
    table = store.create_table(
        "t", f"n int, k {frame.schema['k'].dataType.simpleString()}, v string", key=["k"]
    )
    for start in (10, 20, 30):
        table.append(frame.where(f"n >= {start} and n < {start} + 10").coalesce(1))
    [gone] = (
        path
        for path in Path(store.location).glob("tables/*/parts/*")
        if 20 in pq.read_table(path)["f1"].to_pylist()
    )
    whole = gone.read_bytes()
    gone.unlink()
    new = frame.where("n in (12, 18)").selectExpr("n", "k", "'new' v")
    assert table.upsert(new).rows == 4
    assert table.upsert(spark.sql("select 0 n, null k, 'new' v")).rows == 1
    gone.write_bytes(whole)
    seen = {n: v for n, _, v in found(table.read(spark))}
    assert seen == dict.fromkeys(range(10, 40), "old") | dict.fromkeys([12, 18, 0], "new")
