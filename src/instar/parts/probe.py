"""`Probe`: some keys that are looked for, and what bounds say of where none of them can be.

A part, or a row group of its file, is worth reading only if in every column of the key some wanted value lies
within its bounds. What is not known is worth reading.
"""

from __future__ import annotations

from bisect import bisect_left
from decimal import Decimal as PythonDecimal
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from instar.parts.layout import flatten_leaves, locate
from instar.parts.rows import compare_bounds, decode_row, encode_row
from instar.parts.statistics import integers, leaf_ids
from instar.schema import Field, List, Map, Schema, Struct, field_name
from instar.stats import FieldStats, bounds_columns, cast_bounds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    import pyarrow.parquet as pq

    from instar.parts.rows import Bound

    Mask = npt.NDArray[np.bool_]

__all__ = ["Probe"]


_NOTHING: Final = b"\x90"
"""A bound that says nothing: an empty list in MessagePack."""


class _Wanted(NamedTuple):
    """The values that are looked for in one leaf: each once, in order; and whether null and NaN are too."""

    field: Field
    values: pa.Array
    nulls: bool
    nans: bool


class Probe:
    """Keys to look for. The rows have the columns of a schema, and `key` are ids of fields in it."""

    def __init__(self, rows: pa.Table, schema: Schema, key: Sequence[int]) -> None:
        ids = leaf_ids(schema, key)
        self._rows = rows
        self._schema = schema
        self._known = ids.union(key)
        self._leaves = tuple(
            _wanted(field, column)
            for field, column in flatten_leaves(rows, schema)
            if field.id in ids and not isinstance(field.type, List | Map)
        )

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    @property
    def fields(self) -> tuple[Field, ...]:
        """The leaves whose bounds tell."""
        return tuple(leaf.field for leaf in self._leaves)

    def may_hold(self, bounds: Mapping[int, pa.RecordBatch], rows: pa.Array) -> Mask:
        """Tell which of some parts may have a key, by the bounds of each leaf and how many rows they have."""
        kept = np.full(len(rows), len(self) > 0)
        for leaf in self._leaves:
            kept &= _may_hold(leaf, bounds[leaf.field.id], rows)
        return kept

    def may_lie(self, limits: Sequence[tuple[bytes | None, bytes | None]], order_by: Sequence[int]) -> Mask:
        """Tell which of some parts may have a key, by their first and last rows in the order of the table."""
        sought = [self._bounds(at, order_by) for at in range(len(self))]
        kept = np.ones(len(limits), dtype=bool)
        for at, (first_row, last_row) in enumerate(limits):
            first = () if first_row is None else decode_row(first_row)
            last = () if last_row is None else decode_row(last_row)
            kept[at] = any(
                compare_bounds(first, high) <= 0 <= compare_bounds(last, low) for low, high in sought
            )
        return kept

    def row_groups(self, metadata: pq.FileMetaData, written: Schema) -> Mask:
        """Tell which row groups of a part's file may have a key; the part has the fields of a schema."""
        kept = np.full(metadata.num_row_groups, len(self) > 0)
        if len(kept) <= 1:
            return kept  # the metadata of the part has told already
        groups = [metadata.row_group(at) for at in range(len(kept))]
        rows = pa.array([group.num_rows for group in groups], pa.int64())
        columns = {groups[0].column(at).path_in_schema: at for at in range(groups[0].num_columns)}
        for leaf in self._leaves:
            trail = locate(written.fields, leaf.field.id)
            if not trail:
                continue
            path, field = _follow(written.fields, trail)
            stats = [_stats(group.column(columns[path]).statistics) for group in groups]
            bounds = cast_bounds(bounds_columns(stats, field.type), leaf.field.type)
            kept &= _may_hold(leaf, bounds, rows)
        return kept

    def _bounds(self, at: int, order_by: Sequence[int]) -> tuple[Bound, Bound]:
        """Return a key as it compares with first and last rows; long texts are not known to their end.

        What comes after something that is not in the key says nothing.
        """
        low, high = (
            decode_row(encode_row(self._rows, at, self._schema, order_by, greatest=greatest) or _NOTHING)
            for greatest in (False, True)
        )
        return self._own(low), self._own(high)

    def _own(self, bound: Bound) -> Bound:
        return tuple(takewhile(lambda item: item[0] in self._known, bound))


def _wanted(field: Field, column: pa.ChunkedArray) -> _Wanted:
    values = column.combine_chunks().drop_null()
    nans = False
    if pa.types.is_floating(column.type):
        is_nan = pc.is_nan(values)
        nans = bool(pc.any(is_nan).as_py())
        values = values.filter(pc.invert(is_nan))
    values = _comparable(values).unique()
    ordered = values.take(pc.array_sort_indices(values))
    return _Wanted(field, ordered, column.null_count > 0, nans)


def _may_hold(leaf: _Wanted, bounds: pa.RecordBatch, rows: pa.Array) -> Mask:
    nulls, nans = bounds.column("nulls"), bounds.column("nans")
    filled = pc.subtract(rows, pc.add(nulls, nans))  # null where unknown
    kept = _within(leaf.values, bounds.column("min"), bounds.column("max")) & _unless(pc.equal(filled, 0))
    if leaf.nulls:
        kept |= _unless(pc.equal(nulls, 0))
    if leaf.nans:
        kept |= _unless(pc.equal(nans, 0))
    return kept


def _within(values: pa.Array, low: pa.Array, high: pa.Array) -> Mask:
    """Tell between which bounds there is one of some sorted values; unknown ones may hold any."""
    if len(values) == 0:
        return np.zeros(len(low), dtype=bool)
    low, high = _comparable(low), _comparable(high)
    kept = _unless(pc.or_kleene(pc.greater(low, values[-1]), pc.less(high, values[0])))
    known = (
        kept & low.is_valid().to_numpy(zero_copy_only=False) & high.is_valid().to_numpy(zero_copy_only=False)
    )
    if len(values) > 1 and known.any():
        chosen = pa.array(known)
        kept[known] = _some_between(values, low.filter(chosen), high.filter(chosen))
    return kept


def _some_between(values: pa.Array, low: pa.Array, high: pa.Array) -> Mask:
    if pa.types.is_primitive(values.type) and not pa.types.is_decimal(values.type):
        sought, begin, end = (array.to_numpy(zero_copy_only=False) for array in (values, low, high))
        at = np.searchsorted(sought, begin)
        between: Mask = (at < len(sought)) & (sought[np.minimum(at, len(sought) - 1)] <= end)
        return between
    known = values.to_pylist()
    found = [
        (at := bisect_left(known, begin)) < len(known) and known[at] <= end
        for begin, end in zip(low.to_pylist(), high.to_pylist(), strict=True)
    ]
    return np.array(found, dtype=bool)


def _comparable(array: pa.Array) -> pa.Array:
    """Return values that compare in Arrow, NumPy and Python as rows do."""
    if pa.types.is_string(array.type):
        return array.cast(pa.binary())
    if pa.types.is_boolean(array.type):
        return array.cast(pa.int8())
    return integers(array)


def _unless(condition: pa.Array) -> Mask:
    """Tell where a condition is not known to be true."""
    kept: Mask = ~pc.fill_null(condition, False).to_numpy(zero_copy_only=False)  # noqa: FBT003
    return kept


def _follow(fields: tuple[Field, ...], trail: Sequence[int]) -> tuple[str, Field]:
    """Return the path of a leaf in a file, and its field."""
    names = []
    for at in trail:
        field = fields[at]
        names.append(field_name(field.id))
        fields = field.type.fields if isinstance(field.type, Struct) else ()
    return ".".join(names), field


def _stats(found: pq.Statistics | None) -> FieldStats | None:
    """Return what a row group says of a column. Bounds are there only if there is no NaN."""
    if found is None or not found.has_min_max:
        return None
    nulls = found.null_count if found.has_null_count else None
    return FieldStats(nulls, 0, _stored(found, "min"), _stored(found, "max"))


def _stored(found: pq.Statistics, end: str) -> object:
    """Return a bound of Parquet as statistics of parts have it."""
    raw = getattr(found, f"{end}_raw")
    try:
        value = getattr(found, end)
    except (OverflowError, ValueError):  # a date or a time that Python has none for
        return raw
    match value:
        case PythonDecimal():
            return str(value)
        case bool() | int() | float() | str() | bytes():
            return value
    return raw
