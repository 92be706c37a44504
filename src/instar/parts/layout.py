"""How the columns of a part lie in its file: leaves, their paths in Parquet, and the two of every update.

A part has the fields of its schema under their physical names, and `_ts` and `_diff` where these are
not the same in every row.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from instar.schema import Field, Names, Schema, Struct, Type, arrow_schema, field_name, paths
from instar.schema.algebra import member_fields, slots

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.schema.algebra import Slot

__all__ = [
    "DIFF",
    "KEY",
    "TS",
    "UPDATE_FIELDS",
    "Leaf",
    "file_schema",
    "flatten_column",
    "flatten_leaves",
    "locate",
    "parquet_leaves",
    "path_to",
    "split_updates",
    "update_schema",
    "whole",
]

KEY: Final = "instar.part"
"""Where the metadata of a file says which part it is: one that lies under another key is not believed."""
TS: Final = "_ts"
DIFF: Final = "_diff"
UPDATE_FIELDS: Final = {
    TS: pa.field(TS, pa.int64(), nullable=False),
    DIFF: pa.field(DIFF, pa.int64(), nullable=False),
}
"""When an update happens, and how often its row is added."""


_STEPS: Final = {
    paths.ELEMENT: "list.element",
    paths.KEY: "key_value.key",
    paths.VALUE: "key_value.value",
}
"""What Parquet calls what is inside a list or a map."""


class Leaf(NamedTuple):
    """A column of Parquet: where it is in the file, what it holds, and whether a list or map is above it."""

    path: str
    type: Type
    repeated: bool


def parquet_leaves(schema: Schema) -> Iterator[Leaf]:
    """Yield the columns of a part in the order of the file."""
    for field in schema.fields:
        yield from _leaves(field.type, field_name(field.id), repeated=False)


def _leaves(type_: Type, path: str, *, repeated: bool) -> Iterator[Leaf]:
    inside = list(slots(type_))
    for slot in inside:
        yield from _leaves(slot.type, f"{path}.{file_step(slot)}", repeated=repeated or slot.field is None)
    if not inside:
        yield Leaf(path, type_, repeated)


def file_step(slot: Slot) -> str:
    """Return the step of a path in a file that leads to something inside a column."""
    return _STEPS[slot.name] if slot.field is None else field_name(slot.field.id)


def flatten_leaves(table: pa.Table, schema: Schema) -> Iterator[tuple[Field, pa.ChunkedArray]]:
    """Yield the leaves that are not inside lists or maps; below a null struct a leaf is null."""
    for at, field in enumerate(schema.fields):
        yield from flatten_column(field, table.column(at))


def flatten_column(field: Field, column: pa.ChunkedArray) -> Iterator[tuple[Field, pa.ChunkedArray]]:
    """Yield the leaves of one column, as `flatten_leaves` does."""
    if isinstance(field.type, Struct):
        for member, child in zip(field.type.fields, column.flatten(), strict=True):
            yield from flatten_column(member, child)
    else:
        yield field, column


def locate(fields: tuple[Field, ...], field_id: int) -> list[int]:
    """Return the positions that lead to a field through structs, or nothing if there is no such field."""
    for at, field in enumerate(fields):
        if field.id == field_id:
            return [at]
        if isinstance(field.type, Struct):
            below = locate(field.type.fields, field_id)
            if below:
                return [at, *below]
    return []


def path_to(fields: tuple[Field, ...], field_id: int) -> tuple[str, ...]:
    """Return the names that lead to a field through structs."""
    names = []
    for at in locate(fields, field_id):
        names.append(fields[at].name)
        fields = tuple(member_fields(fields[at].type))
    return tuple(names)


@lru_cache(maxsize=1024)
def update_schema(schema: Schema, names: Names, updates: tuple[str, ...]) -> pa.Schema:
    """Return the Arrow schema of a table's data with `_ts`, `_diff` or both behind it."""
    return pa.schema([*arrow_schema(schema, names), *(UPDATE_FIELDS[name] for name in updates)])


@lru_cache(maxsize=1024)
def file_schema(schema: Schema, updates: tuple[str, ...]) -> pa.Schema:
    """Return the Arrow schema of a part's file: a member of a struct that may be null may be null itself.

    Arrow has nulls in the members of a null struct, even if they are not null anywhere else, and does not
    write them to a Parquet column that must not have any.
    """
    fields = update_schema(schema, Names.FIELD, updates)
    return pa.schema([_relaxed(field, below_nullable=False) for field in fields])


def _relaxed(field: pa.Field, *, below_nullable: bool) -> pa.Field:
    nullable = field.nullable or below_nullable
    type_ = field.type
    if pa.types.is_struct(type_):
        type_ = pa.struct([_relaxed(member, below_nullable=nullable) for member in type_.fields])
    elif pa.types.is_list(type_):
        type_ = pa.list_(_relaxed(type_.value_field, below_nullable=False))
    elif pa.types.is_map(type_):
        key, value = (_relaxed(part, below_nullable=False) for part in (type_.key_field, type_.item_field))
        type_ = pa.map_(key, value)
    return field.with_type(type_).with_nullable(nullable)


def split_updates(table: pa.Table) -> tuple[pa.Table, dict[str, pa.ChunkedArray]]:
    """Part a table from its `_ts` and `_diff`, where it has them."""
    updates = {name: table.column(name) for name in UPDATE_FIELDS if name in table.column_names}
    return table.drop_columns(list(updates)) if updates else table, updates


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
