"""Data from outside: anything that speaks Arrow as a stream of batches, and its types in our words.

What may be written where is decided in `conform.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, NamedTuple, Protocol, Union, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from instar.errors import DataMismatchError, UnsupportedTypeError, UsageError
from instar.parts.objects import are_dicts, from_dicts, from_pandas
from instar.schema import (
    Decimal,
    Field,
    List,
    Map,
    Primitive,
    Schema,
    Struct,
    Type,
    format_path,
    parse_type_ddl,
)
from instar.schema.arrow import ARROW_NAMES, find_named, said_type, why_refused
from instar.schema.paths import ELEMENT, KEY, VALUE, parse_path
from instar.schema.primitives import Family, names_of
from instar.schema.rules import can_widen
from instar.schema.schema import index_fields, number_fields

__all__ = [
    "ArrowData",
    "NewColumn",
    "as_table",
    "check_names",
    "data_schema",
    "find_leaf",
    "needed_types",
    "new_columns",
    "open_stream",
    "plain",
    "plain_type",
    "wider_columns",
]

_MAX_DIGITS: Final = 38
_TRANSPARENT: Final = frozenset({"arrow.json", "arrow.uuid"})
"""Extension types whose storage says all that there is to say."""

_LEAVES: Final = ARROW_NAMES | {
    pa.uint8(): "smallint",
    pa.uint16(): "int",
    pa.uint32(): "bigint",
    pa.float16(): "float",
    pa.date64(): "date",
}

INTEGERS: Final = tuple(Primitive(name) for name in names_of(Family.INTEGER))

_VIEWS: Final = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


@runtime_checkable
class ArrowStream(Protocol):
    """What Polars, DuckDB and others offer."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the data as an Arrow C stream."""


ArrowData = Union[pa.Table, pa.RecordBatch, pa.RecordBatchReader, ArrowStream, Any]  # noqa: UP007 -- pa may be untyped


class NewColumn(NamedTuple):
    """A column or member that data has and a table lacks: where it would be, and its type."""

    path: str
    type: Type


def as_table(data: ArrowData, schema: Schema | None = None) -> pa.Table | None:
    """Return data as a table, if it is all in memory and can be read more than once.

    Dicts of Python become maps where `schema`, that of the table that they are for, has maps.
    """
    data = _collected(data)
    library = type(data).__module__.partition(".")[0]
    if library == "pandas" and hasattr(data, "columns"):
        return from_pandas(data, schema)
    if library == "polars" and hasattr(data, "collect_schema") and hasattr(data, "height"):
        _check_objects(data)
        return pa.table(data)
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if are_dicts(data):
        return from_dicts(data, schema)
    return data if isinstance(data, pa.Table) else None


def needed_types(schema: pa.Schema, table: pa.Table | None) -> pa.Schema:
    """Return the types that values need: of whole numbers the narrowest, or if they are not known any.

    Numbers that come as a stream are not known before they are written.
    """
    fields = []
    for at, field in enumerate(schema):
        if pa.types.is_integer(field.type):
            needed = pa.int8() if table is None else _narrowest(table.column(at))
            fields.append(field.with_type(needed))
        else:
            fields.append(field)
    return pa.schema(fields)


def _narrowest(column: pa.ChunkedArray) -> pa.DataType:
    ends = pc.min_max(column)
    low, high = ends["min"].as_py() or 0, ends["max"].as_py() or 0
    for type_, bits in ((pa.int8(), 7), (pa.int16(), 15), (pa.int32(), 31)):
        if -(2**bits) <= low and high < 2**bits:
            return type_
    return column.type


def open_stream(data: ArrowData, schema: Schema | None = None) -> pa.RecordBatchReader:
    """Return data as a stream of batches; of a pandas frame the columns, and not its index.

    `schema` is as for `as_table`.
    """
    if isinstance(data, pa.RecordBatchReader):
        return data
    table = as_table(data, schema)
    if table is not None:
        return table.to_reader()
    library = type(data).__module__.partition(".")[0]
    if library == "pyarrow" and hasattr(data, "scanner"):  # a dataset
        data = data.scanner()
    if library == "pyarrow" and hasattr(data, "to_reader"):
        return data.to_reader()
    if isinstance(data, ArrowStream):
        try:
            return pa.RecordBatchReader.from_stream(data)
        except pa.ArrowInvalid:
            pass  # a stream of single values
    elif isinstance(data, Iterable) and not isinstance(data, str | bytes | Mapping):
        return _from_batches(iter(data), type(data).__name__)
    raise _no_rows(type(data).__name__)


def _collected(data: Any) -> ArrowData:  # noqa: ANN401 -- Polars may be absent
    """Run the query of a LazyFrame of Polars; all else is what it is."""
    lazy = type(data).__module__.partition(".")[0] == "polars" and type(data).__name__ == "LazyFrame"
    return data.collect() if lazy else data


def _no_rows(kind: str) -> UsageError:
    return UsageError(
        f"cannot read rows from {kind}: give a pandas or Polars DataFrame, a pyarrow Table, RecordBatch, "
        "RecordBatchReader or Dataset, a list of dicts, an iterator of batches, or anything else with "
        "__arrow_c_stream__ that streams rows"
    )


def _from_batches(data: Iterator[Any], kind: str) -> pa.RecordBatchReader:
    """Return what an iterator yields, batches or tables of one schema, as a stream."""
    first = next(data, None)
    if not isinstance(first, pa.RecordBatch | pa.Table):
        raise _no_rows(f"{kind} of {type(first).__name__}" if first is not None else f"an empty {kind}")

    def batches() -> Iterator[pa.RecordBatch]:
        for item in chain([first], data):
            if not isinstance(item, pa.RecordBatch | pa.Table) or not item.schema.equals(first.schema):
                raise UsageError(f"the batches of this {kind} are not of one schema: {first.schema!s:.200}")
            yield from item.to_batches() if isinstance(item, pa.Table) else [item]

    return pa.RecordBatchReader.from_batches(first.schema, batches())


def _check_objects(frame: Any) -> None:  # noqa: ANN401 -- Polars may be absent
    """Refuse columns of Python objects, of which Polars hands on where they are in memory."""
    for name, type_ in frame.schema.items():
        if str(type_) == "Object":
            raise DataMismatchError(name, "it holds Python objects, which no column can. Convert them first")


def new_columns(incoming: pa.Schema, schema: Schema | None) -> tuple[NewColumn, ...]:
    """Return the columns and struct members that a table would need to hold the data, all nullable.

    They are in an order in which `SchemaUpdate.add_column` can add them. Without a schema, they are all new.
    """
    return tuple(_new_members(list(incoming), () if schema is None else schema.fields, ()))


def data_schema(incoming: pa.Schema) -> Schema:
    """Return the schema that a table for the data would have: the narrowest types, all nullable."""
    new = _new_members(list(incoming), (), ())
    return Schema(number_fields(Field(0, parse_path(it.path)[-1], it.type) for it in new))


def _new_members(
    incoming: list[pa.Field], fields: tuple[Field, ...], path: tuple[str, ...]
) -> Iterator[NewColumn]:
    check_names(incoming, path)
    siblings = index_fields(fields)
    for given in incoming:
        inside = (*path, given.name)
        known = siblings.get(given.name.lower())
        if known is None:
            yield NewColumn(format_path(inside), _type_of(given, inside))
        else:
            yield from _new_inside(given.type, known.type, (*path, known.name))


def _new_inside(given: pa.DataType, known: Type, path: tuple[str, ...]) -> Iterator[NewColumn]:
    given = plain_type(given)
    match known:
        case Struct(fields=members) if pa.types.is_struct(given):
            yield from _new_members(given.fields, members, path)
        case List(element=element) if is_list(given):
            yield from _new_inside(given.value_type, element, (*path, ELEMENT))
        case Map(value=value) if pa.types.is_map(given):
            yield from _new_inside(given.item_type, value, (*path, VALUE))


def wider_columns(incoming: pa.Schema, schema: Schema) -> tuple[NewColumn, ...]:
    """Return the columns and members that are too narrow for the data, and the types that would hold it."""
    return tuple(_wider_members(list(incoming), schema.fields, ()))


def _wider_members(
    incoming: list[pa.Field], fields: tuple[Field, ...], path: tuple[str, ...]
) -> Iterator[NewColumn]:
    siblings = index_fields(fields)
    for given in incoming:
        known = siblings.get(given.name.lower())
        if known is not None:
            yield from _wider_inside(given, known.type, (*path, known.name))


def _wider_inside(field: pa.Field, known: Type, path: tuple[str, ...]) -> Iterator[NewColumn]:
    given = plain_type(field.type)
    match known:
        case Struct(fields=members) if pa.types.is_struct(given):
            yield from _wider_members(given.fields, members, path)
        case List(element=element) if is_list(given):
            yield from _wider_inside(given.value_field, element, (*path, ELEMENT))
        case Map(value=value) if pa.types.is_map(given):
            yield from _wider_inside(given.item_field, value, (*path, VALUE))
        case Primitive() | Decimal():
            leaf = find_leaf(field)
            if leaf is not None and can_widen(known, leaf) and _is_alike(known, leaf):
                yield NewColumn(format_path(path), leaf)


def _is_alike(known: Type, leaf: Type) -> bool:
    """Whether both are whole numbers, or neither: where one is missing, pandas makes floats of the others."""
    return (known in INTEGERS) == (leaf in INTEGERS)


def _type_of(field: pa.Field, path: tuple[str, ...]) -> Type:
    """Return the narrowest type of ours that holds every value of an Arrow field, nullable at every level."""
    given = plain_type(field.type)
    if pa.types.is_struct(given):
        check_names(given.fields, path)
        return Struct(tuple(Field(0, it.name, _type_of(it, (*path, it.name))) for it in given.fields))
    if is_list(given):
        return List(_type_of(given.value_field, (*path, ELEMENT)))
    if pa.types.is_map(given):
        return Map(_type_of(given.key_field, (*path, KEY)), _type_of(given.item_field, (*path, VALUE)))
    named = said_type(field)
    if named.startswith("string collate "):
        why = "strings compare by their bytes; cast it to string first"
        raise UnsupportedTypeError(named, why, path=format_path(path))
    leaf = find_leaf(field)
    if leaf is None:
        reason = f"it is {given}: {why_refused(given)}"
        if pa.types.is_null(given):
            reason = "all its values are null, so it has no type: leave it out"
        raise DataMismatchError(format_path(path), reason)
    return leaf


def find_leaf(field: pa.Field) -> Type | None:
    """Return the narrowest type of ours that holds every value of an Arrow leaf, if there is one."""
    named = find_named(field)
    if named is not None:
        return named
    given = plain_type(field.type)
    if pa.types.is_decimal(given) and given.precision <= _MAX_DIGITS and 0 <= given.scale <= given.precision:
        return Decimal(given.precision, given.scale)
    if pa.types.is_timestamp(given):
        return Primitive("timestamp_ntz" if given.tz is None else "timestamp")
    if pa.types.is_duration(given):
        return parse_type_ddl("interval day to second")[0]
    if given.id == pa.lib.Type_INTERVAL_MONTHS:
        return parse_type_ddl("interval year to month")[0]
    if pa.types.is_fixed_size_binary(given):
        return Primitive("binary")
    name = _LEAVES.get(given)
    return None if name is None else Primitive(name)


def check_names(fields: list[pa.Field], path: tuple[str, ...]) -> None:
    """Raise if two names are the same for Spark."""
    seen: set[str] = set()
    for field in fields:
        if field.name.lower() in seen:
            reason = "the data has more than one column of this name (case does not matter)"
            raise DataMismatchError(format_path((*path, field.name)), reason)
        seen.add(field.name.lower())


def is_list(type_: pa.DataType) -> bool:
    """Whether a type is a list of any kind."""
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    views = (pa.types.is_list_view, pa.types.is_large_list_view)
    return any(test(type_) for test in tests + views)


def plain_type(type_: pa.DataType) -> pa.DataType:
    """Return the type of the values behind dictionaries, run lengths and transparent extensions."""
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return plain_type(type_.value_type)
    if isinstance(type_, pa.BaseExtensionType) and type_.extension_name in _TRANSPARENT:
        return plain_type(type_.storage_type)
    return type_


def plain(array: pa.Array) -> pa.Array:
    """Return the values behind dictionaries, run lengths and transparent extensions."""
    if pa.types.is_dictionary(array.type):
        return plain(_without_views(array).dictionary_decode())
    if pa.types.is_run_end_encoded(array.type):
        return plain(pc.run_end_decode(array))
    if isinstance(array.type, pa.BaseExtensionType) and array.type.extension_name in _TRANSPARENT:
        return plain(array.storage)
    return array


def _without_views(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Give a dictionary whose values are views plain ones: Arrow cannot decode the others."""
    offsets = _VIEWS.get(array.type.value_type)
    if offsets is None:
        return array
    return pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(offsets))
