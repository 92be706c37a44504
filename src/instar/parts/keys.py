"""Values of every type as flat columns that Arrow can sort and compare: the order and equality of rows.

Null is least, NaN greatest, -0.0 equals 0.0, texts compare by their UTF-8 bytes, structs by their members
and lists by their elements, one after the other. Maps compare by their entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from instar.parts.nested import open_list, open_map
from instar.parts.statistics import integers
from instar.schema import List, Map, Struct, Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

__all__ = ["dense_ranks", "flat_keys", "sort_by_keys"]

_RANK = np.dtype(">u4")  # in this byte order, comparing bytes is comparing numbers


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
            ranks = dense_ranks(flat_keys(items, element, maps_as_sets=maps_as_sets), len(items))
            return [*_validity(array), _sequences(ranks, offsets.to_numpy())]
        case Map(key=key, value=value):
            offsets, names, values = open_map(array)
            entries = flat_keys(names, key) + flat_keys(values, value, maps_as_sets=maps_as_sets)
            ranks = dense_ranks(entries, len(names))
            if maps_as_sets:
                ranks = _sorted_within(ranks, offsets.to_numpy())
            return [*_validity(array), _sequences(ranks, offsets.to_numpy())]
    if pa.types.is_floating(array.type):
        return [_float_key(array)]
    return [*_validity(array), integers(array)]


def sort_by_keys(keys: Sequence[pa.Array], length: int) -> pa.Array:
    """Return the positions of the rows in ascending order of their keys."""
    if not keys:
        return pa.array(np.arange(length, dtype=np.uint64))
    names = [str(at) for at in range(len(keys))]
    batch = pa.RecordBatch.from_arrays(list(keys), names=names)
    return pc.sort_indices(batch, sort_keys=[(name, "ascending") for name in names])


def dense_ranks(keys: Sequence[pa.Array], length: int) -> npt.NDArray[np.int64]:
    """Return the number of each row by its keys, from 0 and without gaps; equal rows have equal numbers."""
    ranks = np.zeros(length, np.int64)
    if length == 0:
        return ranks
    order = sort_by_keys(keys, length)
    changes = np.zeros(length, np.int64)
    for key in keys:
        ordered = key.take(order)
        differs = pc.fill_null(pc.not_equal(ordered[1:], ordered[:-1]), False)  # noqa: FBT003
        changes[1:] |= differs.to_numpy(zero_copy_only=False)
    ranks[order.to_numpy()] = np.cumsum(changes)
    return ranks


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
