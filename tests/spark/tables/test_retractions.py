"""Rows that were retracted by position are left out by Spark's own reader, whatever else it leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException

import instar
from instar.parts import PartLimits
from tests.tables import spoil_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from instar import Store, Table

pytestmark = pytest.mark.spark

ROWS = 30_000


@pytest.fixture
def numbers(store: Store) -> Iterator[Table]:
    """Return a table of several parts of several row groups, with rows deleted in some of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("instar.table.write.append.PartLimits", lambda: PartLimits(60_000, 60_000))
        table = store.create_table("numbers", "n bigint, s string, m bigint", order_by=["n"], key=["n"])
        ids = np.arange(ROWS)
        table.append(pa.table({"n": ids, "s": [f"{n % 100}" for n in ids], "m": ids[::-1] % 1000}))
        yield table


def plan_of(frame: object) -> str:
    """Return the physical plan."""
    return str(frame._jdf.queryExecution().executedPlan())  # type: ignore[attr-defined]


@pytest.fixture(params=["readers", "plan", "files"])
def way(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[str]:
    """Have retracted rows left out by readers, or over files by a plan, or by what comes with files."""
    before = spark.conf.get("instar.planner", "auto")
    spark.conf.set("instar.planner", "auto" if request.param == "readers" else "files")
    if request.param == "files":
        monkeypatch.setattr("instar.spark.native.scan_source._MOST_IN_PLAN", 0)
    yield request.param
    spark.conf.set("instar.planner", str(before))


def test_spark_and_process_leave_out_the_same_rows(
    numbers: Table, spark: SparkSession, store: Store, way: str
) -> None:
    """Under filters that skip parts and row groups, with columns pruned, as of every time, and in views."""
    assert numbers.state.totals.parts > 3
    times = [numbers.upper - 1]
    views = instar.register(spark, store)
    assert "numbers" in views
    conditions = ["n % 10 = 3", "n between 5000 and 9000", "n = 29999 or n = 0", "s = '7' and n > 20000"]
    gone = np.zeros(ROWS, bool)
    ids = np.arange(ROWS)
    masks = [
        ids % 10 == 3,
        (ids >= 5000) & (ids <= 9000),
        (ids == 29999) | (ids == 0),
        (ids % 100 == 7) & (ids > 20000),
    ]
    expected = [~gone]
    for at, (condition, mask) in enumerate(zip(conditions, masks, strict=True)):
        commit = numbers.delete(condition, spark if at % 2 else None)
        assert commit.rows == int((mask & ~gone).sum())
        gone |= mask
        times.append(commit.ts)
        expected.append(~gone)
    for as_of, kept in zip(times, expected, strict=True):
        frame = numbers.snapshot(as_of).to_spark(spark)
        found = frame.selectExpr("count(*) c", "sum(n) n", "sum(m) m").collect()[0]
        assert tuple(found) == (kept.sum(), ids[kept].sum(), (ids[::-1] % 1000)[kept].sum())
        some = frame.where("n >= 8990 and n < 9100 and m > 5").select("n").toArrow()["n"].to_numpy()
        near = (ids >= 8990) & (ids < 9100) & (ids[::-1] % 1000 > 5)
        assert sorted(some) == ids[near & kept].tolist()
    last = expected[-1]
    assert spark.sql("select count(*), sum(n) from numbers").collect()[0][:] == (last.sum(), ids[last].sum())
    assert spark.sql("select count(*) from numbers where n > 28000").collect()[0][0] == last[28001:].sum()
    plan = plan_of(numbers.read(spark).where("n > 5").select("s"))
    assert "Exchange" not in plan
    assert "Join" not in plan
    assert "f3" not in plan
    assert ("BatchScan" if way == "readers" else "GreaterThan(f1,5)") in plan


def test_upserts_of_frames_take_positions(numbers: Table, spark: SparkSession) -> None:
    """Rows of the same key are retracted where they are, and rows can be told that were."""
    since = numbers.upper - 1
    parts = numbers.state.totals.parts
    data = spark.range(10, 20).selectExpr("id as n", "'new' as s")
    assert numbers.upsert(data).rows == 20
    assert numbers.state.totals.retracted == 10
    assert numbers.state.totals.parts > parts
    found = numbers.read(spark).where("n between 9 and 20").collect()
    assert sorted((row.n, row.s) for row in found) == [
        (n, "new" if 10 <= n < 20 else f"{n}") for n in range(9, 21)
    ]
    (changes,) = numbers.listen(since, timeout=0)
    assert sorted(zip(changes.rows["n"].to_pylist(), changes.rows["_diff"].to_pylist(), strict=True)) == [
        (n, diff) for n in range(10, 20) for diff in (-1, 1)
    ]
    options = {
        "store": numbers._services.blob.url,
        "table": "numbers",
        "changes": "true",
        "since": str(since),
    }
    told = (
        spark.read.format("instar").options(**options).load().selectExpr("sum(_diff)", "count(*)").collect()
    )
    assert tuple(told[0]) == (0, 20)
    options = {"store": numbers._services.blob.url, "table": "numbers"}
    assert spark.read.format("instar").options(**options).load().count() == ROWS


def test_a_part_is_taken_without_being_opened_where_statistics_prove_the_condition(
    numbers: Table, spark: SparkSession, tmp_path: Path
) -> None:
    """Its file may as well be gone. Of the part in which some rows match, only these are taken."""
    whole = [path for path, (_, last) in files_by_bounds(numbers).items() if last < 15_000]
    assert len(whole) > 1
    numbers.delete("n = 3", spark)
    for path in whole:
        path.rename(tmp_path / path.name)
    assert numbers.delete("n < 15000 and n >= 0", spark).rows == 14_999
    assert numbers.read(spark).selectExpr("count(*)", "min(n)").collect()[0][:] == (15_000, 15_000)
    for path in files_by_bounds(numbers):
        path.rename(tmp_path / path.name)
    assert numbers.delete("n is not null", spark).rows == 15_000
    assert numbers.read(spark).isEmpty()


@pytest.mark.directory
def test_only_columns_of_a_condition_or_a_key_are_read(
    numbers: Table, spark: SparkSession, tmp_path: Path
) -> None:
    """The others may be damaged."""
    spoil_columns(tmp_path, "f2", "f3")
    assert numbers.delete("n % 10 = 3", spark).rows == ROWS // 10
    assert numbers.upsert(spark.range(10, 20).selectExpr("id as n", "'new' as s")).rows == 19
    assert numbers.read(spark).where("n < 100").select("n").count() == 91
    with pytest.raises(Py4JJavaError, match="FAILED_READ_FILE"):
        numbers.read(spark).selectExpr("sum(m)").collect()


@pytest.mark.parametrize(
    ("where", "taken"),
    [
        ("m + 9223372036854775807 > 0", 30),  # wraps around for all but 0, in this session
        ("m < 1000 and rand() >= 0", ROWS),
        ("m < 1000 or n in (select 1)", ROWS),
        ("cast(null as boolean)", 0),
        ("N >= 0", ROWS),
        ("1 = 1", ROWS),
    ],
)
def test_what_is_proved_is_what_the_session_means(
    numbers: Table, spark: SparkSession, where: str, taken: int
) -> None:
    """Conditions are those of Spark in this session: with its arithmetic, names and subqueries."""
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        assert numbers.delete(where, spark).rows == taken
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert numbers.count() == ROWS - taken


def test_spark_names_files_and_refuses_positions_beside_those_that_are_left_out(
    numbers: Table, spark: SparkSession
) -> None:
    """The column of positions is in use: asking for it again is an error, and never a wrong number."""
    numbers.delete("n % 2 = 0")
    rows = numbers.read(spark).select("n", "_metadata.file_name").collect()
    assert len(rows) == ROWS // 2
    bounds = {path.name: bounds for path, bounds in files_by_bounds(numbers).items()}
    assert all(bounds[row.file_name][0] <= row.n <= bounds[row.file_name][1] for row in rows)
    with pytest.raises(AnalysisException, match="reserved column name"):
        numbers.read(spark).select("n", "_metadata.row_index").collect()


def files_by_bounds(table: Table) -> dict[Path, tuple[int, int]]:
    """Return the files of a table of this module, with the least and the greatest number in each."""
    root = Path(table._services.blob.url.removeprefix("file://"))
    found = {}
    for path in root.glob("tables/*/parts/**/*.parquet"):
        column = pq.read_table(path).column(0)
        found[path] = (pc.min(column).as_py(), pc.max(column).as_py())
    return found
