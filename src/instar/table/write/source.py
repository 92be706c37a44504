"""The data of a merge, in types that expressions know: its own, or the narrowest column types that hold them.

Columns whose type nobody has chosen take that of the table's column of their name, where each value fits, as
for an append: numbers of Python and pandas, and nothing but nulls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from instar.errors import DataMismatchError
from instar.parts import conform, data_schema
from instar.parts.objects import is_incidental
from instar.schema import Field, Schema, arrow_schema
from instar.schema.schema import number_fields

if TYPE_CHECKING:
    from instar.schema import Type

__all__ = ["as_source"]


def as_source(given: pa.Table, latest: Schema) -> tuple[pa.Table, Schema]:
    """Return data in column types, and its schema. Columns of nulls that the table lacks are left out."""
    known = {field.name.lower(): field.type for field in latest.fields}
    types: dict[str, Type] = {}
    for field, column in zip(given.schema, given.columns, strict=True):
        own = pa.schema([field])
        like = known.get(field.name.lower())
        if like is not None and _is_open(field) and _fits(pa.table([column], schema=own), like):
            types[field.name] = like
        elif not pa.types.is_null(field.type):
            (types[field.name],) = (it.type for it in data_schema(own).fields)
    schema = Schema(number_fields(Field(0, name, type_) for name, type_ in types.items()))
    return _conformed(given.select(list(types)), schema), schema


def _conformed(given: pa.Table, schema: Schema) -> pa.Table:
    rows = pa.Table.from_batches(conform(given, schema), schema=arrow_schema(schema))
    return rows.combine_chunks()


def _fits(column: pa.Table, type_: Type) -> bool:
    """Whether each value can be of a type."""
    (name,) = column.column_names
    try:
        _conformed(column, Schema(number_fields([Field(0, name, type_)])))
    except DataMismatchError:
        return False
    return True


def _is_open(field: pa.Field) -> bool:
    """Whether nobody has chosen the type of a column, or there is none like it, or so inside it."""
    inside = [field.type.field(at) for at in range(field.type.num_fields)]
    homeless = pa.types.is_null(field.type) or pa.types.is_uint64(field.type)
    return is_incidental(field) or homeless or any(map(_is_open, inside))
