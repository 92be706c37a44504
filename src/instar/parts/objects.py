"""Rows of Python objects as Arrow: lists of dicts, and frames of pandas, which may hold any object.

A dict is a struct, or a map where a table has a map. Numbers are marked as *incidental*: nobody chose their
type. All other kinds of data speak Arrow by themselves (`incoming.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import pyarrow as pa

from instar.errors import DataMismatchError
from instar.schema import List, Map, Struct
from instar.schema.algebra import walk_types
from instar.schema.paths import KEY, VALUE
from instar.schema.schema import index_fields

if TYPE_CHECKING:
    from instar.schema import Field, Schema, Type

__all__ = ["are_dicts", "from_dicts", "from_pandas", "is_incidental"]

_INCIDENTAL: Final = b"instar.incidental"
_FAILED_COLUMN: Final = re.compile(r"Conversion failed for column (.*) with type ", re.DOTALL)
_NO_ONE_TYPE: Final = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError)


def are_dicts(data: object) -> TypeGuard[Sequence[Mapping[str, Any]]]:
    """Whether data is a list of dicts, each of them a row."""
    return isinstance(data, list | tuple) and bool(data) and all(isinstance(row, Mapping) for row in data)


def from_dicts(rows: Sequence[Mapping[str, Any]], schema: Schema | None) -> pa.Table:
    """Return dicts as rows; a key that one of them lacks is null there."""
    names = dict.fromkeys(name for row in rows for name in row)
    maps = _maps(schema)
    values = ([row.get(name) for row in rows] for name in names)
    columns = [_column(str(name), own, maps) for name, own in zip(names, values, strict=True)]
    return _incidental(pa.Table.from_arrays(columns, names=[str(name) for name in names]))


def from_pandas(frame: Any, schema: Schema | None) -> pa.Table:  # noqa: ANN401 -- pandas may be absent
    """Return the columns of a pandas frame, or say which of them has no one type."""
    maps = _maps(schema)
    width = range(frame.shape[1])
    at = [i for i in width if str(frame.columns[i]).lower() in maps and str(frame.dtypes.iloc[i]) == "object"]
    others = frame.iloc[:, [i for i in width if i not in at]]
    try:
        columns = pa.Table.from_pandas(others, preserve_index=False).columns
    except _NO_ONE_TYPE as error:
        found = _FAILED_COLUMN.search(str(error.args[-1]))
        raise _no_one_type("?" if found is None else found[1], error.args[0]) from None
    for i in at:
        own = frame.iloc[:, i]
        values = [value if known else None for value, known in zip(own, own.notna(), strict=True)]
        columns.insert(i, _column(str(frame.columns[i]), values, maps))
    return _incidental(pa.Table.from_arrays(columns, names=[str(name) for name in frame.columns]))


def _maps(schema: Schema | None) -> dict[str, Type]:
    """Return the types of the columns of a table that have a map in them, by their names in lower case."""
    known = {} if schema is None else _types(schema.fields)
    return {name: own for name, own in known.items() if any(isinstance(it, Map) for it in walk_types(own))}


def _column(name: str, values: list[Any], maps: Mapping[str, Type]) -> pa.Array:
    known = maps.get(name.lower())
    try:
        if known is None:
            return pa.array(values)
        # The types of keys and values are those of the data: given a type, Arrow would cut 1.5 to 1.
        found = pa.array([_with_entries(value, known) for value in values]).type
        return pa.array(values, _with_maps(found, known))
    except _NO_ONE_TYPE as error:
        raise _no_one_type(name, error) from None


def _with_entries(value: Any, known: Type | None) -> Any:  # noqa: ANN401 -- any object of Python
    """Return a value with lists of entries, of which Arrow finds the type, wherever a table has maps."""
    match known:
        case Struct(fields=members) if isinstance(value, Mapping):
            types = _types(members)
            return {name: _with_entries(own, types.get(str(name).lower())) for name, own in value.items()}
        case List(element=element) if isinstance(value, list | tuple):
            return [_with_entries(own, element) for own in value]
        case Map(value=inside) if isinstance(value, Mapping):
            return [{KEY: key, VALUE: _with_entries(own, inside)} for key, own in value.items()]
        case Map(value=inside) if isinstance(value, list | tuple):
            return [{KEY: key, VALUE: _with_entries(own, inside)} for key, own in value]
    return value


def _with_maps(found: pa.DataType, known: Type | None) -> pa.DataType:
    """Return a type with maps instead of lists of entries."""
    match known:
        case Struct(fields=members) if pa.types.is_struct(found):
            types = _types(members)
            return pa.struct([it.with_type(_with_maps(it.type, types.get(it.name.lower()))) for it in found])
        case List(element=element) if pa.types.is_list(found):
            return pa.list_(_with_maps(found.value_type, element))
        case Map(value=inside) if pa.types.is_list(found) and pa.types.is_struct(found.value_type):
            entry = found.value_type
            return pa.map_(entry.field(KEY).type, _with_maps(entry.field(VALUE).type, inside))
        case Map() if pa.types.is_list(found):  # all of them are empty
            return pa.map_(pa.string(), pa.null())
    return found


def _types(members: tuple[Field, ...]) -> dict[str, Type]:
    return {name: field.type for name, field in index_fields(members).items()}


def _no_one_type(name: str, error: object) -> DataMismatchError:
    return DataMismatchError(name, f"its values are not of one type: {error}. Convert them first")


def _incidental(table: pa.Table) -> pa.Table:
    """Say of numbers that nobody chose their type: 5 may be a double, and 5.0 whole with others missing."""
    fields = [it.with_metadata({_INCIDENTAL: b"1"}) if _is_number(it) else it for it in table.schema]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields))


def _is_number(field: pa.Field) -> bool:
    return bool(pa.types.is_integer(field.type) or pa.types.is_floating(field.type))


def is_incidental(field: pa.Field) -> bool:
    """Whether nobody has chosen the type of some numbers: they go wherever each of them fits."""
    return _INCIDENTAL in (field.metadata or {})
