"""What the tests of parts share: rows as parts and back, and when rows are equal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from instar.parts import DIFF, TS, read_part
from instar.schema import Field, List, Map, Primitive, Schema, Struct, Type
from tests.properties.schema.data import exact, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from random import Random

    from instar.parts import NewPart
    from tests.properties.schema.data import Row, Value

__all__ = [
    "as_bag",
    "group_key",
    "orderable_ids",
    "plain_rows",
    "read_rows",
    "row_group_key",
    "twin",
    "with_updates",
]


def as_bag(rows: Iterable[Any]) -> list[str]:
    """Return rows so that they can be compared bit for bit, whatever their order."""
    return sorted(repr(exact(row)) for row in rows)


def plain_rows(data: pa.RecordBatch | pa.Table, schema: Schema) -> list[Row]:
    """Read the columns of the schema back; there may be others behind them."""
    batches = [data] if isinstance(data, pa.RecordBatch) else data.combine_chunks().to_batches()
    columns = range(len(schema.fields))
    return [row for batch in batches for row in rows_of(batch.select(columns), schema)]


def read_rows(parts: Iterable[NewPart], written: Schema, reader: Schema) -> list[Row]:
    """Read parts, one after the other."""
    found: list[Row] = []
    for new in parts:
        for batch in read_part(new.data, new.part, written, reader):
            batch.validate(full=True)
            found += rows_of(batch, reader)
    return found


def with_updates(batch: pa.RecordBatch, times: Sequence[int], diffs: Sequence[int]) -> pa.RecordBatch:
    """Put times and diffs behind the columns."""
    return pa.RecordBatch.from_arrays(
        [*batch.columns, pa.array(times, pa.int64()), pa.array(diffs, pa.int64())],
        schema=pa.schema(
            [
                *batch.schema,
                pa.field(TS, pa.int64(), nullable=False),
                pa.field(DIFF, pa.int64(), nullable=False),
            ]
        ),
    )


def orderable_ids(fields: tuple[Field, ...]) -> list[int]:
    """Return what a table may be ordered by: columns, and members of structs."""
    found = []
    for field in fields:
        found.append(field.id)
        if isinstance(field.type, Struct):
            found += orderable_ids(field.type.fields)
    return found


# --- equality -------------------------------------------------------------------------------------


def group_key(value: Value, type_: Type) -> object:
    """Return what Spark groups by: zeros without sign, one NaN, and maps without order."""
    if value is None:
        return None
    match type_:
        case Struct(fields=members):
            return tuple(group_key(value[member.id], member.type) for member in members)
        case List(element=element):
            return tuple(group_key(item, element) for item in value)
        case Map(key=key, value=item_type):
            return frozenset((group_key(k, key), group_key(v, item_type)) for k, v in value)
        case Primitive(name="float" | "double"):
            return "nan" if value != value else value + 0.0  # noqa: PLR0124
    return value


def row_group_key(row: Row, schema: Schema) -> object:
    """Return what Spark groups whole rows by."""
    return tuple(group_key(row[field.id], field.type) for field in schema.fields)


def twin(value: Value, type_: Type, random: Random) -> Value:
    """Return a value that is equal to another, but perhaps does not look like it."""
    if value is None:
        return None
    match type_:
        case Struct(fields=members):
            return {member.id: twin(value[member.id], member.type, random) for member in members}
        case List(element=element):
            return [twin(item, element, random) for item in value]
        case Map(key=key, value=item_type):
            pairs = [(twin(k, key, random), twin(v, item_type, random)) for k, v in value]
            return random.sample(pairs, len(pairs))
        case Primitive(name="float" | "double") if value == 0:
            return random.choice((0.0, -0.0))
    return value
