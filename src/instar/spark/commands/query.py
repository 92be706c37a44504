"""SQL over tables by name: a table becomes a view when a query is found to need it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pyspark.errors import AnalysisException, ParseException

from instar.errors import TableNotFoundError, UsageError
from instar.spark.native.views import make_view
from instar.spark.write.incoming import arrow_frame

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["query_frame", "rows_of"]

_QUOTED: Final = re.compile(r"`((?:[^`]|``)+)`")
_READING: Final = re.compile(r"\s*(?:describe|desc|show|explain)\b", re.IGNORECASE)


def query_frame(spark: SparkSession, sql: str, find_table: Callable[[str], DataFrame | None]) -> DataFrame:
    """Return the result of a query; `find_table` gives the rows of a table, or None if there is none."""
    _check_query(spark, sql)
    tried: set[str] = set()
    while True:
        try:
            return spark.sql(sql)
        except AnalysisException as error:
            name = _missing_table(error)
            if name is None or name in tried:
                raise
            tried.add(name)
            frame = find_table(name)
            if frame is None:
                raise TableNotFoundError(name) from None
            make_view(name, frame)


def rows_of(frame: DataFrame, most: int | None = None) -> pa.Table:
    """Return the rows of a frame, or some of them; times are in UTC, whatever the session says."""
    some = frame if most is None else frame.limit(most)
    named = some.toDF(*(f"c{at}" for at in range(len(frame.columns))))  # names may repeat
    return arrow_frame(named).toArrow().rename_columns(frame.columns)


def _check_query(spark: SparkSession, sql: str) -> None:
    """Raise unless a statement only reads; what is no statement at all is Spark's to complain about."""
    parser = spark._jsparkSession.sessionState().sqlParser()  # noqa: SLF001 -- there is no other way to it
    parser.parsePlan(sql)
    if _READING.match(sql):
        return
    try:
        parser.parseQuery(sql)
    except ParseException:
        raise UsageError(
            "this statement is not a query, and a query only reads. Write one that begins with select, with, "
            "values, from, table, describe, show or explain"
        ) from None


def _missing_table(error: AnalysisException) -> str | None:
    if error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
        return None
    parts = _QUOTED.findall((error.getMessageParameters() or {}).get("relationName", ""))
    return ".".join(part.replace("``", "`") for part in parts) if parts else None
