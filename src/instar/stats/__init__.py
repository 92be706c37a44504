"""Bounds: what is known about the values of a part without opening it."""

from instar.stats.bounds import FieldStats, Value
from instar.stats.columns import bounds_columns, bounds_schema, cast_bounds, null_bounds, unite_bounds

__all__ = [
    "FieldStats",
    "Value",
    "bounds_columns",
    "bounds_schema",
    "cast_bounds",
    "null_bounds",
    "unite_bounds",
]
