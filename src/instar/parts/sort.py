"""The order of rows in a run: by the `order_by` fields, then by all columns, then by time and diff."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from instar.parts.keys import arrange, column_keys
from instar.parts.layout import UPDATE_FIELDS, locate, whole
from instar.schema import Field, Primitive, Schema, Struct, Type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt

    from instar.parts.keys import Arrangement, Column

__all__ = ["arrange_rows", "compared_fields", "find_column", "rank_rows", "sort_indices", "sort_rows"]


def sort_rows(table: pa.Table, schema: Schema, order_by: Sequence[int] = ()) -> pa.Table:
    """Return a table with its rows in order; its columns are those of the schema, then `_ts` and `_diff`."""
    table = table.combine_chunks()
    return table.take(sort_indices(table, schema, order_by))


def sort_indices(table: pa.Table, schema: Schema, order_by: Sequence[int] = ()) -> pa.Array:
    """Return the positions of the rows of a table, in order."""
    return pa.array(arrange_rows(table, schema, order_by).order)


def arrange_rows(table: pa.Table, schema: Schema, order_by: Sequence[int] = ()) -> Arrangement:
    """Return the rows of a table in order, and which of them are equal; equal ones stay as they were."""
    return arrange(table.num_rows, _columns(table, schema, order_by))


def rank_rows(table: pa.Table, schema: Schema, field_ids: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return a number for each row of a table: those that are equal in some fields have equal numbers."""
    trails = [locate(schema.fields, field_id) for field_id in field_ids]
    columns = (column_keys(_column(table, trail), _field(schema.fields, trail).type) for trail in trails)
    return arrange(table.num_rows, columns).ranks()


def find_column(table: pa.Table, schema: Schema, field_id: int) -> tuple[pa.Array, Type] | None:
    """Find the values and the type of a field, which may be a member of a struct."""
    trail = locate(schema.fields, field_id)
    return (_column(table, trail), _field(schema.fields, trail).type) if trail else None


def _columns(table: pa.Table, schema: Schema, order_by: Sequence[int]) -> Iterator[Column]:
    """Yield the columns that rows are compared by, one after the other."""
    for trail, field in compared_fields(schema, order_by):
        yield column_keys(_column(table, trail), field.type)
    for name in UPDATE_FIELDS:
        if name in table.column_names:
            yield column_keys(whole(table.column(name)), Primitive("bigint"))


def compared_fields(schema: Schema, order_by: Sequence[int] = ()) -> Iterator[tuple[list[int], Field]]:
    """Yield what rows are compared by: positions through structs, and the field found there.

    A field of `order_by` that the schema no longer has sorts nothing. A member that comes first is
    compared again with its struct, where it makes no difference any more.
    """
    leading = [trail for field_id in order_by if (trail := locate(schema.fields, field_id))]
    for trail in leading:
        yield trail, _field(schema.fields, trail)
    for at, field in enumerate(schema.fields):
        if [at] not in leading:
            yield [at], field


def _field(fields: tuple[Field, ...], trail: list[int]) -> Field:
    field = fields[trail[0]]
    if len(trail) == 1:
        return field
    return _field(field.type.fields if isinstance(field.type, Struct) else (), trail[1:])


def _column(table: pa.Table, trail: list[int]) -> pa.Array:
    column = whole(table.column(trail[0]))
    for at in trail[1:]:
        column = column.flatten()[at]
    return column
