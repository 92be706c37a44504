"""`Curve`: one number for each row, so that rows with near numbers are near in several fields at once.

Sorting by the first of two fields spreads the values of the second over all parts. Sorting along a
space-filling curve (Hilbert's) keeps every part small in both. Values count by their rank in a sample, so
skew does no harm.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa

from instar.errors import UsageError
from instar.parts.keys import arrange, column_keys
from instar.parts.layout import whole
from instar.parts.sort import find_column
from instar.state.options import MOST_CLUSTERED

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from instar.schema import Schema, Type

    Numbers = npt.NDArray[np.uint64]

__all__ = ["Curve"]


_BITS: Final = 10
"""Each field is divided into at most 2**10 ranges: a million cells for two fields."""
_ALL_BITS: Final = 63


class _Axis(NamedTuple):
    """One field: the sorted, distinct values at which its ranges begin, and how far along the axis each is.

    That is by how many of the rows are less. So a field of few values is spread over the whole axis too:
    otherwise only the last turns of the curve would tell them apart, and every part would have them all.
    """

    field_id: int
    marks: pa.Array
    places: Numbers


class Curve:
    """A curve over some fields, with ranges that hold about equally many rows of a sample."""

    def __init__(self, axes: Sequence[_Axis]) -> None:
        self._axes = tuple(axes)
        self._bits = min(_BITS, _ALL_BITS // max(1, len(axes)))

    @classmethod
    def fit(cls, sample: pa.Table, schema: Schema, field_ids: Sequence[int]) -> Self:
        """Choose the ranges by a sample of the rows. A field that the schema no longer has is left out."""
        if len(field_ids) > MOST_CLUSTERED:
            raise UsageError(
                f"rows can be clustered by at most {MOST_CLUSTERED} columns, not by {len(field_ids)}"
            )
        found = [(field_id, find_column(sample, schema, field_id)) for field_id in field_ids]
        known = [(field_id, column) for field_id, column in found if column is not None]
        ranges = 1 << min(_BITS, _ALL_BITS // max(1, len(known)))
        return cls([_Axis(field_id, *_quantiles(*column, ranges)) for field_id, column in known])

    def positions(self, table: pa.Table, schema: Schema) -> Numbers:
        """Return where on the curve each row lies. The schema has the fields that the curve was fitted to."""
        if not self._axes:
            return np.zeros(table.num_rows, np.uint64)
        return _hilbert([self._coordinates(table, schema, axis) for axis in self._axes], self._bits)

    def _coordinates(self, table: pa.Table, schema: Schema, axis: _Axis) -> Numbers:
        column = find_column(table, schema, axis.field_id)
        if column is None:
            return np.zeros(table.num_rows, np.uint64)
        array, type_ = column
        # Arrow refuses to cast nulls of a struct whose members are never null, even to the same type.
        own = array if array.type.equals(axis.marks.type) else array.cast(axis.marks.type)
        ranks = _ranks(pa.concat_arrays([axis.marks, own]), type_)
        begins, values = ranks[: len(axis.marks)], ranks[len(axis.marks) :]
        return axis.places[np.searchsorted(begins, values, side="right")]


def _quantiles(array: pa.Array, type_: Type, ranges: int) -> tuple[pa.Array, Numbers]:
    """Return the values that cut an array into ranges of about equal numbers of rows, each value once.

    Beside them, where each range lies among all of them; the first of these begins before the first value.
    """
    length = len(array)
    order, greater = arrange(length, [column_keys(array, type_)])
    cuts = np.unique(np.arange(1, ranges) * length // ranges) if length else np.zeros(0, np.int64)
    groups = np.cumsum(greater)
    cuts = cuts[groups[cuts] > 0]  # nothing is less than the least value, so no range begins there
    _, firsts = np.unique(groups[cuts], return_index=True)
    cuts = cuts[firsts]
    places = np.concatenate(([0], cuts * ranges // max(1, length))).astype(np.uint64)
    return whole(pa.chunked_array([array.take(pa.array(order[cuts]))])), places


def _ranks(array: pa.Array, type_: Type) -> npt.NDArray[np.int64]:
    return arrange(len(array), [column_keys(array, type_)]).ranks()


def _hilbert(axes: Sequence[Numbers], bits: int) -> Numbers:
    """Return the distance along Hilbert's curve of points on a grid of `2**bits` cells an axis.

    Each level of the curve is its mirror image in some cells of the level above: undo these reflections
    from the coarsest level down, then read the bits of all axes alternately as one Gray code.
    """
    points = [axis.copy() for axis in axes]
    first, last = points[0], points[-1]
    for level in range(bits - 1, 0, -1):
        below = np.uint64((1 << level) - 1)
        for axis in points:
            high = (axis >> np.uint64(level)) & np.uint64(1) == 1
            swapped = np.where(high, np.uint64(0), (first ^ axis) & below)
            np.bitwise_xor(first, np.where(high, below, swapped), out=first)
            if axis is not first:
                np.bitwise_xor(axis, swapped, out=axis)
    for before, axis in pairwise(points):
        np.bitwise_xor(axis, before, out=axis)
    flips = np.zeros_like(first)
    for level in range(bits - 1, 0, -1):
        high = (last >> np.uint64(level)) & np.uint64(1) == 1
        flips ^= np.where(high, np.uint64((1 << level) - 1), np.uint64(0))
    distance = np.zeros_like(first)
    for level in range(bits - 1, -1, -1):
        for axis in points:
            distance = (distance << np.uint64(1)) | (((axis ^ flips) >> np.uint64(level)) & np.uint64(1))
    return distance
