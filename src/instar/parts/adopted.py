"""Reading a part that others wrote: columns by name, values that its path tells, and nulls for what it lacks.

Names are those that the columns of the table had when the file was adopted.
The result is what `read.py` gives for parts of our own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from instar.errors import AdoptedFileError, DataMismatchError
from instar.parts.conform import Conformer
from instar.parts.foreign import foreign_schema
from instar.schema import Decimal, Primitive, Schema, arrow_schema, arrow_type, format_type
from instar.schema.paths import format_path

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from instar.schema import Field, Type
    from instar.state import Part

__all__ = ["BATCH_ROWS", "AdoptedColumns", "path_value"]

_IN_PATHS: Final = frozenset(("boolean", "tinyint", "smallint", "int", "bigint", "string", "date"))

BATCH_ROWS: Final = 128 * 1024
"""Others make row groups that are too large to hold at once."""


class AdoptedColumns:
    """The columns of an adopted file, some of a schema, and how to bring its batches into their layout."""

    def __init__(self, file: pq.ParquetFile, part: Part, schema: Schema) -> None:
        assert part.adopted is not None  # noqa: S101 -- for the type checker
        values = part.adopted.values
        own = {field.name.lower(): field for field in foreign_schema(file)}
        stored = [field for field in schema.fields if field.id not in values and field.name.lower() in own]
        self._part = part
        self._schema = schema
        self._values = values
        self._file_schema = pa.schema([own[field.name.lower()] for field in stored])
        self._conformer = Conformer(self._file_schema, Schema(tuple(stored))) if stored else None
        self.names: list[str] = self._file_schema.names

    def conform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of the file in the layout of the schema."""
        rows = batch.num_rows
        ready: dict[str, pa.Array] = {}
        if self._conformer is not None:
            given = [
                batch.column(batch.schema.get_field_index(field.name)).cast(field.type)
                if not batch.schema.field(field.name).type.equals(field.type)
                else batch.column(batch.schema.get_field_index(field.name))
                for field in self._file_schema
            ]
            try:
                own = self._conformer.apply(pa.RecordBatch.from_arrays(given, schema=self._file_schema))
            except DataMismatchError as error:
                raise AdoptedFileError(self._part.key, f"it has been changed: {error}") from error
            ready = dict(zip(own.schema.names, own.columns, strict=True))
        layout = arrow_schema(self._schema)
        arrays = [
            pa.repeat(path_value(self._values[field.id], field), rows)
            if field.id in self._values
            else ready.get(field.name)
            for field in self._schema.fields
        ]
        filled = [
            pa.nulls(rows, target.type) if array is None else array
            for array, target in zip(arrays, layout, strict=True)
        ]
        return pa.RecordBatch.from_arrays(filled, schema=layout)


def path_value(text: str | None, field: Field) -> pa.Scalar:
    """Return what the path of a file tells of a column."""
    target, column = arrow_type(field.type), format_path((field.name,))
    if text is None:
        return pa.scalar(None, target)
    if not _may_be_in_path(field.type):
        reason = f"a column whose value is in the path cannot be {format_type(field.type)}: make it a string"
        raise DataMismatchError(column, reason)
    try:
        if isinstance(field.type, Primitive) and field.type.name == "boolean":
            return pa.scalar({"true": True, "false": False}[text.lower()])
        value = pa.scalar(text).cast(target)
    except (pa.ArrowInvalid, KeyError):
        reason = f"the path says {text!r}, which is not {format_type(field.type)}"
        raise DataMismatchError(column, reason) from None
    return value


def _may_be_in_path(type_: Type) -> bool:
    """Whether a text means the same value to everybody: times depend on a zone, and floats on rounding."""
    return isinstance(type_, Decimal) or (isinstance(type_, Primitive) and type_.name in _IN_PATHS)
