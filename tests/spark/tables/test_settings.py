"""Whatever a session is set to, a table says the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from instar.errors import UsageError
from soak.settings import awkward_table, check_table, other_values, retract_one

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

    from instar import Store, Table

    Settings = Callable[[dict[str, str]], AbstractContextManager[None]]

BY_ID = {"spark.sql.parquet.fieldId.read.enabled": "true"}
"""Reading row by row, Spark asks the session for this, and not the relation."""
ROW_BY_ROW = {
    "row by row": {"spark.sql.parquet.enableVectorizedReader": "false"},
    "row by row when nested": {"spark.sql.parquet.enableNestedColumnVectorizedReader": "false"},
}
ROW_BY_ROW_NAMES = [name for settings in ROW_BY_ROW.values() for name in settings]
TOGETHER: dict[str, dict[str, str]] = {
    "as it is": {},
    **{name: {**settings, **BY_ID} for name, settings in ROW_BY_ROW.items()},
    "record filters": {
        "spark.sql.parquet.enableVectorizedReader": "false",
        "spark.sql.parquet.recordLevelFilter.enabled": "true",
        **BY_ID,
    },
    "all that is old": {
        "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": "true",
        "spark.sql.parquet.enableVectorizedReader": "false",
        "spark.sql.parquet.binaryAsString": "true",
        "spark.sql.ansi.enabled": "false",
        **BY_ID,
    },
    "case sensitive in another zone": {
        "spark.sql.caseSensitive": "true",
        "spark.sql.session.timeZone": "America/Los_Angeles",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.parquet.filterPushdown": "false",
    },
}
OLD_CALENDAR = {
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
}


@pytest.fixture
def table(store: Store) -> Table:
    """Return a table with rows of every awkward kind."""
    return awkward_table(store)


@pytest.mark.native
def test_no_setting_changes_what_is_read(spark: SparkSession, store: Store, table: Table) -> None:
    """Each setting that Spark has for reading files leaves every value as it is, or is refused."""
    settings = other_values(spark, reading=True)
    assert len(settings) > 30
    refused = [
        name
        for name, values in settings.items()
        for value in values
        if not check_table(spark, table, {name: value}, signs=True, conditions=[None])
    ]
    assert sorted(refused) == sorted(ROW_BY_ROW_NAMES)


@pytest.mark.parametrize("settings", [*TOGETHER.values()], ids=[*TOGETHER])
def test_rows_are_added_up_the_same(spark: SparkSession, table: Table, settings: dict[str, str]) -> None:
    """Values that have to be added up come out the same too, also under several settings at once."""
    assert check_table(spark, table, settings, signs=True)
    retract_one(table)
    assert check_table(spark, table, settings, signs=False)


def test_a_delete_retracts_what_is_there(spark: SparkSession, table: Table, with_settings: Settings) -> None:
    """A struct whose members are all younger than its part is one of nulls, and not null, to a delete too."""
    with with_settings({"spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": "true"}):
        table.delete("k = 6", spark)
    assert sorted(table.snapshot().to_arrow(columns=["k"])["k"].to_pylist()) == [1, 2, 3, 4, 5]


@pytest.mark.native
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


@pytest.mark.directory
def test_a_part_that_is_gone_is_an_error(spark: SparkSession, table: Table, with_settings: Settings) -> None:
    """Rows are never left out because a file is missing, even where Spark was told not to mind."""
    frame = table.read(spark)
    part = next(Path(table._services.blob.url.removeprefix("file://")).glob("tables/*/parts/*"))
    part.unlink()
    settings = {"spark.sql.files.ignoreMissingFiles": "true", "spark.sql.files.ignoreCorruptFiles": "true"}
    with with_settings(settings), pytest.raises(Exception, match="FILE_NOT_EXIST"):
        frame.collect()
