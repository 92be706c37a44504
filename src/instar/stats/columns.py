"""Bounds of many parts side by side: one typed Arrow column for each statistic of a field."""

from __future__ import annotations

from decimal import Decimal as PyDecimal
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from instar.schema import Decimal, Type, arrow_type
from instar.stats.bounds import FieldStats, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["bounds_columns", "bounds_schema", "cast_bounds", "null_bounds", "unite_bounds"]

_COUNTS: Final = (pa.field("nulls", pa.int64()), pa.field("nans", pa.int64()))


def bounds_schema(type_: Type) -> pa.Schema:
    """Return the columns that hold the statistics of a leaf field of this type."""
    bound = arrow_type(type_)
    return pa.schema([*_COUNTS, pa.field("min", bound), pa.field("max", bound)])


def bounds_columns(stats: Sequence[FieldStats | None], type_: Type) -> pa.RecordBatch:
    """Lay the statistics of many parts side by side; None means that nothing is known."""
    known = [stat if stat is not None else FieldStats(None, None) for stat in stats]
    bound = arrow_type(type_)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([stat.nulls for stat in known], pa.int64()),
            pa.array([stat.nans for stat in known], pa.int64()),
            pa.array([_load(stat.min, type_) for stat in known], bound),
            pa.array([_load(stat.max, type_) for stat in known], bound),
        ],
        schema=bounds_schema(type_),
    )


def null_bounds(rows: pa.Array, type_: Type) -> pa.RecordBatch:
    """Return the statistics of a field that the parts do not have: every row is null."""
    nothing = pa.nulls(len(rows), arrow_type(type_))
    nans = pa.array([0] * len(rows), pa.int64())
    return pa.RecordBatch.from_arrays([rows, nans, nothing, nothing], schema=bounds_schema(type_))


def cast_bounds(bounds: pa.RecordBatch, type_: Type) -> pa.RecordBatch:
    """Widen bounds to the type that the field has now."""
    target = bounds_schema(type_)
    if bounds.schema.equals(target):
        return bounds
    return pa.RecordBatch.from_arrays(
        [column.cast(field.type) for column, field in zip(bounds.columns, target, strict=True)], schema=target
    )


def unite_bounds(bounds: pa.RecordBatch, rows: pa.Array) -> FieldStats:
    """Return bounds that hold for all the parts together, whose numbers of rows are given."""
    nulls, nans = (
        None if column.null_count else pc.sum(column).as_py() or 0 for column in bounds.columns[:2]
    )
    empty = pc.fill_null(pc.equal(pc.add(bounds.column("nulls"), bounds.column("nans")), rows), False)  # noqa: FBT003
    low, high = (
        # A part that has values and no bound could have any.
        None if pc.any(pc.and_not(pc.is_null(column), empty)).as_py() else _store(furthest(_storage(column)))
        for column, furthest in ((bounds.column("min"), pc.min), (bounds.column("max"), pc.max))
    )
    return FieldStats(nulls, nans, low, high)


def _load(value: Value | None, type_: Type) -> Value | PyDecimal | None:
    return PyDecimal(str(value)) if value is not None and isinstance(type_, Decimal) else value


def _storage(column: pa.Array) -> pa.Array:
    """Return a column of bounds as the integers that are stored for it, where there are any."""
    if not pa.types.is_temporal(column.type):
        return column
    return column.cast(pa.int32() if pa.types.is_date(column.type) else pa.int64())


def _store(bound: pa.Scalar) -> Value | None:
    """Return a bound as it is stored."""
    value: Value | PyDecimal | None = bound.as_py()
    return f"{value:f}" if isinstance(value, PyDecimal) else value
