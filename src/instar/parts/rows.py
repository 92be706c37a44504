"""The least and the greatest row of a part, as short bounds that part metadata carries.

A bound is a prefix of what rows are compared by: field id and value, in the order of comparison. It says
something of that prefix only, and ends where lists and maps begin, after a text that was cut short, and
when it is long enough.
"""

from __future__ import annotations

from decimal import Decimal as PythonDecimal
from typing import TYPE_CHECKING, Any, Final

import msgspec

from instar.parts.sort import compared_fields
from instar.parts.statistics import integers
from instar.parts.truncate import BOUND_BYTES, lower_bound, upper_bound
from instar.schema import Decimal, Field, List, Map, Schema, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from instar.state import Part
    from instar.stats import FieldStats

__all__ = [
    "ROW_BUDGET",
    "Bound",
    "compare_bounds",
    "decode_row",
    "encode_limits",
    "encode_row",
    "may_overlap",
]

ROW_BUDGET: Final = 256
"""Bytes after which a bound ends: enough for a few keys, little beside a part's statistics."""

Bound = tuple[tuple[int, Any], ...]
"""(field id, value as in `FieldStats`, or None) in the order of comparison; of a struct, whether it is there.

A decimal is a list of one text, so that it is not taken for a text.
"""


def encode_row(
    table: pa.Table, at: int, schema: Schema, order_by: Sequence[int] = (), *, greatest: bool
) -> bytes | None:
    """Encode the row at a position as a bound from below, or if it is the greatest row, from above."""
    bound: list[tuple[int, Any]] = []
    size = 0
    for trail, field in compared_fields(schema, order_by):
        cell = table.column(trail[0]).slice(at, 1).combine_chunks()
        for position in trail[1:]:
            cell = cell.flatten()[position]
        for field_id, value in _components(field, cell):
            short, exact = _shorten(value, greatest=greatest)
            if short is _END or size > ROW_BUDGET:
                return _encode(bound)
            bound.append((field_id, short))
            size += len(msgspec.msgpack.encode(bound[-1]))
            if not exact:
                return _encode(bound)
    return _encode(bound)


def encode_limits(
    stats: Mapping[int, FieldStats], rows: int, schema: Schema, order_by: Sequence[int] = ()
) -> tuple[bytes | None, bytes | None]:
    """Encode bounds of rows that are not sorted: by the first thing that sorted rows are compared by."""
    _, field = next(compared_fields(schema, order_by))
    known = stats.get(field.id)
    if known is None or known.nulls is None or known.nans is None:
        return None, None
    if known.min is None and known.nulls + known.nans < rows:
        return None, None
    first = None if known.nulls else known.min if known.min is not None else _NAN
    last = _NAN if known.nans else known.max
    is_decimal = isinstance(field.type, Decimal)
    bounds = ([value] if is_decimal and value is not None else value for value in (first, last))
    first_row, last_row = (_encode([(field.id, value)]) for value in bounds)
    return first_row, last_row


def decode_row(data: bytes) -> Bound:
    """Read a bound back."""
    return tuple((field_id, value) for field_id, value in msgspec.msgpack.decode(data))


def compare_bounds(one: Bound, other: Bound) -> int:
    """Compare two bounds by what they have in common: -1, 1, or 0 if that does not tell them apart."""
    for (one_id, one_value), (other_id, other_value) in zip(one, other, strict=False):
        if one_id != other_id:
            return 0
        left, right = _comparable(one_value), _comparable(other_value)
        if left != right:
            return -1 if left < right else 1
    return 0


def may_overlap(one: Part, other: Part) -> bool:
    """Whether two parts may have rows in the same place of the order; unknown bounds may be anywhere."""
    if None in (one.first_row, one.last_row, other.first_row, other.last_row):
        return True
    first, last = (decode_row(row) for row in (one.first_row or b"", one.last_row or b""))
    other_first, other_last = (decode_row(row) for row in (other.first_row or b"", other.last_row or b""))
    return compare_bounds(first, other_last) <= 0 and compare_bounds(other_first, last) <= 0


_END: Final = object()
_NAN: Final = float("nan")


def _components(field: Field, cell: pa.Array) -> Iterator[tuple[int, Any]]:
    """Yield what a field is compared by; `_END` where that is more than a single value."""
    match field.type:
        case Struct(fields=members):
            yield field.id, cell[0].is_valid
            for member, child in zip(members, cell.flatten(), strict=True):
                yield from _components(member, child)
        case List() | Map():
            yield field.id, _END
        case _:
            try:
                yield field.id, integers(cell)[0].as_py()
            except UnicodeDecodeError:
                yield field.id, _END


def _shorten(value: Any, *, greatest: bool) -> tuple[Any, bool]:  # noqa: ANN401 -- any value of any column
    """Return a value as it is stored, and whether it is all of it."""
    if isinstance(value, str | bytes):
        short = upper_bound(value, BOUND_BYTES) if greatest else lower_bound(value, BOUND_BYTES)
        return (_END, False) if short is None else (short, len(short) == len(value) and short == value)
    return ([str(value)] if isinstance(value, PythonDecimal) else value), True


def _encode(bound: list[tuple[int, Any]]) -> bytes | None:
    return msgspec.msgpack.encode(bound) if bound else None


def _comparable(value: Any) -> tuple[Any, ...]:  # noqa: ANN401
    """Order values as rows are ordered: null first, NaN last."""
    match value:
        case None:
            return ()
        case float():
            return (True, 0.0) if value != value else (False, value)  # noqa: PLR0124
        case int():
            return (False, value)  # beside doubles, if the column was widened meanwhile
        case [text]:
            return (PythonDecimal(text),)
        case str():
            return (value.encode(),)
    return (value,)
