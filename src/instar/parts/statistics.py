"""Statistics of the rows of one part: counts and bounds per leaf, within a budget, and what is present.

Everything is computed column by column in Arrow. How bounds of many parts are kept and put together is
in `instar.stats`.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from decimal import Decimal as PythonDecimal
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from instar.parts.layout import flatten_leaves, locate
from instar.parts.nested import open_slots
from instar.parts.truncate import BOUND_BYTES, lower_bound, upper_bound
from instar.schema import Field, List, Map, Schema, Struct, Type
from instar.schema.algebra import member_fields
from instar.stats import FieldStats

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from instar.stats import Value

__all__ = [
    "STATS_BUDGET",
    "column_stats",
    "compute_stats",
    "fit_budget",
    "integers",
    "key_stats",
    "leaf_ids",
    "present_fields",
]

STATS_BUDGET: Final = 8 * 1024
"""Bytes of statistics per part: 400 columns of integers, or 58 of the longest texts.

A commit carries the metadata of up to 64 parts itself, which then stays below half a megabyte.
"""


_BEGINNING: Final = BOUND_BYTES + 4
"""How many bytes of a long value tell its bounds: what they keep, and one more character."""


def compute_stats(
    table: pa.Table, schema: Schema, order_by: Sequence[int] = (), budget: int = STATS_BUDGET
) -> dict[int, FieldStats]:
    """Return what is known of each leaf; columns are in the order of the schema, whatever their names."""
    stats = {
        field.id: column_stats(column)
        for field, column in flatten_leaves(table, schema)
        if not isinstance(field.type, List | Map)
    }
    return fit_budget(stats, schema, order_by, budget)


def key_stats(table: pa.Table, schema: Schema, key: Sequence[int]) -> dict[int, FieldStats]:
    """Return what is known of the leaves of a key, as far as they have statistics."""
    wanted = leaf_ids(schema, key)
    return {
        field.id: column_stats(column)
        for field, column in flatten_leaves(table, schema)
        if field.id in wanted and not isinstance(field.type, List | Map)
    }


def fit_budget(
    stats: dict[int, FieldStats], schema: Schema, order_by: Sequence[int], budget: int
) -> dict[int, FieldStats]:
    """Take away bounds, and then whole statistics, until the rest fits; never those of sort columns.

    The longest bounds go first, for one of them buys many short ones; among equals the later column,
    for people put first what they ask for most. Counts cost little, and answer `is null`; where those of
    all columns would take more than half of the budget, the first columns keep all, and the last nothing.
    """
    sizes = {field_id: _size(known) for field_id, known in stats.items()}
    excess = sum(sizes.values()) - budget
    if excess <= 0:
        return stats
    kept = dict(stats)
    position = {field_id: at for at, field_id in enumerate(stats)}
    kept_whole = leaf_ids(schema, order_by)
    spare = [field_id for field_id in stats if field_id not in kept_whole]
    counts = sum(_size(FieldStats(known.nulls, known.nans)) for known in stats.values())
    if counts * 2 > budget:
        return _first_columns(kept, spare, budget)
    for field_id in sorted(spare, key=lambda it: (sizes[it], position[it]), reverse=True):
        if excess <= 0:
            return kept
        kept[field_id] = FieldStats(stats[field_id].nulls, stats[field_id].nans)
        excess -= sizes[field_id] - _size(kept[field_id])
    for field_id in reversed(spare):
        if excess <= 0:
            return kept
        excess -= _size(kept.pop(field_id))
    return kept


def _first_columns(stats: dict[int, FieldStats], spare: list[int], budget: int) -> dict[int, FieldStats]:
    """Take whole statistics away from the last columns of a very wide table, until the rest fits."""
    excess = sum(_size(known) for known in stats.values()) - budget
    for field_id in reversed(spare):
        if excess <= 0:
            break
        excess -= _size(stats.pop(field_id))
    return stats


def present_fields(table: pa.Table, schema: Schema) -> frozenset[int]:
    """Return the fields, at every level, that have at least one value: what a deletion would lose."""
    found: set[int] = set()
    for at, field in enumerate(schema.fields):
        for chunk in table.column(at).chunks:
            found.update(_present(field, chunk))
    return frozenset(found)


def integers(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return dates and times as the integers that they are stored as, and anything else as it is."""
    if pa.types.is_date32(column.type):
        return _view(column, pa.int32())
    if pa.types.is_temporal(column.type):
        return _view(column, pa.int64())
    return column


def _view(column: pa.Array | pa.ChunkedArray, type_: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([chunk.view(type_) for chunk in column.chunks], type_)
    return column.view(type_)


def column_stats(column: pa.ChunkedArray) -> FieldStats:
    """Return what is known of one leaf."""
    nulls, nans = column.null_count, 0
    if pa.types.is_floating(column.type):
        is_nan = pc.is_nan(column)
        nans = pc.sum(is_nan).as_py() or 0
        column = column.filter(pc.invert(is_nan)) if nans else column
    low, high = _bounds(column)
    return FieldStats(nulls, nans, low, high)


def _bounds(column: pa.ChunkedArray) -> tuple[Value | None, Value | None]:
    """Return bounds as they are stored: both or neither, for half an interval is easily taken for a whole."""
    if column.null_count == len(column):
        return None, None
    is_text = pa.types.is_string(column.type)
    # Bytes: not everybody who makes strings checks that they are UTF-8.
    values = column.cast(pa.binary()) if is_text else integers(column)
    if pa.types.is_binary(values.type) and values.nbytes > _BEGINNING * len(values):
        values = pc.binary_slice(values, 0, _BEGINNING)  # long ones are copied again and again
    found = pc.min_max(values)
    low, high = found["min"].as_py(), found["max"].as_py()
    match low:
        case bytes():
            return _text_bounds(low, high, is_text=is_text)
        case float():
            # Zeros are equal whatever their sign, and not everybody compares them so.
            return low or -0.0, high or 0.0
        case PythonDecimal():
            return str(low), str(high)
    return low, high


def _text_bounds(low: bytes, high: bytes, *, is_text: bool) -> tuple[Value | None, Value | None]:
    try:
        least = lower_bound(_decode(low) if is_text else low)
        greatest = upper_bound(_decode(high) if is_text else high)
    except UnicodeDecodeError:
        return None, None
    return (None, None) if greatest is None else (least, greatest)


def _decode(beginning: bytes) -> str:
    """Return a text, or the beginning of a long one, whose last character may be cut."""
    is_cut = len(beginning) >= _BEGINNING
    return getincrementaldecoder("utf-8")().decode(beginning, final=not is_cut)


def _size(stats: FieldStats) -> int:
    return len(msgspec.msgpack.encode(stats)) + 3  # and its id


def leaf_ids(schema: Schema, field_ids: Sequence[int]) -> frozenset[int]:
    """Return the leaves that fields are or consist of."""
    found: set[int] = set()
    for field_id in field_ids:
        fields = schema.fields
        field: Field | None = None
        for at in locate(fields, field_id):
            field = fields[at]
            fields = field.type.fields if isinstance(field.type, Struct) else ()
        if field is not None:
            found.update(leaf.id for leaf in _struct_leaves(field))
    return frozenset(found)


def _struct_leaves(field: Field) -> Iterator[Field]:
    if isinstance(field.type, Struct):
        for member in field.type.fields:
            yield from _struct_leaves(member)
    else:
        yield field


def _present(field: Field, array: pa.Array) -> Iterator[int]:
    if array.null_count < len(array):
        yield field.id
        yield from _present_inside(field.type, array)


def _present_inside(type_: Type, array: pa.Array) -> Iterator[int]:
    if not any(member_fields(type_)):
        return
    for slot, inside in open_slots(type_, array):
        if slot.field is not None:
            yield from _present(slot.field, inside)
        else:
            yield from _present_inside(slot.type, inside)
