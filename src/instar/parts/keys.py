"""Values of every type as flat columns that Arrow can sort and compare: the order and equality of rows.

Null is least, NaN greatest, -0.0 equals 0.0, texts compare by their UTF-8 bytes, structs by their members
and lists by their elements, one after the other. Maps compare by their entries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from instar.parts.nested import open_list, open_map
from instar.parts.statistics import integers
from instar.schema import List, Map, Struct, Type

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

__all__ = ["Arrangement", "Column", "arrange", "column_keys", "flat_keys"]

Column = tuple[pa.Array, Callable[[pa.Array], list[pa.Array]]]
"""An array, and what gives the flat keys of some of its values."""

_RANK = np.dtype(">u4")  # in this byte order, comparing bytes is comparing numbers


def column_keys(array: pa.Array, type_: Type, *, maps_as_sets: bool = False) -> Column:
    """Return a column to arrange rows by, as `flat_keys` compares its values."""
    return array, lambda some: flat_keys(some, type_, maps_as_sets=maps_as_sets)


def flat_keys(array: pa.Array, type_: Type, *, maps_as_sets: bool = False) -> list[pa.Array]:
    """Return columns that, compared one after the other, compare the values of an array.

    Where a column has nulls, one that says so comes before it: false is less than true. A map compares
    by its entries as they are stored, or with `maps_as_sets` whatever their order.
    """
    match type_:
        case Struct(fields=members):
            keys = _validity(array)
            for member, child in zip(members, array.flatten(), strict=True):
                keys += flat_keys(child, member.type, maps_as_sets=maps_as_sets)
            return keys
        case List(element=element):
            offsets, items = open_list(array)
            ranks = _dense_ranks(flat_keys(items, element, maps_as_sets=maps_as_sets), len(items))
            return [*_validity(array), _sequences(ranks, offsets.to_numpy())]
        case Map(key=key, value=value):
            offsets, names, values = open_map(array)
            entries = flat_keys(names, key) + flat_keys(values, value, maps_as_sets=maps_as_sets)
            ranks = _dense_ranks(entries, len(names))
            if maps_as_sets:
                ranks = _sorted_within(ranks, offsets.to_numpy())
            return [*_validity(array), _sequences(ranks, offsets.to_numpy())]
    if pa.types.is_floating(array.type):
        return [_float_key(array)]
    return [*_validity(array), integers(array)]


class Arrangement(NamedTuple):
    """Rows in order: their positions, and for each whether it is greater than the one before it."""

    order: npt.NDArray[np.int64]
    greater: npt.NDArray[np.bool_]

    def ranks(self) -> npt.NDArray[np.int64]:
        """Return the number of each row, from 0 and without gaps; equal rows have equal numbers."""
        ranks = np.empty_like(self.order)
        ranks[self.order] = np.cumsum(self.greater)
        return ranks

    def groups(self) -> npt.NDArray[np.int64]:
        """Return where in the order each group of equal rows begins."""
        return np.flatnonzero(np.concatenate(([True], self.greater[1:]))) if len(self.order) else self.order


def arrange(length: int, columns: Iterable[Column]) -> Arrangement:
    """Sort rows by columns, one after the other.

    Of each column only the rows that are equal in all columns before are looked at: the first few
    columns tell most rows apart, and the others need not be compared.
    """
    order = np.arange(length)
    greater = np.zeros(length, np.bool_)
    tied = np.ones(length, np.bool_)
    for number, (array, find_keys) in enumerate(columns):
        rows = order[tied]
        if len(rows) == 0:
            break
        keys = find_keys(array.take(pa.array(rows)) if number else array)
        groups = np.cumsum(greater)[tied]
        inside = _sort([pa.array(groups), *keys] if groups[-1] else keys)
        order[tied] = rows[inside]
        greater[tied] |= _differ(keys, inside)
        tied = ~greater
        tied[0] = False
        tied[:-1] |= tied[1:]  # equal to the one before, or to the one after
    return Arrangement(order, greater)


def _dense_ranks(keys: Sequence[pa.Array], length: int) -> npt.NDArray[np.int64]:
    """Return the number of each row by its keys, from 0 and without gaps; equal rows have equal numbers."""
    if length == 0:
        return np.zeros(0, np.int64)
    order = _sort(keys)
    return Arrangement(order, _differ(keys, order)).ranks()


def _sort(keys: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
    """Return the positions of rows in ascending order of their keys."""
    if len(keys) == 1:
        return _positions(pc.array_sort_indices(keys[0]))
    names = [str(at) for at in range(len(keys))]
    batch = pa.RecordBatch.from_arrays(list(keys), names=names)
    return _positions(pc.sort_indices(batch, sort_keys=[(name, "ascending") for name in names]))


def _positions(indices: pa.Array) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = indices.to_numpy().astype(np.int64)
    return found


def _differ(keys: Sequence[pa.Array], order: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Tell of each row in an order whether its keys differ from those of the row before it."""
    differ = np.zeros(len(order), np.bool_)
    positions = pa.array(order)
    for key in keys:
        ordered = key.take(positions)
        # Where both are null they are equal, and where one is, the key before this one has told.
        changes = pc.fill_null(pc.not_equal(ordered[1:], ordered[:-1]), False)  # noqa: FBT003
        differ[1:] |= changes.to_numpy(zero_copy_only=False)
    return differ


def _validity(array: pa.Array) -> list[pa.Array]:
    return [array.is_valid()] if array.null_count else []


def _float_key(array: pa.Array) -> pa.Array:
    """Return integers in the order of the floats: the bits of negative ones count downwards."""
    width = array.type.bit_width
    bits_type = np.dtype(f"i{width // 8}")
    least, most = np.iinfo(bits_type).min, np.iinfo(bits_type).max
    values = array.fill_null(0.0).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN
        bits = (values + values.dtype.type(0)).view(bits_type)  # -0.0 + 0.0 is 0.0
    keys = np.where(bits < 0, bits ^ most, bits)
    keys[np.isnan(values)] = most
    if array.null_count:
        keys[array.is_null().to_numpy(zero_copy_only=False)] = least
    return pa.array(keys)


def _sequences(ranks: npt.NDArray[np.int64], offsets: npt.NDArray[np.int32]) -> pa.Array:
    """Return each list of numbers as bytes that compare as the list does: a prefix is less."""
    data = ranks.astype(_RANK)
    ends = offsets.astype(np.int64) * _RANK.itemsize
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def _sorted_within(ranks: npt.NDArray[np.int64], offsets: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Sort the numbers of each list."""
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return ranks[np.lexsort((ranks, owner))]
