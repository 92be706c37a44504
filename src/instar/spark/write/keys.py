"""The keys of a frame: its columns for them, and their bounds, by which most parts are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from msgspec.structs import replace
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it
from pyspark.sql.types import StructType

from instar.parts import column_stats
from instar.schema import Primitive, arrow_type, format_path
from instar.table.read.snapshot import KeyBounds, plan_keys

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from instar.stats import FieldStats
    from instar.table import Services
    from instar.table.read.snapshot import SnapshotPlan

__all__ = ["key_column", "plan_keys_of"]

_INTEGERS: Final = {"tinyint", "smallint", "int", "bigint"}
_BOUNDED: Final = {*_INTEGERS, "string", "date", "timestamp", "timestamp_ntz"}
"""Types whose least and greatest values are bounds, as NaN is not, and go through Arrow."""


def plan_keys_of(
    data: DataFrame, services: Services, plan: SnapshotPlan, key: Collection[int]
) -> tuple[SnapshotPlan, KeyBounds]:
    """Leave out the parts that can have no row with a key of the data; return also the bounds of the keys.

    `key` are the ids of the fields that a key is in. What the data has in another type says nothing.
    """
    fields = {
        path: field
        for path, field in plan.state.history.latest.leaves()
        if field.id in key
        and isinstance(field.type, Primitive)
        and _is_comparable(_find(data, path)[1], field.type.name)
    }
    ends = [end(key_column(data, path)) for path in fields for end in (F.min, F.max, _count_nulls)]
    rows, *found = data.agg(F.count("*"), *ends).toArrow().columns
    keys: dict[int, FieldStats] = {}
    for low, high, nulls, field in zip(found[::3], found[1::3], found[2::3], fields.values(), strict=True):
        limits = pa.chunked_array([*low.chunks, *high.chunks], low.type)
        try:
            known = column_stats(limits.cast(arrow_type(field.type)))
        except pa.ArrowException:
            continue  # what does not fit is refused with the rows
        keys[field.id] = replace(known, nulls=nulls[0].as_py())
    bounds = KeyBounds(keys, rows[0].as_py())
    return plan_keys(services.chunks, plan, bounds), bounds


def key_column(data: DataFrame, path: tuple[str, ...]) -> Column:
    """Return a column of the key; one that the data leaves out is null."""
    names, type_ = _find(data, path)
    return F.lit(None) if type_ is None else F.col(format_path(names))


def _find(data: DataFrame, path: tuple[str, ...]) -> tuple[tuple[str, ...], DataType | None]:
    """Return what the data calls the column at a path, and its type; None if it has no such column."""
    type_: DataType = data.schema
    found: list[str] = []
    for name in path:
        members = type_.fields if isinstance(type_, StructType) else []
        member = next((it for it in members if it.name.lower() == name.lower()), None)
        if member is None:
            return tuple(found), None
        found.append(member.name)
        type_ = member.dataType
    return tuple(found), type_


def _is_comparable(given: DataType | None, name: str) -> bool:
    """Whether values of a type of Spark's are in the same order as those of a column."""
    if name not in _BOUNDED:
        return False
    own = "void" if given is None else given.simpleString()  # all null, and so is what the data leaves out
    return own in {name, "void"} or (own in _INTEGERS and name in _INTEGERS)


def _count_nulls(column: Column) -> Column:
    return F.count_if(column.isNull())
