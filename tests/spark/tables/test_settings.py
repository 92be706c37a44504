"""Whatever a session is set to, a table says the same."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from instar.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

    from instar import Store, Table

    Settings = Callable[[dict[str, str]], AbstractContextManager[None]]

COLUMNS = (
    "k int not null, f double, d date, at timestamp, local timestamp_ntz, n decimal(30,10), b binary, "
    "s struct<x: int, f1: string>, l array<struct<y: double>>, m map<string, date>"
)
OLD = dt.datetime(1500, 2, 28, 23, 59, 59, 999999)  # noqa: DTZ001 -- local times have no zone
ROWS: list[dict[str, Any]] = [
    {"k": 1, "f": math.nan, "d": dt.date(1500, 1, 1), "at": OLD.replace(tzinfo=dt.UTC), "local": OLD},
    {"k": 2, "f": -0.0, "d": dt.date(1, 1, 1), "s": None, "l": None, "m": None, "n": Decimal("1e-10")},
    {"k": 3, "f": 0.0, "s": {"x": None, "f1": None}, "l": [], "m": [], "b": b""},
    {"k": 4, "f": None, "s": {"x": 1, "f1": "z"}, "l": [None, {"y": math.nan}], "b": b"\xff\x00"},
    {"k": 5, "l": [{"y": -0.0}], "m": [("a", dt.date(1582, 10, 4)), ("b", None)], "n": Decimal(10) ** 19},
]
BY_ID = {"spark.sql.parquet.fieldId.read.enabled": "true"}
"""Reading row by row, Spark asks the session for this, and not the relation."""
ROW_BY_ROW = {
    "row by row": {"spark.sql.parquet.enableVectorizedReader": "false"},
    "row by row when nested": {"spark.sql.parquet.enableNestedColumnVectorizedReader": "false"},
}
SETTINGS: dict[str, dict[str, str]] = {
    "as it is": {},
    **{name: {**settings, **BY_ID} for name, settings in ROW_BY_ROW.items()},
    "record filters": {
        "spark.sql.parquet.enableVectorizedReader": "false",
        "spark.sql.parquet.recordLevelFilter.enabled": "true",
        **BY_ID,
    },
    "no pushdown": {"spark.sql.parquet.filterPushdown": "false"},
    "case sensitive": {"spark.sql.caseSensitive": "true"},
    "ids are not read": {"spark.sql.parquet.fieldId.read.enabled": "false"},
    "binary as text": {"spark.sql.parquet.binaryAsString": "true"},
    "not ANSI": {"spark.sql.ansi.enabled": "false"},
    "another zone": {"spark.sql.session.timeZone": "America/Los_Angeles"},
    "no adaption": {"spark.sql.adaptive.enabled": "false"},
}
OLD_CALENDAR = {
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
}


@pytest.fixture
def table(store: Store) -> Table:
    """Return a table with rows of every awkward kind, one of them in a part that has to be consolidated."""
    table = store.create_table("t", COLUMNS)
    layout = table.snapshot().to_arrow().schema
    table.append(pa.Table.from_pylist(ROWS[:3], schema=layout))
    table.append(pa.Table.from_pylist(ROWS[3:], schema=layout))
    table.evolve().widen_column("k", "bigint").widen_column("s.x", "double").add_column("z", "int").commit()
    return table


def retract_one(table: Table) -> None:
    """Take a row back and add it again, so that rows of its part have to be added up."""
    row = pa.Table.from_pylist([ROWS[0]], schema=table.snapshot().to_arrow().schema)
    table.apply(row.append_column("_diff", pa.array([-1])))
    table.append(row)


def as_bag(table: pa.Table, *, signs: bool) -> list[str]:
    """Return rows as text; only a row that was not added up keeps the sign of a zero."""
    instants = [
        column.cast(pa.timestamp("us", "UTC"))
        if pa.types.is_timestamp(column.type) and column.type.tz
        else column
        for column in table.columns
    ]
    rows = pa.table(instants, names=table.column_names).to_pylist()
    return sorted(repr(row) if signs else repr(row).replace("-0.0", "0.0") for row in rows)


def test_settings_of_the_session_change_nothing(
    spark: SparkSession, table: Table, with_settings: Settings
) -> None:
    """Every value of every type comes out of Spark as it does without Spark, scanned and consolidated."""
    for signs in (True, False):
        snapshot = table.snapshot()
        expected = as_bag(snapshot.to_arrow(), signs=signs)
        assert len(expected) == len(ROWS)
        for name, settings in SETTINGS.items():
            with with_settings(settings):
                assert as_bag(snapshot.to_spark(spark).toArrow(), signs=signs) == expected, name
        retract_one(table)


def test_row_by_row_members_are_read_or_refused(
    spark: SparkSession, table: Table, with_settings: Settings
) -> None:
    """A session that does not find fields by id gets an error or the values, and never nulls instead."""
    for settings in ROW_BY_ROW.values():
        with with_settings(settings):
            try:
                found = table.read(spark).selectExpr("max(l[0].y)").first()
            except UsageError:
                continue
            assert found is not None
            assert found[0] == 0.0


def test_the_old_calendar_is_not_taken_for_ours(
    spark: SparkSession, table: Table, with_settings: Settings
) -> None:
    """Parts say that their dates are of the calendar of today, whatever files of old Sparks need."""
    with with_settings(OLD_CALENDAR):
        found = table.read(spark).where("k = 1").selectExpr("string(d)", "string(at)").first()
    assert found is not None
    assert tuple(found) == ("1500-01-01", "1500-02-28 23:59:59.999999")


def test_a_part_that_is_gone_is_an_error(spark: SparkSession, table: Table, with_settings: Settings) -> None:
    """Rows are never left out because a file is missing, even where Spark was told not to mind."""
    frame = table.read(spark)
    part = next(Path(table._services.blob.url.removeprefix("file://")).glob("tables/*/parts/*"))
    part.unlink()
    settings = {"spark.sql.files.ignoreMissingFiles": "true", "spark.sql.files.ignoreCorruptFiles": "true"}
    with with_settings(settings), pytest.raises(Exception, match="FILE_NOT_EXIST"):
        frame.collect()
