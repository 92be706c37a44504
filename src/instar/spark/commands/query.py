"""SQL over tables by name: a table becomes a view when a query is found to need it."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException

from instar.errors import TableNotFoundError, UsageError
from instar.spark.native.views import make_view
from instar.spark.write.incoming import arrow_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["query_frame", "rows_of", "spark_errors"]

_QUOTED: Final = re.compile(r"`((?:[^`]|``)+)`")
_READING: Final = re.compile(r"\s*(?:describe|desc|show|explain)\b", re.IGNORECASE)
_STATE: Final = re.compile(r"\s*SQLSTATE: \w+\.?")
_CAUSE: Final = re.compile(r"^(?:Caused by: )?[\w.$]+(?:Exception|Error): (.+)$", re.MULTILINE)


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


@contextmanager
def spark_errors() -> Iterator[None]:
    """Say of Spark's errors what the caller can do something about, without its stack."""
    try:
        yield
    except PySparkException as error:
        raise UsageError(_essence(str(error))) from error
    except Py4JJavaError as error:
        causes = _CAUSE.findall(str(error))
        raise UsageError(_essence(causes[-1] if causes else str(error))) from error


def rows_of(frame: DataFrame) -> pa.Table:
    """Return the rows of a frame; times are in UTC, whatever the session says."""
    named = frame.toDF(*(f"c{at}" for at in range(len(frame.columns))))  # names may repeat
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


def _essence(text: str) -> str:
    """Leave out the state that standards ask for, the plan, and the JVM's own stack."""
    for end in ("\n\nJVM stacktrace", ";\n'", ";\n+-"):
        text = text.partition(end)[0]
    return _STATE.sub("", text).strip()
