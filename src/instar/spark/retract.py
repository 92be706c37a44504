"""Deleting and replacing rows with Spark: what was seen is retracted, or nothing is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

from instar.errors import ConflictError, UsageError
from instar.parts import DIFF
from instar.spark.scan import snapshot_frame
from instar.spark.store import arrow_frame, incoming_schema, store_frame
from instar.table.snapshot import plan_snapshot, resolve_reader
from instar.table.write import resolve_writer, write_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from instar.state import TableState
    from instar.table import Committed, Services, TableLog

__all__ = ["delete_rows", "upsert_rows"]

_ATTEMPTS: Final = 5


def delete_rows(spark: SparkSession, services: Services, log: TableLog, where: str) -> Committed:
    """Retract the rows for which a condition is true."""

    def retraction(current: DataFrame, _: TableState) -> DataFrame:
        return current.where(where).withColumn(DIFF, F.lit(-1).cast("long"))

    return _rewrite(spark, services, log, retraction)


def upsert_rows(services: Services, log: TableLog, data: DataFrame) -> Committed:
    """Add rows, in place of those that have the same key."""

    def replacement(current: DataFrame, state: TableState) -> DataFrame:
        latest = state.history.latest
        keys = [field.name for field in latest.fields if field.id in state.key]
        if not data.groupBy(*keys).count().where("count > 1").isEmpty():
            raise UsageError(
                f"the data has the same key ({', '.join(keys)}) more than once: which row shall stay?"
            )
        gone = current.join(data.select(*keys), keys, "left_semi").select(*current.columns)
        retracted = gone.withColumn(DIFF, F.lit(-1).cast("long"))
        return retracted.unionByName(data.withColumn(DIFF, F.lit(1).cast("long")), allowMissingColumns=True)

    return _rewrite(data.sparkSession, services, log, replacement)


def _rewrite(
    spark: SparkSession,
    services: Services,
    log: TableLog,
    changes_of: Callable[[DataFrame, TableState], DataFrame],
) -> Committed:
    """Commit changes to exactly the rows that they were worked out from; try again if the table moved on."""
    for _ in range(_ATTEMPTS):
        pin = log.pinned()
        state = pin.state
        plan = plan_snapshot(services.chunks, state, resolve_reader(state, None, None), None)
        current = snapshot_frame(spark, services, plan, pin)
        changes = arrow_frame(changes_of(current, state))
        writer = resolve_writer(state, incoming_schema(changes), state.history.latest_id, evolve=False)
        try:
            return write_rows(
                services,
                log,
                writer,
                lambda storing, frame=changes: store_frame(frame, storing, updates=True),  # type: ignore[misc]
                expected_upper=state.upper,
            )
        except ConflictError:
            continue
    raise ConflictError(
        f"cannot change `{log.name}`: others wrote to it each of {_ATTEMPTS} times. Try again."
    )
