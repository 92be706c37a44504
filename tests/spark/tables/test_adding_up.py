"""Rows that are added up on Spark are those that are added up in process, whatever their types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from instar.errors import CountOverflowError, NegativeCountError
from instar.schema import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from instar import Store, Table

pytestmark = pytest.mark.spark

COUNTS = pa.map_(pa.string(), pa.int32())
FLOATS = pa.map_(pa.float64(), pa.struct([("x", pa.float32()), ("m", COUNTS)]))


def given(table: Table, *rows: dict[str, object]) -> pa.Table:
    """Lay rows out under the table's schema, with their diffs if they have any."""
    layout = arrow_schema(table.schema)
    if "_diff" in rows[0]:
        layout = layout.append(pa.field("_diff", pa.int64()))
    return pa.Table.from_pylist(list(rows), schema=layout)


def maps(store: Store, type_: pa.DataType, ddl: str, values: list[object]) -> Table:
    """Return a table of maps in which one row is retracted, so that the others are added up."""
    table = store.create_table("maps", f"id int, m {ddl}")
    ids = pa.array([1] * len(values) + [2], pa.int32())
    table.append(pa.table({"id": ids, "m": pa.array([*values, None], type_)}))
    table.apply(pa.table({"id": pa.array([2], pa.int32()), "_diff": [-1]}))
    return table


def test_null_values_of_maps_stay_null(store: Store, spark: SparkSession) -> None:
    """A map with a null is another row than one with a zero, and a delete retracts only what it names."""
    table = maps(store, COUNTS, "map<string,int>", [[("a", None)], [("a", 0)]])
    assert sorted(str(row.m) for row in table.read(spark).collect()) == ["{'a': 0}", "{'a': None}"]
    assert table.delete("m['a'] = 0", spark).rows == 1
    assert table.snapshot().to_arrow()["m"].to_pylist() == [[("a", None)]]
    assert [row.m for row in table.read(spark).collect()] == [{"a": None}]


def test_maps_are_equal_whatever_the_order_of_their_entries(store: Store, spark: SparkSession) -> None:
    """At every level, with nulls and zeros of both signs inside."""
    one = [(1.0, {"x": -0.0, "m": [("a", 1), ("b", None)]}), (2.0, None)]
    two = [(2.0, None), (1.0, {"x": 0.0, "m": [("b", None), ("a", 1)]})]
    ddl = "map<double,struct<x:float,m:map<string,int>>>"
    table = maps(store, FLOATS, ddl, [one, one, [(2.0, {"x": None, "m": None})], [], None])
    table.apply(pa.table({"id": pa.array([1], pa.int32()), "m": pa.array([two], FLOATS), "_diff": [-1]}))
    assert table.read(spark).count() == table.snapshot().to_arrow().num_rows == 4
    assert table.read(spark).where("size(m) = 2").count() == 1
    assert table.read(spark).where("m is null").count() == 1


def test_a_map_that_may_not_be_null_is_not(store: Store, spark: SparkSession) -> None:
    """What Spark is told of a column does not depend on whether rows are added up."""
    table = store.create_table(
        "never", "m map<string,int> not null, s struct<d:double,n:map<int,int>> not null"
    )
    table.append(
        given(table, {"m": {"a": 1}, "s": {"d": 1.0, "n": {}}}, {"m": {}, "s": {"d": 2.0, "n": None}})
    )
    table.apply(given(table, {"m": {}, "s": {"d": 2.0, "n": None}, "_diff": -1}))
    frame = table.read(spark)
    assert [field.nullable for field in frame.schema] == [False, False]
    assert [row.m for row in frame.collect()] == [{"a": 1}]


@pytest.mark.parametrize("ddl", ["double", "float"])
def test_a_filter_does_not_tell_equal_rows_apart(store: Store, spark: SparkSession, ddl: str) -> None:
    """A row that was added as -0.0 and retracted as 0.0 is gone under every filter."""
    table = store.create_table("zeros", f"d {ddl}, s struct<d:{ddl}>, l array<{ddl}>")
    table.append(
        given(table, {"d": -0.0, "s": {"d": -0.0}, "l": [-0.0]}, {"d": 1.0, "s": {"d": 1.0}, "l": [1.0]})
    )
    table.apply(given(table, {"d": 0.0, "s": {"d": 0.0}, "l": [0.0], "_diff": -1}))
    for column in ("d", "s.d", "l[0]"):
        for text in ("-0.0", "0.0"):
            where = f"cast({column} as string) = '{text}'"
            assert table.read(spark).where(where).collect() == [], where
        assert table.read(spark).where(f"{column} > 0.5").count() == 1


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.native
def test_counts_are_exact_or_refused(store: Store, spark: SparkSession, ansi: str) -> None:
    """A sum never wraps around, in no mode of Spark."""
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        table = store.create_table("counts", "id int")
        table.apply(given(table, {"id": 1, "_diff": 2**32 + 5}, {"id": 2, "_diff": 2**31 + 1}))
        table.apply(given(table, {"id": 1, "_diff": -(2**32)}, {"id": 2, "_diff": -(2**31)}))
        assert sorted(row.id for row in table.read(spark).collect()) == [1, 1, 1, 1, 1, 2]
        table.apply(given(table, {"id": 3, "_diff": 3_000_005}))
        assert table.read(spark).where("id = 3").count() == 3_000_005
        added = 0
        for much in (2**40, 2**52, 2**62, 2**63 - 1):  # each of them wraps around in another place
            table.apply(given(table, {"id": 3, "_diff": much - added}))
            added = much
            for read in (lambda: table.read(spark).where("id = 3").limit(1).collect(), table.to_arrow):
                with pytest.raises(CountOverflowError, match=r"a row add up to \d+, .* at most 2\^40 times"):
                    read()
        table.apply(given(table, {"id": 3, "_diff": -(2**63)}, {"id": 3, "_diff": -3_000_005}))
        with pytest.raises(NegativeCountError, match="its count is -1"):
            table.read(spark).collect()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
