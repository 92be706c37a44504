"""Adopted files on Spark: relations that find columns by name, and bring them to those that others have.

Spark finds columns by id or by name, not by both in one relation. So files that others wrote are read by
relations of their own, one for each layout: which names their columns have, and which ones their paths tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it
from pyspark.sql.types import StructType

from instar.parts import path_value
from instar.schema import (
    Decimal,
    Field,
    List,
    Map,
    Primitive,
    Schema,
    Struct,
    Type,
    field_name,
    format_path,
    spark_json,
)
from instar.schema.algebra import map_members, walk_fields
from instar.schema.spark import type_json
from instar.state.chunk import TIMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column

    from instar.schema import History
    from instar.state import Adopted
    from instar.table.log.part_set import PartSet

__all__ = [
    "FileLayout",
    "by_file_name",
    "split_by_layout",
    "stored_json",
    "told_json",
    "told_values",
    "value_column",
]

_SMALL: Final = ("tinyint", "smallint", "int")
_FLOATS: Final = ("float", "double")


class FileLayout(NamedTuple):
    """How some adopted files hold the fields of a reader.

    `fields` are those that they have, with the names in the files and the types of the reader; of these,
    `told` come with the paths, and `nanos` are in nanoseconds.
    """

    fields: tuple[Field, ...]
    told: frozenset[int]
    nanos: frozenset[int]


def split_by_layout(
    parts: PartSet, history: History, fields: Sequence[Field]
) -> dict[FileLayout | None, PartSet]:
    """Return the parts of our own under None, and adopted files by their layout."""
    adopted = parts.adopted
    if not adopted:
        return {None: parts}
    schemas = parts.columns[TIMES].column("schema_id").to_pylist()
    seen: dict[tuple[int, frozenset[int], frozenset[int]], FileLayout] = {}
    masks: dict[FileLayout | None, Any] = {}
    for at in range(len(parts)):
        layout = None
        if at in adopted:
            told, nanos = frozenset(adopted[at].values), frozenset(adopted[at].nanos)
            key = schemas[at], told, nanos
            if key not in seen:
                seen[key] = _layout(history.schemas[schemas[at]], fields, told, nanos)
            layout = seen[key]
        masks.setdefault(layout, np.zeros(len(parts), dtype=bool))[at] = True
    return {layout: parts.keep(mask) for layout, mask in masks.items()}


def _layout(
    written: Schema, fields: Sequence[Field], told: frozenset[int], nanos: frozenset[int]
) -> FileLayout:
    elders = {field.id: field for field in written.fields}
    shared = tuple(
        Field(field.id, elders[field.id].name, _in_file(elders[field.id].type, field.type))
        for field in fields
        if field.id in elders
    )
    read = {field.id for field in walk_fields(shared)}
    return FileLayout(shared, told & read, nanos & read)


def _in_file(written: Type, wanted: Type) -> Type:
    """Return the type to read: the reader's, with the names in the file and without what it lacks."""
    match written, wanted:
        case Struct(fields=elders), Struct(fields=members):
            known = {elder.id: elder for elder in elders}
            shared = tuple(
                Field(member.id, known[member.id].name, _in_file(known[member.id].type, member.type))
                for member in members
                if member.id in known
            )
            return Struct(shared or elders[:1])  # one member tells which structs are null
        case List(), List():
            return List(_in_file(written.element, wanted.element))
        case Map(), Map():
            return Map(_in_file(written.key, wanted.key), _in_file(written.value, wanted.value))
    return wanted


def by_file_name(layout: FileLayout) -> Mapping[str, Field]:
    """Return the fields of which a filter may be understood, by the names that Spark knows them under."""
    return {
        field.name: field
        for field in layout.fields
        if field.id not in layout.nanos and (field.id not in layout.told or _is_typed(field.type))
    }


def stored_json(layout: FileLayout) -> list[dict[str, Any]]:
    """Return the columns to read from the files, as Spark's JSON, without ids."""
    return [
        _json(field.name, _type_json(field.type, field.id, layout.nanos))
        for field in layout.fields
        if field.id not in layout.told
    ]


def told_json(layout: FileLayout) -> list[dict[str, Any]]:
    """Return the columns that the paths tell, as Spark's JSON."""
    return [_json(field.name, _told_type(field.type)) for field in _told(layout)]


def told_values(layout: FileLayout, adopted: Adopted) -> tuple[str | int | bool | None, ...]:
    """Return what the path of a file tells, as Spark holds it."""
    return tuple(_told_value(adopted.values[field.id], field) for field in _told(layout))


def value_column(layout: FileLayout, field: Field, *, physical: bool) -> Column:
    """Return a field of the reader, from the columns of a layout."""
    wanted = _physical(field.type) if physical else field.type
    target = _spark_type(wanted)
    own = next((each for each in layout.fields if each.id == field.id), None)
    if own is None:
        return F.lit(None).cast(target)
    column = F.col(format_path((own.name,)))
    if field.id in layout.told:
        return column.cast(target)
    return _value(column, own.type, wanted, field.id, layout.nanos)


def _value(column: Column, have: Type, want: Type, owner: int, nanos: frozenset[int]) -> Column:
    """Bring a value of a file into the form that the reader wants."""
    match have, want:
        case Struct(fields=members), Struct(fields=wanted):
            known = {member.id: member for member in members}
            made = [
                (
                    _value(column.getField(known[own.id].name), known[own.id].type, own.type, own.id, nanos)
                    if own.id in known
                    else F.lit(None).cast(_spark_type(own.type))
                ).alias(own.name)
                for own in wanted
            ]
            return F.when(column.isNotNull(), F.struct(*made))
        case List(), List():
            return F.transform(column, lambda item: _value(item, have.element, want.element, owner, nanos))
        case Map(), Map():
            return F.transform_values(
                column, lambda _, item: _value(item, have.value, want.value, owner, nanos)
            )
        case _, Primitive(name="timestamp") if owner in nanos:
            return F.timestamp_micros(_micros(column))
        case _, Primitive(name="timestamp_ntz") if owner in nanos:
            return F.lit("1970-01-01").cast("timestamp_ntz") + _micros(column) * F.expr(
                "interval '0.000001' second"
            )
        case _, Decimal():
            return _unpushed(column)
        case _, Primitive(name=name) if name in _FLOATS:
            return _unpushed(column)
    return column


def _unpushed(column: Column) -> Column:
    """Return the same, in a form that Spark pushes no filters on into files.

    Their bounds leave out NaN, which is the greatest value, and narrower decimals are compared in fewer bits.
    """
    return F.when(column.isNotNull(), column)


def _micros(column: Column) -> Column:
    """Return microseconds: what was adopted has no smaller ones."""
    return F.call_function("div", column, F.lit(1000))


def _physical(type_: Type) -> Type:
    """Name the members of structs `f<id>`."""
    return map_members(type_, lambda it: Field(it.id, field_name(it.id), _physical(it.type), it.nullable))


def _spark_type(type_: Type) -> Any:  # noqa: ANN401 -- a type of Spark's
    return StructType.fromJson(spark_json(Schema((Field(1, "it", type_),))))[0].dataType


def _told(layout: FileLayout) -> list[Field]:
    return [field for field in layout.fields if field.id in layout.told]


def _is_typed(type_: Type) -> bool:
    """Whether Spark gets what a path tells in the field's own type, or a smaller one of its kind."""
    return isinstance(type_, Primitive) and type_.name in (*_SMALL, "boolean", "date", "string")


def _told_type(type_: Type) -> str:
    if not isinstance(type_, Primitive) or not _is_typed(type_):
        return "string"  # a number may reach the JVM in another width than it should have
    return "integer" if type_.name in _SMALL else type_.name


def _told_value(text: str | None, field: Field) -> str | int | bool | None:
    if text is None or not _is_typed(field.type):
        return text
    value = path_value(text, field)
    if isinstance(field.type, Primitive) and field.type.name == "date":
        return int(value.value)
    found: str | int | bool = value.as_py()
    return found


def _type_json(type_: Type, owner: int, nanos: frozenset[int]) -> str | dict[str, Any]:
    match type_:
        case Struct(fields=members):
            fields = [_json(member.name, _type_json(member.type, member.id, nanos)) for member in members]
            return {"type": "struct", "fields": fields}
        case List(element=element):
            return {"type": "array", "elementType": _type_json(element, owner, nanos), "containsNull": True}
        case Map(key=key, value=value):
            return {
                "type": "map",
                "keyType": _type_json(key, owner, nanos),
                "valueType": _type_json(value, owner, nanos),
                "valueContainsNull": True,
            }
        case Primitive(name="timestamp" | "timestamp_ntz") if owner in nanos:
            return "long"
    return type_json(type_)


def _json(name: str, type_: str | dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": True, "metadata": {}}
