"""`instar query`: SQL over the tables of a store."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final

import typer

from instar.cli.options import AsOfOption, ConsensusOption, StoreOption, open_store, snapshot_at
from instar.cli.output import JsonOption, working
from instar.cli.printing import CsvOption, LimitOption, NdjsonOption, VerticalOption, chosen_printing
from instar.errors import TableNotFoundError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from instar import Store

__all__ = ["query"]

_FIRST: Final = re.compile(r"\s*([A-Za-z]+)")
_WRITES: Final = frozenset(
    [
        "alter",
        "analyze",
        "begin",
        "cache",
        "call",
        "clear",
        "create",
        "delete",
        "drop",
        "grant",
        "insert",
        "merge",
        "refresh",
        "repair",
        "replace",
        "reset",
        "revoke",
        "set",
        "truncate",
        "uncache",
        "update",
        "use",
    ]
)
QUERIES: Final = "Write one that begins with select, with, values, from, table, describe, show or explain"


def query(  # noqa: PLR0913 -- options of a command
    sql: Annotated[str, typer.Argument(help="A query in Spark's SQL. Names with a / go in `backticks`.")],
    *,
    as_of: AsOfOption = None,
    vertical: VerticalOption = False,
    csv: CsvOption = False,
    ndjson: NdjsonOption = False,
    limit: LimitOption = None,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a query over all tables of a store, on a Spark of this machine.

    Examples:

        instar query "select country, count(*) as n from events group by country"

        instar query "select * from `billing/events`" --as-of 2026-11-15T12:00 --json

    """
    printing = chosen_printing(as_json=as_json, ndjson=ndjson, csv=csv, vertical=vertical, limit=limit)
    _check_reads(sql)
    with open_store(store, consensus) as opened:
        with working("starting Spark"):
            from instar.spark.commands.query import query_frame, rows_of  # noqa: PLC0415 -- slow
            from instar.spark.problems import spark_errors  # noqa: PLC0415 -- slow
            from instar.spark.session import cancelling, local_session  # noqa: PLC0415

            spark = local_session("instar query").newSession()
        with spark_errors(), cancelling(spark):
            frame = query_frame(spark, sql, lambda name: _find(opened, name, as_of, spark))
            with working("running the query"):
                found = rows_of(frame, printing.asked)
    printing.print(found)


def _check_reads(sql: str) -> None:
    """Refuse at once what is certainly no query, because Spark is slow to start."""
    first = _FIRST.match(sql)
    if first is not None and first[1].lower() in _WRITES:
        raise UsageError(f"`{first[1]} …` is not a query, and a query only reads. {QUERIES}")


def _find(store: Store, name: str, as_of: int | None, spark: SparkSession) -> DataFrame | None:
    try:
        table = store.table(name)
    except TableNotFoundError:
        return None
    return snapshot_at(table, as_of).to_spark(spark)
