"""Frames on their way into a table: what fits, what they add to it, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from instar.errors import DataMismatchError, UnsupportedTypeError, UsageError
from instar.schema import format_type

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

    from instar import Store

    Settings = Callable[[dict[str, str]], AbstractContextManager[None]]

COLLATED = "cast('a' as string collate utf8_lcase)"


@pytest.mark.native
def test_new_columns_have_the_types_of_the_frame(spark: SparkSession, store: Store) -> None:
    """Intervals keep their units, and whatever is added is nullable at every level."""
    table = store.create_table("t", "id int")
    frame = spark.sql(
        "select 1 id, interval '1-2' year to month y, array(interval '1' month) l, "
        "interval '1:02' hour to minute h, named_struct('c', 1, 'd', array(2)) s, map('k', 3) m"
    )
    table.append(frame, evolve=True)
    assert {field.name: format_type(field.type) for field in table.schema.fields[1:]} == {
        "y": "interval year to month",
        "l": "array<interval month>",
        "h": "interval hour to minute",
        "s": "struct<c: int, d: array<int>>",
        "m": "map<string, int>",
    }
    read, given = (rows.selectExpr("string(struct(*))").collect() for rows in (table.read(spark), frame))
    assert read == given


@pytest.mark.parametrize("evolve", [True, False])
@pytest.mark.parametrize(
    ("sql", "column", "reason"),
    [
        ("parse_json('1')", "x", "variant"),
        ("array(parse_json('1'))", "x.element", "variant"),
        ("make_interval(1, 2)", "x", "interval"),
    ],
)
def test_types_that_no_column_has_are_refused(
    spark: SparkSession, store: Store, sql: str, column: str, reason: str, *, evolve: bool
) -> None:
    """Neither as new columns nor into others, though Spark would hand them over as something else."""
    table = store.create_table("t", "x struct<value: binary, metadata: binary>")
    ddl = table.schema
    frame = spark.sql(f"select {sql} {'y' if evolve else 'x'}")
    with pytest.raises(UnsupportedTypeError, match=f"type {reason}.* of column") as caught:
        table.append(frame, evolve=evolve)
    assert caught.value.path == (column.replace("x", "y", 1) if evolve else column)
    assert (table.schema, table.state.totals.rows) == (ddl, 0)


def test_a_collation_is_not_lost(spark: SparkSession, store: Store) -> None:
    """Texts with a collation fit a string column, whose order is its own; no column is made for them."""
    table = store.create_table("t", "id int, v string")
    for new in (COLLATED, f"array({COLLATED})", f"named_struct('a', {COLLATED})"):
        with pytest.raises(UnsupportedTypeError, match="type string collate UTF8_LCASE of column `w"):
            table.append(spark.sql(f"select 1 id, {new} w"), evolve=True)
    table.append(spark.sql(f"select 1 id, {COLLATED} v"))
    assert [tuple(row) for row in table.read(spark).collect()] == [(1, "a")]


def test_months_are_no_whole_numbers(spark: SparkSession, store: Store) -> None:
    """An interval fits a column of intervals and no other."""
    table = store.create_table("t", "id int")
    with pytest.raises(DataMismatchError, match="it is interval month, which is not int"):
        table.append(spark.sql("select interval '1' month id"))


@pytest.mark.parametrize("sensitive", ["true", "false"])
def test_names_that_differ_in_case_are_refused(
    spark: SparkSession, store: Store, with_settings: Settings, sensitive: str
) -> None:
    """Whether or not the session tells them apart."""
    table = store.create_table("t", "id int", key=["id"])
    with with_settings({"spark.sql.caseSensitive": sensitive}):
        frame = spark.sql("select 2 id, 3 ID")
        for write in (table.append, table.upsert):
            with pytest.raises(DataMismatchError, match="more than one column of this name"):
                write(frame)


def test_a_frame_without_columns_is_refused(spark: SparkSession, store: Store) -> None:
    """Its rows would all be lost."""
    table = store.create_table("t", "id int", key=["id"])
    for write in (table.append, table.upsert):
        with pytest.raises(UsageError, match="the data has no columns"):
            write(spark.range(3).select())


@pytest.mark.parametrize("key", ["k", "s.k"])
def test_a_key_that_is_left_out_is_null(spark: SparkSession, store: Store, key: str) -> None:
    """An upsert without a column of the key replaces the row whose key is null there, as in process."""
    layout = pa.schema([("v", pa.int32())])
    found = []
    for name in ("one", "other"):
        table = store.create_table(name, "k int, s struct<k: int>, v int", key=[key])
        table.append(spark.sql("select 1 k, named_struct('k', 1) s, 1 v union all select null, null, 2"))
        if name == "one":
            table.upsert(spark.sql("select 3 v"))
        else:
            table.upsert(pa.Table.from_pylist([{"v": 3}], schema=layout))
        found.append(sorted(row.v for row in table.read(spark).collect()))
    assert found == [[1, 3], [1, 3]]
    strict = store.create_table("strict", "k int not null, v int", key=["k"])
    with pytest.raises(DataMismatchError, match="the data does not have it"):
        strict.upsert(spark.sql("select 3 v"))


def test_the_case_of_letters_is_no_matter_to_an_upsert(
    spark: SparkSession, store: Store, with_settings: Settings
) -> None:
    """Where Spark tells cases apart, columns and members are still those of the table, as for an append."""
    table = store.create_table("t", "id int, s struct<x: int>, l array<struct<y: int>>", key=["id"])
    frame = spark.sql("select 1 ID, named_struct('X', 2) S, array(named_struct('Y', 3)) L")
    for settings in ({"spark.sql.caseSensitive": "true"}, {}):
        with with_settings(settings):
            table.append(frame)
            table.upsert(frame)
            assert [row.asDict(recursive=True) for row in table.read(spark).collect()] == [
                {"id": 1, "s": {"x": 2}, "l": [{"y": 3}]}
            ]
