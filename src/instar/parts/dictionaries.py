"""Which columns of a part get a dictionary: those that it makes smaller, as a sample of the first rows tells.

A dictionary of values that hardly repeat takes more room than the values, and longer to read and write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from instar.parts.layout import flatten_column, parquet_leaves
from instar.schema import Primitive, field_name

if TYPE_CHECKING:
    from instar.schema import Schema

__all__ = ["dictionary_columns"]

_SAMPLE_ROWS: Final = 1 << 15
_SAMPLE_BYTES: Final = 32 << 20
_FLOATS: Final = (Primitive("float"), Primitive("double"))
_LENGTH: Final = 4
"""What Parquet writes before a text."""
_INT32_DIGITS: Final = 9
_INT64_DIGITS: Final = 18


def dictionary_columns(
    table: pa.Table, indices: pa.Array | None, schema: Schema, long: frozenset[str]
) -> list[str]:
    """Return the paths of the columns that get a dictionary; what is in lists and maps always does.

    `indices` tell the order of the rows, if it is another. `long` are the columns that get none anyway.
    """
    skipped = {path.partition(".")[0] for path in long}
    fields = tuple(field for field in schema.fields if field_name(field.id) not in skipped)
    sample = table.select([field_name(field.id) for field in fields])
    rows = min(_SAMPLE_ROWS, max(1, _SAMPLE_BYTES * table.num_rows // max(1, sample.nbytes)))
    sample = sample.slice(0, rows) if indices is None else sample.take(indices.slice(0, rows))
    unfit = {
        field_name(field.id)
        for column, whole in zip(sample.columns, fields, strict=True)
        for field, leaf in flatten_column(whole, column)
        if not _repeats_enough(leaf)
    }
    return [
        leaf.path
        for leaf in parquet_leaves(schema)
        # Spark looks a literal up in the dictionary bit by bit, and would not find 0.0 where -0.0 is.
        if leaf.type not in _FLOATS
        and leaf.path not in long
        and (leaf.repeated or leaf.path.rpartition(".")[2] not in unfit)
    ]


def _repeats_enough(column: pa.ChunkedArray) -> bool:
    """Whether values take less room as numbers into a dictionary."""
    if pa.types.is_nested(column.type) or pa.types.is_boolean(column.type):
        return True
    values = column.drop_null()
    different = pc.unique(values)
    bits = max(1, (len(different) - 1).bit_length())
    return _stored_bytes(different) + len(values) * bits / 8 <= _stored_bytes(values)


def _stored_bytes(values: pa.Array | pa.ChunkedArray) -> int:
    """Return what values take in a file before they are compressed."""
    type_ = values.type
    if pa.types.is_string(type_) or pa.types.is_binary(type_) or pa.types.is_large_string(type_):
        return (pc.sum(pc.binary_length(values)).as_py() or 0) + _LENGTH * len(values)
    if pa.types.is_decimal(type_):
        width = 4 if type_.precision <= _INT32_DIGITS else 8 if type_.precision <= _INT64_DIGITS else 16
    else:
        width = max(4, type_.bit_width // 8)
    return width * len(values)
