"""Frames on their way into a table: what their columns are to us, and how Spark can hand them over as Arrow.

Spark's own translation loses what Arrow has no type for; here it is named, or refused. The rows are stored
in `store.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    DayTimeIntervalType,
    MapType,
    StringType,
    StructField,
    StructType,
    UserDefinedType,
    YearMonthIntervalType,
)

from instar.errors import UnsupportedTypeError
from instar.schema import List, Map, Struct, format_path
from instar.schema.arrow import TYPE_METADATA
from instar.schema.ddl import UNSUPPORTED
from instar.schema.paths import ELEMENT, KEY, VALUE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from instar.schema import Schema, Type

__all__ = ["arrow_frame", "has_months", "incoming_schema", "named_as"]

Path = tuple[str, ...]


def incoming_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema of a frame's rows; what Arrow has no type for is named in the metadata."""
    return pa.schema([_field(field.name, field.dataType, (), nullable=field.nullable) for field in schema])


def _field(name: str, type_: DataType, parent: Path, *, nullable: bool = True) -> pa.Field:
    path = (*parent, name)
    named = None
    match type_:
        case YearMonthIntervalType() | DayTimeIntervalType():
            named = type_.simpleString()
        case StringType() if not type_.isUTF8BinaryCollation():
            named = f"string collate {type_.collation}"
    metadata = None if named is None else {TYPE_METADATA: named.encode()}
    return pa.field(name, _arrow_type(type_, path), nullable, metadata)


def _arrow_type(type_: DataType, path: Path) -> pa.DataType:
    match type_:
        case StructType():
            return pa.struct([_field(it.name, it.dataType, path, nullable=it.nullable) for it in type_])
        case ArrayType():
            return pa.list_(_field(ELEMENT, type_.elementType, path, nullable=type_.containsNull))
        case MapType():
            value = _field(VALUE, type_.valueType, path, nullable=type_.valueContainsNull)
            return pa.map_(_field(KEY, type_.keyType, path, nullable=False), value)
        case UserDefinedType():
            return _arrow_type(type_.sqlType(), path)
        case YearMonthIntervalType():
            return pa.int32()
    name = type_.typeName().partition("(")[0]
    if name in {"variant", "geometry", "geography"}:  # Spark makes structs of them
        raise UnsupportedTypeError(name, UNSUPPORTED[name], path=format_path(path))
    try:
        return to_arrow_type(type_, timezone="UTC")
    except PySparkTypeError:
        why = UNSUPPORTED.get("calendar interval" if name == "interval" else name)
        raise UnsupportedTypeError(
            type_.simpleString(), why or "there is no column type for it", path=format_path(path)
        ) from None


def arrow_frame(frame: DataFrame) -> DataFrame:
    """Return a frame that PySpark can turn into Arrow: it has no Arrow type for months."""
    columns = [(F.col(format_path((field.name,))), field) for field in frame.schema]
    return frame.select([_months(column, field.dataType).alias(field.name) for column, field in columns])


def named_as(frame: DataFrame, schema: Schema) -> DataFrame:
    """Give columns and members the names of a schema's, wherever only the case of letters differs."""
    names = {field.name.lower(): field for field in schema.fields}
    columns = []
    for given in frame.schema:
        field = names.get(given.name.lower())
        column = F.col(format_path((given.name,)))
        if field is None:
            columns.append(column)
            continue
        type_ = _renamed(given.dataType, field.type)
        columns.append((column if type_ == given.dataType else column.cast(type_)).alias(field.name))
    return frame.select(columns)


def _renamed(given: DataType, type_: Type) -> DataType:
    match given, type_:
        case StructType(), Struct(fields=members):
            names = {member.name.lower(): member for member in members}
            found = [(it, names.get(it.name.lower())) for it in given]
            return StructType(
                [
                    it
                    if member is None
                    else StructField(member.name, _renamed(it.dataType, member.type), it.nullable)
                    for it, member in found
                ]
            )
        case ArrayType(), List(element=element):
            return ArrayType(_renamed(given.elementType, element), given.containsNull)
        case MapType(), Map(key=key, value=value):
            return MapType(
                _renamed(given.keyType, key), _renamed(given.valueType, value), given.valueContainsNull
            )
    return given


def has_months(type_: DataType) -> bool:
    """Whether a type holds intervals of years and months, at any level."""
    match type_:
        case StructType():
            return any(has_months(member.dataType) for member in type_)
        case ArrayType():
            return has_months(type_.elementType)
        case MapType():
            return has_months(type_.keyType) or has_months(type_.valueType)
    return isinstance(type_, YearMonthIntervalType)


def _months(column: Column, type_: DataType) -> Column:
    """Replace intervals of years and months, wherever they are, by how many months they are."""
    if not has_months(type_):
        return column
    match type_:
        case StructType():
            members = [
                _months(column.getField(member.name), member.dataType).alias(member.name) for member in type_
            ]
            return F.when(column.isNotNull(), F.struct(*members))
        case ArrayType():
            return F.transform(column, lambda item: _months(item, type_.elementType))
        case MapType():
            values = F.transform_values(column, lambda _, item: _months(item, type_.valueType))
            keyed = has_months(type_.keyType)
            return F.transform_keys(values, lambda key, _: _months(key, type_.keyType)) if keyed else values
    whole = column.cast("interval year to month")  # years alone have no months to extract
    return F.extract(F.lit("year"), whole) * 12 + F.extract(F.lit("month"), whole)
