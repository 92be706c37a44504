"""Values of JSON as Arrow: in the type that a table has for them, or in the one that they have themselves."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from instar.errors import DataMismatchError
from instar.files.text import parse_text
from instar.schema import Field, List, Map, Struct, Type, format_type

__all__ = ["fit_values"]


def fit_values(values: list[Any], type_: Type | None, column: str, where: str) -> pa.Array:
    """Return values of JSON as an array, in a type if there is one; what does not fit is refused."""
    if type_ is None:
        return _natural(values, column, where)
    match type_:
        case Struct(fields=members):
            _check(values, dict, type_, column, where)
            return _struct(values, members, column, where)
        case List(element=element):
            _check(values, list, type_, column, where)
            offsets, items = _flattened(values)
            inside = fit_values(items, element, f"{column}.element", where)
            return pa.ListArray.from_arrays(offsets, inside)
        case Map(key=key, value=value):
            _check(values, dict, type_, column, where)
            pairs = [None if it is None else list(it.items()) for it in values]
            offsets, items = _flattened(pairs)
            keys = fit_values([name for name, _ in items], key, f"{column}.key", where)
            inside = fit_values([it for _, it in items], value, f"{column}.value", where)
            return pa.MapArray.from_arrays(offsets, keys, inside)
    return _leaf(values, type_, column, where)


def _struct(values: list[Any], members: tuple[Field, ...], column: str, where: str) -> pa.Array:
    """Return objects as structs; names are the same in any case of letters, and what is unknown stays."""
    names: dict[str, str] = {}
    for value in values:
        for name in value or ():
            names.setdefault(name.lower(), name)
    known = {member.name.lower(): member.type for member in members}
    arrays = [
        fit_values(
            [None if it is None else it.get(spelled) for it in values],
            known.get(name),
            f"{column}.{spelled}",
            where,
        )
        for name, spelled in names.items()
    ]
    missing = pa.array([value is None for value in values])
    if not arrays:
        return pa.nulls(len(values))
    return pa.StructArray.from_arrays(arrays, names=list(names.values()), mask=missing)


def _leaf(values: list[Any], type_: Type, column: str, where: str) -> pa.Array:
    """Return what values say as text, which all have: numbers as they are written in Python."""
    for row, value in enumerate(values):
        if isinstance(value, dict | list):
            raise _misfit(value, type_, column, where, row)
    texts = [it if it is None or isinstance(it, str) else _said(it) for it in values]
    return parse_text(pa.array(texts, pa.string()), type_, column, where)


def _natural(values: list[Any], column: str, where: str) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        reason = f"its values are not of one type, in {where}: {error}"
        raise DataMismatchError(column, reason) from None


def _check(values: list[Any], kind: type, type_: Type, column: str, where: str) -> None:
    for row, value in enumerate(values):
        if value is not None and not isinstance(value, kind):
            raise _misfit(value, type_, column, where, row)


def _misfit(value: Any, type_: Type, column: str, where: str, row: int) -> DataMismatchError:  # noqa: ANN401
    reason = f"{value!r} is not of its type {format_type(type_)}, in {where}"
    return DataMismatchError(column, reason, row=row, sample=repr(value)[:200])


def _flattened(values: list[Any]) -> tuple[pa.Array, list[Any]]:
    """Return where each list begins, null where there is none, and all their items."""
    offsets: list[int | None] = []
    items: list[Any] = []
    for value in values:
        offsets.append(None if value is None else len(items))
        items.extend(value or ())
    return pa.array([*offsets, len(items)], pa.int32()), items


def _said(value: Any) -> str:  # noqa: ANN401 -- a value of JSON
    return str(value).lower() if isinstance(value, bool) else str(value)
