"""Deleting and replacing rows with Spark: what was seen is retracted, or nothing is."""

from __future__ import annotations

from functools import partial, reduce
from operator import and_
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from msgspec.structs import replace
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it
from pyspark.sql.types import StructType

from instar.parts import DIFF, column_stats
from instar.schema import Primitive, arrow_type, format_path
from instar.spark.native.located import PART, ROW, located_frame, positions_of
from instar.spark.native.scan import snapshot_frame
from instar.spark.problems import expression_errors
from instar.spark.write.incoming import incoming_schema, named_as
from instar.spark.write.store import FrameRows
from instar.table.read.snapshot import plan_keys, plan_snapshot, resolve_reader
from instar.table.write.evolving import Evolution, WriterSchema, resolve_writer
from instar.table.write.rows import RowChange, change_rows
from instar.table.write.upsert import check_keys_since, evolving_by, key_paths, repeated_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyroaring import BitMap
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from instar.state import Place, TableState
    from instar.stats import FieldStats
    from instar.table import Committed, Services, TableLog
    from instar.table.log.pin import Pin
    from instar.table.read.snapshot import SnapshotPlan

__all__ = ["delete_rows", "upsert_frame"]

_BOUNDED: Final = {"tinyint", "smallint", "int", "bigint", "string", "date", "timestamp", "timestamp_ntz"}
"""Types whose least and greatest values are bounds, as NaN is not, and go through Arrow."""


def delete_rows(spark: SparkSession, services: Services, log: TableLog, where: str) -> Committed:
    """Retract the rows for which a condition is true."""

    def retraction(pin: Pin) -> RowChange:
        state = pin.state
        plan = plan_snapshot(services.chunks, state, resolve_reader(state, None, None), None)
        located = located_frame(spark, services, plan, pin)
        gone = located.where(where).select(PART, ROW)
        return _taking(positions_of(gone, plan), spark, services, plan, pin, lambda frame: frame.where(where))

    with expression_errors():
        return change_rows(services, log, "delete from", retraction)


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
        plan, stats = _with_keys_of(
            data, services, plan_snapshot(services.chunks, state, resolve_reader(state, None, None), None)
        )
        located = located_frame(spark, services, plan, pin)
        paths = key_paths(state)
        prefix = "_" * max(len(name) + 1 for name in located.columns)  # like no column's name
        keys = data.select([_key(data, path).alias(f"{prefix}{at}") for at, path in enumerate(paths)])
        if not keys.groupBy(*keys.columns).count().where("count > 1").isEmpty():
            raise repeated_key(state)
        # Keys are equal as rows are: null is null.
        same = [F.col(format_path(path)).eqNullSafe(F.col(f"{prefix}{at}")) for at, path in enumerate(paths)]

        def having_keys(frame: DataFrame) -> DataFrame:
            return frame.join(keys, reduce(and_, same), "left_semi")

        positions = positions_of(having_keys(located), plan)
        added = data.withColumn(DIFF, F.lit(1).cast("long"))
        check = partial(check_keys_since, state, stats)
        change = _taking(positions, spark, services, plan, pin, having_keys, added)
        return change._replace(check=check, writer=resolve(state) if evolution is not None else None)

    spark = data.sparkSession
    return change_rows(services, log, "upsert into", replacement)


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


def _with_keys_of(
    data: DataFrame, services: Services, plan: SnapshotPlan
) -> tuple[SnapshotPlan, Mapping[int, FieldStats]]:
    """Leave out the parts that can have no row with a key of the data; return also the bounds of the keys."""
    state = plan.state
    fields = {
        path: field
        for path, field in state.history.latest.leaves()
        if field.id in state.key and isinstance(field.type, Primitive) and field.type.name in _BOUNDED
    }
    ends = [end(_key(data, path)) for path in fields for end in (F.min, F.max, _count_nulls)]
    rows, *found = data.agg(F.count("*"), *ends).toArrow().columns
    keys = {}
    for low, high, nulls, field in zip(found[::3], found[1::3], found[2::3], fields.values(), strict=True):
        bounds = pa.chunked_array([*low.chunks, *high.chunks], low.type)
        try:
            known = column_stats(bounds.cast(arrow_type(field.type)))
        except pa.ArrowException:
            continue  # what does not fit is refused with the rows
        keys[field.id] = replace(known, nulls=nulls[0].as_py())
    return plan_keys(services.chunks, plan, keys, rows[0].as_py()), keys


def _key(data: DataFrame, path: tuple[str, ...]) -> Column:
    """Return a column of the key; one that the data leaves out is null."""
    type_: DataType = data.schema
    found = []
    for name in path:
        members = type_.fields if isinstance(type_, StructType) else []
        member = next((it for it in members if it.name.lower() == name.lower()), None)
        if member is None:
            return F.lit(None)
        found.append(member.name)
        type_ = member.dataType
    return F.col(format_path(tuple(found)))


def _count_nulls(column: Column) -> Column:
    return F.count_if(column.isNull())
