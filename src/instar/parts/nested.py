"""Lists and maps taken apart: what they hold, without what only seems to be there.

Below a null list, outside of a slice and between the items of a view there may be values that mean
nothing. These functions leave them out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from instar.schema.algebra import slots

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.schema import Type
    from instar.schema.algebra import Slot

__all__ = ["map_entries", "null_mask", "open_list", "open_map", "open_slots"]


def open_list(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return offsets from zero and the items of a list of any kind; a null list is empty."""
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(lengths.to_numpy(zero_copy_only=False), out=offsets[1:])
    return pa.array(offsets).cast(pa.int32()), pc.list_flatten(array)


def open_map(array: pa.MapArray) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return offsets from zero, keys and values of a map."""
    offsets, entries = open_list(map_entries(array))
    keys, values = entries.flatten()
    return offsets, keys, values


def open_slots(type_: Type, array: pa.Array) -> Iterator[tuple[Slot, pa.Array]]:
    """Yield what is directly inside an array of a type; below a null struct a member is null."""
    inside = list(slots(type_))
    if pa.types.is_struct(array.type):
        yield from zip(inside, array.flatten(), strict=True)
    elif pa.types.is_map(array.type):
        yield from zip(inside, open_map(array)[1:], strict=True)
    elif inside:
        yield inside[0], open_list(array)[1]


def map_entries(array: pa.MapArray) -> pa.ListArray:
    """Return a map as the list of entries that it is."""
    fields = [array.type.key_field, array.type.item_field]
    entries = pa.StructArray.from_arrays([array.keys, array.items], fields=fields)
    offsets = pa.array(array.offsets.to_numpy())  # without a slice, which cannot have nulls of its own
    return pa.ListArray.from_arrays(offsets, entries, mask=null_mask(array))


def null_mask(array: pa.Array) -> pa.Array | None:
    """Return where an array is null, or None if it is nowhere."""
    return array.is_null() if array.null_count else None
