"""`instar query`: SQL over the tables of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from instar.cli.options import AsOfOption, ConsensusOption, StoreOption, open_store, snapshot_at
from instar.cli.output import JsonOption, console, json_value, print_json, print_table, working
from instar.errors import TableNotFoundError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from instar import Store

__all__ = ["query"]

_SHOWN = 50


def query(
    sql: Annotated[str, typer.Argument(help="A query in Spark's SQL. Names with a / go in `backticks`.")],
    *,
    as_of: AsOfOption = None,
    limit: Annotated[
        int | None, typer.Option(min=0, help="At most this many rows; without, 50 in text, all as JSON.")
    ] = None,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a query over all tables of a store, on a Spark of this machine.

    Examples:

        instar query "select country, count(*) as n from events group by country" --store lake

        instar query "select * from `billing/events`" --as-of 2026-11-15T12:00 --store lake --json

    """
    most = _SHOWN if limit is None and not as_json else limit
    with open_store(store, consensus) as opened:
        with working("starting Spark"):
            from instar.spark.commands.query import query_frame, row_values, spark_errors  # noqa: PLC0415 -- slow
            from instar.spark.session import cancelling, local_session  # noqa: PLC0415

            spark = local_session("instar query").newSession()
        with spark_errors(), cancelling(spark):
            frame = query_frame(spark, sql, lambda name: _find(opened, name, as_of, spark))
            with working("running the query"):
                found = (frame if most is None else frame.limit(most + 1)).collect()
        names = frame.columns
        rows = [row_values(row) for row in found[:most]]
    if as_json:
        if len(set(names)) < len(names):
            raise UsageError(f"two columns have one name among {', '.join(names)}: rename with `as`")
        print_json([dict(zip(names, map(json_value, row), strict=True)) for row in rows])
        return
    print_table(names, [[_text(value) for value in row] for row in rows])
    if most is not None and len(found) > most:
        console().print("There are more rows; --limit shows more.")


def _find(store: Store, name: str, as_of: int | None, spark: SparkSession) -> DataFrame | None:
    try:
        table = store.table(name)
    except TableNotFoundError:
        return None
    return snapshot_at(table, as_of).to_spark(spark)


def _text(value: object) -> str:
    return "" if value is None else str(value)
