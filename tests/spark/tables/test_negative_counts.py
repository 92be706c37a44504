"""A row that was retracted more often than it was added: an error for everybody, never a missing row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

import instar
from instar.errors import NegativeCountError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from instar import Store, Table

LAYOUT = pa.schema([("k", pa.int32()), ("v", pa.string())])


@pytest.fixture
def table(store: Store) -> Table:
    """Return a table that holds two good rows, and one that is there once too few."""
    table = store.create_table("t", "k int, v string")
    table.append(pa.Table.from_pylist([{"k": 1, "v": "a"}, {"k": 2, "v": "b"}], schema=LAYOUT))
    gone = pa.Table.from_pylist([{"k": 2, "v": "b"}] * 2, schema=LAYOUT)
    table.apply(gone.append_column("_diff", pa.array([-1, -1])))
    return table


def actions(folder: Path) -> dict[str, Callable[[DataFrame], object]]:
    """Return what people do with a frame."""
    return {
        "collect": lambda frame: frame.collect(),
        "count": lambda frame: frame.count(),
        "pandas": lambda frame: frame.toPandas(),
        "arrow": lambda frame: frame.toArrow(),
        "iterator": lambda frame: list(frame.toLocalIterator()),
        "join": lambda frame: frame.join(frame.withColumnRenamed("v", "w"), "k").collect(),
        "write": lambda frame: frame.write.parquet(str(folder / "out")),
    }


@pytest.mark.filterwarnings("ignore:toPandas attempted Arrow optimization")
@pytest.mark.native
def test_every_action_raises_the_error_itself(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    """Whatever is done with the rows, the caller gets `NegativeCountError`, from frames and from views."""
    read, followed = table.read(spark), table.follow(spark)
    for name, action in actions(tmp_path).items():
        with pytest.raises(NegativeCountError, match="retracted more often than it was added") as caught:
            action(read)
        assert type(caught.value) is NegativeCountError, name
    with pytest.raises(NegativeCountError):
        followed.collect()


@pytest.mark.native
def test_writes_and_queries_raise_it_and_change_nothing(
    spark: SparkSession, store: Store, table: Table
) -> None:
    """SQL, an append of what was read, a delete and an upsert fail whole."""
    instar.register(spark, store)
    other = store.create_table("other", "k int, v string", key=["k"])
    seqno = table.state.seqno
    with pytest.raises(NegativeCountError):
        spark.sql("select v, count(*) from t group by v").collect()
    with pytest.raises(NegativeCountError):
        other.append(table.read(spark))
    with pytest.raises(NegativeCountError):
        other.upsert(table.read(spark))
    with pytest.raises(NegativeCountError):
        table.delete("v is not null", spark)
    assert table.state.seqno == seqno
    assert other.state.totals.rows == 0


def test_in_process_it_is_the_same_error_and_names_the_row(table: Table) -> None:
    """`to_arrow` raises the same class, with the row and its count; before the retraction all was well."""
    with pytest.raises(NegativeCountError, match=r"its count is -1\b.*k=2, v=b"):
        table.snapshot().to_arrow()
    before = table.snapshot(as_of=table.upper - 2)
    assert sorted(before.to_arrow().column("k").to_pylist()) == [1, 2]


@pytest.mark.native
def test_a_projection_does_not_hide_it(spark: SparkSession, table: Table) -> None:
    """Another row that looks the same in the columns that are read does not make up for it."""
    table.append(pa.Table.from_pylist([{"k": 2, "v": "c"}], schema=LAYOUT))
    snapshot = table.snapshot(columns=["k"])
    with pytest.raises(NegativeCountError):
        snapshot.to_spark(spark).collect()
    with pytest.raises(NegativeCountError):
        snapshot.to_arrow()


def test_adding_the_row_back_heals_the_table(spark: SparkSession, table: Table) -> None:
    """The error says what to do, and that helps."""
    table.append(pa.Table.from_pylist([{"k": 2, "v": "b"}], schema=LAYOUT))
    assert [tuple(row) for row in table.read(spark).collect()] == [(1, "a")]
    assert table.snapshot().to_arrow().to_pylist() == [{"k": 1, "v": "a"}]


def test_a_wrong_query_is_told_from_it(spark: SparkSession, store: Store) -> None:
    """A query that Spark refuses is refused by Spark, though its plan holds the words of the error."""
    table = store.create_table("fact", "k int, v string")
    table.append(pa.Table.from_pylist([{"k": 1, "v": "a"}, {"k": 2, "v": "b"}], schema=LAYOUT))
    table.delete("k = 2", spark)
    instar.register(spark, store)
    for wrong in ("select nope from fact", "select sum(map('a', k)) from fact"):
        with pytest.raises(AnalysisException):
            spark.sql(wrong).collect()
    with pytest.raises(AnalysisException, match="nope"):
        table.read(spark).where("nope = 1")
    with pytest.raises(UsageError, match=r"`nope` .* of the following\? \[`\w+`(, `\w+`)*\]"):
        table.delete("nope = 1", spark)


@pytest.mark.parametrize("legacy", ["true", "false"])
@pytest.mark.native
def test_it_is_found_in_the_failure_of_a_job(spark: SparkSession, table: Table, legacy: str) -> None:
    """A failed job is wrapped in the error of whoever ran it, and Spark may say it without an error class."""
    setting = "spark.sql.legacy.raiseErrorWithoutErrorClass"
    spark.conf.set(setting, legacy)
    try:
        with pytest.raises(NegativeCountError, match=r"its count is -1\b.*\"v\":\"b\""):
            table.read(spark)._jdf.queryExecution().toRdd().count()
    finally:
        spark.conf.unset(setting)
