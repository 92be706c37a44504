"""Deleting and replacing rows with Spark: what was seen is retracted, or nothing is."""

from __future__ import annotations

from functools import partial, reduce
from operator import and_
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

from instar.parts import DIFF
from instar.schema import format_path
from instar.spark.native.located import located_frame, positions_of, proved_parts
from instar.spark.native.scan import snapshot_frame
from instar.spark.problems import expression_errors
from instar.spark.write.incoming import incoming_schema, named_as
from instar.spark.write.keys import key_column, plan_keys_of
from instar.spark.write.store import FrameRows
from instar.table.read.snapshot import plan_snapshot, resolve_reader
from instar.table.write.evolving import Evolution, WriterSchema, resolve_writer
from instar.table.write.overwrite import OVERWRITING, all_positions
from instar.table.write.rows import RowChange, change_rows
from instar.table.write.upsert import check_keys_since, evolving_by, key_paths, repeated_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyroaring import BitMap
    from pyspark.sql import DataFrame, SparkSession

    from instar.state import Place, TableState
    from instar.table import Committed, Services, TableLog
    from instar.table.log.pin import Pin
    from instar.table.read.snapshot import SnapshotPlan

__all__ = ["delete_rows", "overwrite_frame", "upsert_frame"]


def delete_rows(spark: SparkSession, services: Services, log: TableLog, where: str) -> Committed:
    """Retract the rows for which a condition is true."""

    def retraction(pin: Pin) -> RowChange:
        state = pin.state
        plan = plan_snapshot(services.chunks, state, resolve_reader(state, None, None), None)
        positions = _find(spark, services, plan, pin, where)
        return _taking(positions, spark, services, plan, pin, lambda frame: frame.where(where))

    with expression_errors():
        return change_rows(services, log, "delete from", retraction)


def overwrite_frame(services: Services, log: TableLog, data: DataFrame, where: str | None) -> Committed:
    """Put the rows of a frame in the place of those for which a condition is true, or of all."""
    resolve_writer(log.load(), incoming_schema(data.schema))  # what types alone can tell
    spark = data.sparkSession

    def replacement(pin: Pin) -> RowChange:
        state = pin.state
        plan = plan_snapshot(services.chunks, state, resolve_reader(state, None, None), None)
        added = named_as(data, state.history.latest).withColumn(DIFF, F.lit(1).cast("long"))
        if where is None:
            return _taking(all_positions(plan), spark, services, plan, pin, lambda frame: frame, added)
        positions = _find(spark, services, plan, pin, where)
        return _taking(positions, spark, services, plan, pin, lambda frame: frame.where(where), added)

    with expression_errors():
        return change_rows(services, log, OVERWRITING, replacement)


def upsert_frame(
    services: Services,
    log: TableLog,
    data: DataFrame,
    state: TableState,
    evolution: Evolution | None = None,
) -> Committed:
    """Add rows, in place of those that have the same key."""
    incoming = incoming_schema(data.schema)

    def resolve(state: TableState) -> WriterSchema:
        allowed = None if evolution is None else evolving_by(evolution, state, incoming)
        return resolve_writer(state, incoming, evolution=allowed)

    resolve(state)  # what types alone can tell
    # Asked once: the rows whose keys are looked up have to be the rows that are added.
    data = named_as(data, state.history.latest).localCheckpoint()

    def replacement(pin: Pin) -> RowChange:
        state = pin.state
        whole = plan_snapshot(services.chunks, state, resolve_reader(state, None, None), None)
        plan, bounds = plan_keys_of(data, services, whole, state.key)
        located = located_frame(spark, services, plan, pin)
        paths = key_paths(state)
        prefix = "_" * max(len(name) + 1 for name in located.columns)  # like no column's name
        keys = data.select([key_column(data, path).alias(f"{prefix}{at}") for at, path in enumerate(paths)])
        if not keys.groupBy(*keys.columns).count().where("count > 1").isEmpty():
            raise repeated_key(state)
        # Keys are equal as rows are: null is null.
        same = [F.col(format_path(path)).eqNullSafe(F.col(f"{prefix}{at}")) for at, path in enumerate(paths)]

        def having_keys(frame: DataFrame) -> DataFrame:
            return frame.join(keys, reduce(and_, same), "left_semi")

        positions = positions_of(having_keys(located), plan)
        added = data.withColumn(DIFF, F.lit(1).cast("long"))
        check = partial(check_keys_since, services.chunks, state, bounds)
        change = _taking(positions, spark, services, plan, pin, having_keys, added)
        return change._replace(check=check, writer=resolve(state) if evolution is not None else None)

    spark = data.sparkSession
    return change_rows(services, log, "upsert into", replacement)


def _find(
    spark: SparkSession, services: Services, plan: SnapshotPlan, pin: Pin, where: str
) -> dict[Place, BitMap]:
    """Find the rows that a condition is true for; a part is not opened where that is proved of every row."""
    proved = proved_parts(spark, services, plan, pin, where)
    whole = all_positions(plan._replace(scan=plan.scan.keep(proved)))
    if proved.all():
        return whole
    rest = plan._replace(scan=plan.scan.keep(~proved))
    return whole | positions_of(located_frame(spark, services, rest, pin).where(where), rest)


def _taking(
    positions: dict[Place, BitMap],
    spark: SparkSession,
    services: Services,
    plan: SnapshotPlan,
    pin: Pin,
    choose: Callable[[DataFrame], DataFrame],
    added: DataFrame | None = None,
) -> RowChange:
    """Return the change that takes rows by position, and those chosen ones that have none by value."""
    if not plan.merge:
        return RowChange(None if added is None else FrameRows(added), positions)
    nothing = plan._replace(scan=plan.scan.keep(np.zeros(len(plan.scan), dtype=bool)))
    merged = choose(snapshot_frame(spark, services, nothing, pin))
    retracted = merged.withColumn(DIFF, F.lit(-1).cast("long"))
    rows = retracted if added is None else retracted.unionByName(added, allowMissingColumns=True)
    return RowChange(FrameRows(rows), positions, by_value=True)
