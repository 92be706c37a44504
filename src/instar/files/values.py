"""Values of Arrow as people and programs read them: as JSON, and as text.

Times are in ISO 8601, in UTC where they are instants; bytes are hexadecimal; decimals keep all their digits.
"""

from __future__ import annotations

import json
import math
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["is_number", "json_rows", "json_value", "text_rows", "text_value"]


def is_number(type_: pa.DataType) -> bool:
    """Whether values of a type are read from the right, digit below digit."""
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def json_rows(batch: pa.RecordBatch | pa.Table) -> Iterator[dict[str, Any]]:
    """Yield rows as JSON can say them; of columns that share a name, the last counts."""
    names = batch.schema.names
    for values in _rows(batch):
        yield dict(zip(names, values, strict=True))


def text_rows(batch: pa.RecordBatch | pa.Table) -> Iterator[list[str | None]]:
    """Yield rows as texts; null stays None."""
    for values in _rows(batch):
        yield [None if value is None else text_value(value) for value in values]


def _rows(batch: pa.RecordBatch | pa.Table) -> Iterator[list[Any]]:
    columns = [
        [json_value(value, field.type) for value in column.to_pylist()]
        for column, field in zip(batch.columns, batch.schema, strict=True)
    ]
    yield from ([column[row] for column in columns] for row in range(batch.num_rows))


def json_value(value: Any, type_: pa.DataType) -> Any:  # noqa: ANN401 -- one line for each kind
    """Return a value of Arrow as JSON can say it."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _named(value)
        case datetime():
            return _moment(value)
        case date():
            return value.isoformat()
        case bytes():
            return value.hex()
        case dict():
            members = {field.name: field.type for field in type_.fields}
            return {name: json_value(member, members[name]) for name, member in value.items()}
        case list() if pa.types.is_map(type_):
            return {
                str(text_value(json_value(key, type_.key_type))): json_value(item, type_.item_type)
                for key, item in value
            }
        case list():
            return [json_value(item, type_.value_type) for item in value]
    return str(value)


def text_value(value: Any) -> str:  # noqa: ANN401 -- a value of JSON
    """Return a value of JSON as text: nested ones as JSON."""
    match value:
        case str():
            return value
        case bool():
            return str(value).lower()
        case dict() | list():
            return json.dumps(value, ensure_ascii=False)
    return str(value)


def _named(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _moment(value: datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")
