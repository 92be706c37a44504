"""Storing a DataFrame as parts: executors turn Arrow batches into files and return only metadata.

A task that is retried or run twice leaves orphans, never duplicates: only what the successful attempts
returned is committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, MapType, StructType, YearMonthIntervalType

from instar.errors import DataMismatchError
from instar.parts import Conformer
from instar.table.write import StoredPart, StoringPlan, store_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

__all__ = ["arrow_frame", "conformed", "incoming_schema", "store_frame"]

_RESULT = "stored binary, misfit binary"


class _Misfit(msgspec.Struct, array_like=True):
    """What does not fit, on its way to the driver."""

    column: str
    reason: str
    row: int
    sample: str


def arrow_frame(frame: DataFrame) -> DataFrame:
    """Return a frame that PySpark can turn into Arrow: it has no Arrow type for months."""
    return frame.select(
        [
            _months(F.col(quoted), field.dataType).alias(field.name)
            if _has_months(field.dataType)
            else F.col(quoted)
            for field in frame.schema
            for quoted in (f"`{field.name.replace('`', '``')}`",)
        ]
    )


def _has_months(type_: DataType) -> bool:
    match type_:
        case StructType():
            return any(_has_months(member.dataType) for member in type_)
        case ArrayType():
            return _has_months(type_.elementType)
        case MapType():
            return _has_months(type_.keyType) or _has_months(type_.valueType)
    return isinstance(type_, YearMonthIntervalType)


def _months(column: Column, type_: DataType) -> Column:
    """Replace intervals of years and months, wherever they are, by how many months they are."""
    if not _has_months(type_):
        return column
    match type_:
        case StructType():
            members = [
                _months(column.getField(member.name), member.dataType).alias(member.name) for member in type_
            ]
            return F.when(column.isNotNull(), F.struct(*members))
        case ArrayType():
            return F.transform(column, lambda item: _months(item, type_.elementType))
        case MapType():
            values = F.transform_values(column, lambda _, item: _months(item, type_.valueType))
            keyed = _has_months(type_.keyType)
            return F.transform_keys(values, lambda key, _: _months(key, type_.keyType)) if keyed else values
    whole = column.cast("interval year to month")  # years alone have no months to extract
    return F.extract(F.lit("year"), whole) * 12 + F.extract(F.lit("month"), whole)


def incoming_schema(frame: DataFrame) -> pa.Schema:
    """Return the Arrow schema that executors will see."""
    return to_arrow_schema(frame.schema, timezone="UTC")


def store_frame(frame: DataFrame, plan: StoringPlan, *, updates: bool = False) -> list[StoredPart]:
    """Store the rows of a frame, and return what was stored."""
    Conformer(
        incoming_schema(frame), plan.schema, updates=updates
    )  # what types alone can tell, before any task

    names = frame.columns

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        named = (batch.rename_columns(names) for batch in batches)
        return _store_task(plan, named, updates=updates)

    # PySpark looks columns up by names that it does not quote, which goes wrong for `a.b`.
    numbered = frame.toDF(*(f"c{at}" for at in range(len(names))))
    rows = numbered.mapInArrow(run, _RESULT).collect()
    misfit = next((row.misfit for row in rows if row.misfit is not None), None)
    if misfit is not None:
        found = msgspec.msgpack.decode(bytes(misfit), type=_Misfit)
        raise DataMismatchError(found.column, found.reason, row=found.row, sample=found.sample)
    return [msgspec.msgpack.decode(bytes(row.stored), type=StoredPart) for row in rows]


def _store_task(
    plan: StoringPlan, batches: Iterable[pa.RecordBatch], *, updates: bool
) -> Iterator[pa.RecordBatch]:
    """Store the rows of one task; a row that does not fit is an answer, for an error would be retried."""
    context = TaskContext.get()
    task = "0" if context is None else f"{context.partitionId()}-{context.taskAttemptId()}"
    try:
        for stored in store_parts(plan, conformed(plan, batches, updates=updates), task):
            yield _answer(stored=stored)
    except DataMismatchError as error:
        yield _answer(misfit=_Misfit(error.column, error.reason, error.row or 0, error.sample or ""))


def conformed(
    plan: StoringPlan, batches: Iterable[pa.RecordBatch], *, updates: bool
) -> Iterator[pa.RecordBatch]:
    """Bring batches into the layout of a plan's schema."""
    conformer: Conformer | None = None
    done = 0
    for batch in batches:
        if conformer is None:
            conformer = Conformer(batch.schema, plan.schema, updates=updates)
        yield conformer.apply(batch, first_row=done)
        done += batch.num_rows


def _answer(**columns: Any) -> pa.RecordBatch:  # noqa: ANN401 -- what msgspec can encode
    encoded = {name: msgspec.msgpack.encode(value) for name, value in columns.items()}
    return pa.RecordBatch.from_pydict(
        {name: pa.array([encoded.get(name)], pa.binary()) for name in ("stored", "misfit")}
    )
