"""Updates and merges with Spark: rows are found where they are, and what becomes of them is one commit.

Expressions are Spark's own, under the settings of the session. What a change is worked out from is asked
once: the rows that go have to be the rows that come.
"""

from __future__ import annotations

from functools import partial, reduce
from operator import and_
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it
from pyspark.sql.types import NumericType

from instar.parts import DIFF
from instar.parts.conform import Conformer
from instar.schema import Schema
from instar.schema.ddl import parse_type_ddl
from instar.schema.paths import quote_name
from instar.schema.text import format_type
from instar.spark.native.located import PART, ROW, located_frame, positions_of
from instar.spark.native.scan import snapshot_frame
from instar.spark.problems import expression_errors
from instar.spark.write.incoming import incoming_schema
from instar.spark.write.keys import plan_keys_of
from instar.spark.write.store import FrameRows
from instar.table.read.snapshot import plan_snapshot, resolve_reader
from instar.table.read.values import is_cast_into
from instar.table.write.merge import (
    SOURCE,
    TARGET,
    When,
    ambiguous_match,
    check_clauses,
    check_given,
    check_names_of,
    check_nothing_added,
    default_values,
)
from instar.table.write.rows import RowChange, change_rows
from instar.table.write.update import check_settings
from instar.table.write.upsert import check_keys_since

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from instar.schema import Field, Type
    from instar.state import TableState
    from instar.table import Committed, Services, TableLog
    from instar.table.log.pin import Pin
    from instar.table.read.snapshot import SnapshotPlan
    from instar.table.write.merge import Clause

__all__ = ["merge_frame_into", "update_rows"]

_CLAUSE: Final = "_clause"
_BY_VALUE: Final = -1
"""The number of the part of rows that have no place of their own."""


class _Rows(NamedTuple):
    """The rows of a state with their places, and the plan that knows these."""

    frame: DataFrame
    plan: SnapshotPlan


def update_rows(
    spark: SparkSession, services: Services, log: TableLog, values: Mapping[str, str], where: str | None
) -> Committed:
    """Give the rows for which a condition is true other values in some columns."""

    def updating(pin: Pin) -> RowChange:
        latest = pin.state.history.latest
        check_settings(latest, values)
        plan = plan_snapshot(services.chunks, pin.state, resolve_reader(pin.state, None, None), None)
        rows = _rows(spark, services, plan, pin)
        gone = rows.frame.where("true" if where is None else where).localCheckpoint()
        old = {field.name: F.col(quote_name(field.name)) for field in latest.fields}
        columns = [value.alias(name) for name, value in {**old, **_assigned(gone, values, latest)}.items()]
        return _change(rows.plan, gone, [gone.select(columns)], latest)

    with expression_errors():
        return change_rows(services, log, "update", updating)


def merge_frame_into(
    services: Services, log: TableLog, data: DataFrame, on: Sequence[str], clauses: Sequence[Clause]
) -> Committed:
    """Merge a frame."""
    spark = data.sparkSession
    names = {name.lower(): name for name in data.columns}
    data = data.localCheckpoint()
    source = data.select(F.struct(*[F.col(quote_name(name)) for name in data.columns]).alias(SOURCE))

    def merging(pin: Pin) -> RowChange:
        latest = pin.state.history.latest
        check_clauses(latest, on, clauses)
        key = [latest.load_column(name) for name in on]
        check_given(Schema(tuple(key)), names)
        check_names_of(pin.state.history, data.columns, clauses)
        sweeps = any(clause.when is When.NOT_MATCHED_BY_SOURCE_DELETE for clause in clauses)
        plan = plan_snapshot(services.chunks, pin.state, resolve_reader(pin.state, None, None), None)
        check: Callable[[TableState], None] = partial(check_nothing_added, services.chunks, pin.state)
        if not sweeps:
            plan, keys = plan_keys_of(data, services, plan, [field.id for field in key])
            check = partial(check_keys_since, services.chunks, pin.state, keys)
        rows = _rows(spark, services, plan, pin)
        columns = [F.col(quote_name(field.name)) for field in latest.fields]
        target = rows.frame.select(F.struct(*columns).alias(TARGET), PART, ROW)
        same = [
            F.col(f"{TARGET}.{quote_name(field.name)}").eqNullSafe(
                F.col(f"{SOURCE}.{quote_name(names[field.name.lower()])}")
            )
            for field in key
        ]
        pairs = _chosen(target.join(source, reduce(and_, same)), clauses, _MATCHED).localCheckpoint()
        pairs = _one_each(pairs, clauses)
        absent = source.join(target, reduce(and_, same), "left_anti")
        new = _chosen(absent, clauses, {When.NOT_MATCHED_INSERT})
        if sum(clause.when is When.NOT_MATCHED_INSERT for clause in clauses) > 1:
            new = new.localCheckpoint()  # each clause must see the same choice
        gone = [pairs.select(f"{TARGET}.*", PART, ROW)]
        if sweeps:
            others = target.join(source, reduce(and_, same), "left_anti")
            swept = _chosen(others, clauses, {When.NOT_MATCHED_BY_SOURCE_DELETE}).localCheckpoint()
            gone.append(swept.select(f"{TARGET}.*", PART, ROW))
        added = [
            frame.where(F.col(_CLAUSE) == at).select(_values(frame, clause, latest, data.columns))
            for at, clause in enumerate(clauses)
            for frame in ((pairs,) if clause.when is When.MATCHED_UPDATE else (new,))
            if clause.when in {When.MATCHED_UPDATE, When.NOT_MATCHED_INSERT}
        ]
        change = _change(rows.plan, reduce(lambda left, right: left.unionAll(right), gone), added, latest)
        return change._replace(check=check)

    with expression_errors():
        return change_rows(services, log, "merge into", merging)


_MATCHED: Final = {When.MATCHED_UPDATE, When.MATCHED_DELETE}


def _chosen(frame: DataFrame, clauses: Sequence[Clause], sort: set[When]) -> DataFrame:
    """Return the rows that a clause of a sort is for, with the number of the first one.

    Conditions are asked after the join, as they are for `MERGE`: Spark moves what is not deterministic
    nowhere, and everything else below the join, where a condition may fail for rows that it is not for.
    """
    number: Column = F.lit(None).cast("int")
    for at, clause in reversed(list(enumerate(clauses))):
        if clause.when in sort:
            condition = F.expr(clause.condition or "true")
            number = F.when(condition, F.lit(at)).otherwise(number)
    number = F.when(F.spark_partition_id() >= 0, number)
    return frame.withColumn(_CLAUSE, number).where(F.col(_CLAUSE).isNotNull())


def _one_each(pairs: DataFrame, clauses: Sequence[Clause]) -> DataFrame:
    """Return pairs with each row of the table once: one that only goes may have several partners."""
    updates = [at for at, clause in enumerate(clauses) if clause.when is When.MATCHED_UPDATE]
    changes = F.bool_or(F.col(_CLAUSE).isin(updates)).alias("changes")
    several = pairs.groupBy(PART, ROW).agg(F.count("*").alias("times"), changes).where("times > 1")
    found = several.agg(F.count("*").alias("rows"), F.bool_or("changes").alias("changes")).first()
    if found is None or not found["rows"]:
        return pairs
    if found["changes"]:
        raise ambiguous_match()
    return pairs.dropDuplicates([PART, ROW])


def _values(frame: DataFrame, clause: Clause, latest: Schema, given: Sequence[str]) -> list[Column]:
    """Return what a clause sets columns to; others keep their values, or are null where there was no row."""
    old: dict[str, Column] = {}
    if clause.when is When.MATCHED_UPDATE:
        old = {field.name: F.col(f"{TARGET}.{quote_name(field.name)}") for field in latest.fields}
    if clause.values is None:  # data by name, which fits as it does in an append
        by_name = default_values(latest, given)
        new = {latest.load_column(name).name: F.expr(text) for name, text in by_name.items()}
    else:
        new = _assigned(frame, clause.values, latest)
    return [value.alias(name) for name, value in {**old, **new}.items()]


def _assigned(frame: DataFrame, values: Mapping[str, str], latest: Schema) -> dict[str, Column]:
    """Return expressions by column; a number is cast to its column's type, as SQL does when it assigns."""
    fields = [latest.load_column(name) for name in values]
    columns = [F.expr(text) for text in values.values()]
    given = frame.select([value.alias(f"c{at}") for at, value in enumerate(columns)]).schema
    found = {}
    for field, value, is_ in zip(fields, columns, given, strict=True):
        type_ = is_.dataType
        is_cast = isinstance(type_, NumericType) and is_cast_into(_number(type_), field.type)
        found[field.name] = _cast(value, field) if is_cast else value
    return found


def _cast(value: Column, field: Field) -> Column:
    """Return a number in the type of a column; one that is too large fails, whatever the session's mode."""
    into = format_type(field.type)
    cast = value.try_cast(into)
    misfit = F.concat(F.lit(f"a value for `{field.name}` does not fit {into}: "), value.cast("string"))
    return F.when(value.isNotNull() & cast.isNull(), F.raise_error(misfit)).otherwise(cast)


def _number(type_: NumericType) -> Type:
    """Return a type of numbers as ours."""
    found, _ = parse_type_ddl(type_.simpleString())
    return found


def _rows(spark: SparkSession, services: Services, plan: SnapshotPlan, pin: Pin) -> _Rows:
    """Return all rows of a plan, with their places."""
    located = located_frame(spark, services, plan, pin)
    if not plan.merge:
        return _Rows(located, plan)
    nothing = plan._replace(scan=plan.scan.keep(np.zeros(len(plan.scan), dtype=bool)))
    merged = snapshot_frame(spark, services, nothing, pin)
    numbered = merged.select("*", F.lit(_BY_VALUE).alias(PART), F.monotonically_increasing_id().alias(ROW))
    return _Rows(located.unionAll(numbered.localCheckpoint()), plan)


def _change(plan: SnapshotPlan, gone: DataFrame, added: Sequence[DataFrame], latest: Schema) -> RowChange:
    """Return the change that takes some rows, where they are or by value, and adds others."""
    positions = positions_of(gone.where(F.col(PART) != _BY_VALUE), plan)
    columns = [F.col(quote_name(field.name)) for field in latest.fields]
    for frame in added:  # each for itself: in a union, Spark would widen the others, and round them
        own = tuple(field for field in latest.fields if field.name in frame.columns)
        Conformer(incoming_schema(frame.schema), Schema(own))
    pieces = [frame.withColumn(DIFF, F.lit(1).cast("long")) for frame in added]
    if plan.merge:
        by_value = gone.where(F.col(PART) == _BY_VALUE).select(columns)
        pieces.append(by_value.withColumn(DIFF, F.lit(-1).cast("long")))
    if not pieces:
        return RowChange(None, positions)
    rows = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), pieces)
    return RowChange(FrameRows(rows), positions, by_value=bool(plan.merge))
