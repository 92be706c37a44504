"""Queries by SQL, of views that follow their tables and of a catalog, have all that Spark's planner does."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import instar

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from instar import Store, Table

    Ask = Callable[[str], DataFrame]

PARTS = 6


@pytest.fixture
def sales(store: Store) -> Table:
    """Return a table of ten rows for each of six days, with columns that are called as those of files are."""
    table = store.create_table("sales", "f1 int, f4 string, d date")
    for day in range(PARTS):
        keys = pa.array(range(day * 10, day * 10 + 10), pa.int32())
        table.append(pa.table({"f1": keys, "f4": [f"v{day}"] * 10, "d": [dt.date(2026, 1, day + 1)] * 10}))
    keys = {"key": pa.array(range(0, 60, 2), pa.int32()), "name": [f"n{number // 5}" for number in range(30)]}
    store.create_table("keys", "key int, name string").append(pa.table(keys))
    return table


@pytest.fixture(params=["views", "catalog", "frames"])
def ask(planned: SparkSession, store: Store, sales: Table, request: pytest.FixtureRequest) -> Ask:
    """Return what runs a query over `sales` and `keys`, by one of the ways that there are."""
    instar.register(planned, store, "shop")
    prefix = "shop." if request.param == "catalog" else ""

    def ask(query: str) -> DataFrame:
        if request.param == "frames":
            for name in ("sales", "keys"):
                store.table(name).read(planned).createOrReplaceTempView(name)
        frame = planned.sql(query.format(sales=f"{prefix}sales", keys=f"{prefix}keys"))
        frame.collect()
        return frame

    assert sales.name == "sales"
    return ask


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    """Return rows in order."""
    return sorted(tuple(row) for row in frame.collect())


def read(frame: DataFrame) -> list[tuple[int, int]]:
    """Return how many parts of the table each scan reads, and of how many."""
    reports = [report for report in instar.scan_reports(frame) if report.table == "sales"]
    return sorted((report.read, report.total) for report in reports)


JOINED = "SELECT sum(s.f1) FROM {sales} s JOIN {keys} k ON s.f1 = k.key WHERE k.name = 'n3'"
KNOWN = "SELECT count(*), count(f1), min(f1), min(f4) FROM {sales}"


def test_sql_is_planned(ask: Ask) -> None:
    """Joins prune, aggregations are answered and limits open few parts, however a table is named."""
    joined = ask(JOINED)
    assert rows(joined) == [(170,)]
    assert read(joined) == [(1, PARTS)]
    known = ask(KNOWN)
    assert (rows(known), read(known)) == ([(60, 60, 0, "v0")], [])
    days = ask("SELECT d, count(*), max(f1) FROM {sales} WHERE f1 >= 20 GROUP BY d")
    assert (len(rows(days)), read(days)) == (4, [])
    first = ask("SELECT f4 FROM {sales} LIMIT 3")
    assert (rows(first), read(first)) == ([("v0",)] * 3, [(1, PARTS)])
    last = ask("SELECT f1 FROM {sales} ORDER BY f1 DESC LIMIT 2")
    assert (rows(last), read(last)) == ([(58,), (59,)], [(1, PARTS)])


def test_parts_with_retracted_rows_are_counted(ask: Ask, sales: Table) -> None:
    """How many rows are left is known; of ends, only those that no retracted row can have been at."""
    sales.delete("f1 in (14, 25, 59)")
    counted = ask(KNOWN)
    assert (rows(counted), read(counted)) == ([(57, 57, 0, "v0")], [])
    some = ask("SELECT count(*), min(f1) FROM {sales} WHERE f1 >= 30")
    assert (rows(some), read(some)) == ([(29, 30)], [])
    days = ask("SELECT d, count(*) FROM {sales} GROUP BY d")
    assert ([count for _, count in rows(days)], read(days)) == ([10, 9, 9, 10, 10, 9], [])
    greatest = ask("SELECT max(f1) FROM {sales}")
    assert (rows(greatest), read(greatest)) == ([(58,)], [(PARTS, PARTS)])
    joined = ask(JOINED)
    assert rows(joined) == [(170,)]
    assert read(joined) == [(1, PARTS)]
    twice = ask("SELECT count(*) FROM {sales} a JOIN {sales} b ON a.f1 = b.f1 WHERE b.f4 = 'v1'")
    assert rows(twice) == [(9,)]
    itself = ask("SELECT f4, count(*) FROM {sales} WHERE f1 = (SELECT max(f1) FROM {sales}) GROUP BY f4")
    assert rows(itself) == [("v5", 1)]


def test_audits_and_values_are_not_counted_from_metadata(
    ask: Ask, sales: Table, planned: SparkSession
) -> None:
    """Where skipping is checked, or rows have to be added up, counts are those of rows."""
    sales.delete("f1 = 5")
    planned.conf.set("instar.skipping", "audit")
    try:
        audited = ask("SELECT count(*) FROM {sales}")
        assert (rows(audited), len(read(audited))) == ([(59,)], 1)
    finally:
        planned.conf.unset("instar.skipping")


def test_where_a_row_is_can_be_asked_of_a_frame_that_follows(planned: SparkSession, sales: Table) -> None:
    """A scan that Spark's planner knows has no `_metadata`: what is asked for it is read over files."""
    frame = sales.follow(planned).selectExpr("count(*)", "max(_metadata.row_index)")
    assert rows(frame) == [(60, 9)]
    assert read(frame) == [(PARTS, PARTS)]
