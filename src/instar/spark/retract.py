"""Deleting and replacing rows with Spark: what was seen is retracted, or nothing is."""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

from instar.errors import ConflictError, WriterFencedError
from instar.parts import DIFF
from instar.schema import format_path
from instar.spark.scan import snapshot_frame
from instar.spark.store import arrow_frame, incoming_schema, store_frame
from instar.table.snapshot import plan_snapshot, resolve_reader
from instar.table.write import ATTEMPTS, key_paths, repeated_key, resolve_writer, write_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from instar.state import TableState
    from instar.table import Committed, Services, TableLog

__all__ = ["delete_rows", "upsert_rows"]


def delete_rows(spark: SparkSession, services: Services, log: TableLog, where: str) -> Committed:
    """Retract the rows for which a condition is true."""

    def retraction(current: DataFrame, _: TableState) -> DataFrame:
        return current.where(where).withColumn(DIFF, F.lit(-1).cast("long"))

    return _rewrite(spark, services, log, retraction)


def upsert_rows(services: Services, log: TableLog, data: DataFrame) -> Committed:
    """Add rows, in place of those that have the same key."""
    # Asked once: the rows whose keys are looked up have to be the rows that are added.
    data = data.localCheckpoint()

    def replacement(current: DataFrame, state: TableState) -> DataFrame:
        paths = [format_path(path) for path in key_paths(state)]
        prefix = "_" * max(len(name) + 1 for name in current.columns)  # like no column's name
        keys = data.select([F.col(path).alias(f"{prefix}{at}") for at, path in enumerate(paths)])
        if not keys.groupBy(*keys.columns).count().where("count > 1").isEmpty():
            raise repeated_key(state)
        # Keys are equal as rows are: null is null.
        same = [F.col(path).eqNullSafe(F.col(f"{prefix}{at}")) for at, path in enumerate(paths)]
        gone = current.join(keys, reduce(and_, same), "left_semi")
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
    for _ in range(ATTEMPTS):
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
        except (ConflictError, WriterFencedError):
            continue  # somebody wrote, or dropped a column that the rows to retract have values in
    raise ConflictError(
        f"cannot change `{log.name}`: others wrote to it each of {ATTEMPTS} times. Try again."
    )
