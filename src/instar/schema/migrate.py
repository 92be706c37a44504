"""Migrating Arrow data from the schema it was written under to the schema it is read with.

Fields are matched by id and found by position; deleted ones are left out, added ones are null, and
widened ones are cast. What does not change is passed on without a copy, sliced or not.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar, overload

import pyarrow as pa
import pyarrow.compute as pc

from instar.errors import IncompatibleSchemaError, UsageError
from instar.schema.algebra import member_fields, walk_fields
from instar.schema.arrow import Names, arrow_field, arrow_schema, arrow_type
from instar.schema.migration_type import MigrationType
from instar.schema.rules import ChangeKind, compare
from instar.schema.schema import Schema
from instar.schema.types import Field, List, Map, Struct, Type

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Migration", "migrate", "plan_migration"]

Data = TypeVar("Data", pa.RecordBatch, pa.Table, pa.StructArray, pa.ChunkedArray)


class _Leaf:
    """A value without members: the same, or cast to a wider type."""

    def __init__(self, new: Type, names: Names) -> None:
        self.target = arrow_type(new, names)

    def apply(self, array: pa.Array) -> pa.Array:
        return array if array.type == self.target else array.cast(self.target)


class _Members:
    """The fields of a struct or of a whole batch: for each, where it comes from and how it changes."""

    def __init__(self, old: Sequence[Field], new: Sequence[Field], names: Names) -> None:
        position = {field.id: at for at, field in enumerate(old)}
        self.fields = [arrow_field(field, names) for field in new]
        self.sources = [position.get(field.id) for field in new]
        self.steps = [
            None if source is None else _step(old[source].type, field.type, names)
            for source, field in zip(self.sources, new, strict=True)
        ]
        self.in_place = self.sources == list(range(len(old)))

    def apply(self, arrays: Sequence[pa.Array], length: int) -> list[pa.Array]:
        return [
            pa.nulls(length, field.type) if step is None or source is None else step.apply(arrays[source])
            for field, source, step in zip(self.fields, self.sources, self.steps, strict=True)
        ]


class _StructStep:
    def __init__(self, old: Struct, new: Struct, names: Names) -> None:
        self.members = _Members(old.fields, new.fields, names)
        self.target = arrow_type(new, names)

    def apply(self, array: pa.StructArray) -> pa.Array:
        before = [array.field(at) for at in range(array.type.num_fields)]
        after = self.members.apply(before, len(array))
        if _untouched(array, self.target, before, after):
            return array
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(after, fields=self.members.fields, mask=mask)


class _ListStep:
    def __init__(self, old: List, new: List, names: Names) -> None:
        self.element = _step(old.element, new.element, names)
        self.target = arrow_type(new, names)

    def apply(self, array: pa.ListArray) -> pa.Array:
        if len(array) == 0:
            return array if array.type.equals(self.target) else pa.array([], self.target)
        offsets, start, length = _rebase(array)
        before = array.values.slice(start, length)
        after = self.element.apply(before)
        if _untouched(array, self.target, [before], [after]):
            return array
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(offsets, after, type=self.target, mask=mask)


class _MapStep:
    def __init__(self, old: Map, new: Map, names: Names) -> None:
        self.key = _step(old.key, new.key, names)
        self.value = _step(old.value, new.value, names)
        self.target = arrow_type(new, names)

    def apply(self, array: pa.MapArray) -> pa.Array:
        if len(array) == 0:
            return array if array.type.equals(self.target) else pa.array([], self.target)
        offsets, start, length = _rebase(array)
        before = [array.keys.slice(start, length), array.items.slice(start, length)]
        after = [self.key.apply(before[0]), self.value.apply(before[1])]
        if _untouched(array, self.target, before, after):
            return array
        mask = array.is_null() if array.null_count else None
        return pa.MapArray.from_arrays(offsets, *after, type=self.target, mask=mask)


_Step = _Leaf | _StructStep | _ListStep | _MapStep


class Migration:
    """The way from one schema to another, computed once and applied to any amount of data."""

    def __init__(self, old: Schema, new: Schema, names: Names = Names.COLUMN) -> None:
        violations = tuple(
            change
            for change in compare(MigrationType.start(old), new)
            if not change.permitted and change.kind is not ChangeKind.REORDERED
        )
        if violations:
            raise IncompatibleSchemaError(None, violations)
        self._layout = arrow_schema(old)
        self._target = arrow_schema(new, names)
        self._members = _Members(old.fields, new.fields, names)

    def apply(self, data: Data) -> Data:
        """Migrate a batch, table or array of structs; its columns are in the order of the old schema."""
        if isinstance(data, pa.ChunkedArray):
            chunks = [self.apply(chunk) for chunk in data.chunks]
            return pa.chunked_array(chunks, type=pa.struct(list(self._target)))
        self._check_layout(data)
        if isinstance(data, pa.StructArray):
            before = [data.field(at) for at in range(len(self._layout))]
            after = self._members.apply(before, len(data))
            if _untouched(data, pa.struct(list(self._target)), before, after):
                return data
            mask = data.is_null() if data.null_count else None
            return pa.StructArray.from_arrays(after, fields=list(self._target), mask=mask)
        if isinstance(data, pa.Table):
            return self._apply_to_table(data)
        after = self._members.apply(data.columns, data.num_rows)
        return pa.RecordBatch.from_arrays(after, schema=self._target)

    def _apply_to_table(self, table: pa.Table) -> pa.Table:
        columns = []
        members = zip(self._members.fields, self._members.sources, self._members.steps, strict=True)
        for field, source, step in members:
            if source is None or step is None:
                chunks = [pa.nulls(table.num_rows, field.type)]
            else:
                chunks = [step.apply(chunk) for chunk in table.column(source).chunks]
            columns.append(pa.chunked_array(chunks, type=field.type))
        return pa.Table.from_arrays(columns, schema=self._target)

    def _check_layout(self, data: pa.RecordBatch | pa.Table | pa.StructArray) -> None:
        found = pa.struct(list(data.schema)) if not isinstance(data, pa.StructArray) else data.type
        expected = pa.struct(list(self._layout))
        if not _same_layout(found, expected):
            msg = f"the data does not have the layout of its schema: expected {expected}, found {found}"
            raise UsageError(msg)


@lru_cache(maxsize=4096)
def plan_migration(old: Schema, new: Schema, names: Names = Names.COLUMN) -> Migration:
    """Compute a migration, or find the one computed before."""
    return Migration(old, new, names)


@overload
def migrate(data: Data, old: Schema, new: Schema, names: Names = ...) -> Data: ...
@overload
def migrate(data: pa.Array, old: Type, new: Type, names: Names = ...) -> pa.Array: ...
def migrate(
    data: pa.RecordBatch | pa.Table | pa.Array | pa.ChunkedArray,
    old: Schema | Type,
    new: Schema | Type,
    names: Names = Names.COLUMN,
) -> pa.RecordBatch | pa.Table | pa.Array | pa.ChunkedArray:
    """Migrate a batch, table or struct array between schemas, or any array between types."""
    if isinstance(old, Schema) and isinstance(new, Schema):
        return plan_migration(old, new, names).apply(data)
    if isinstance(old, Schema) or isinstance(new, Schema):
        msg = "migrate between two schemas or between two types, not between one and the other"
        raise UsageError(msg)
    free = 1 + max(
        (field.id for type_ in (old, new) for field in walk_fields(tuple(member_fields(type_)))), default=0
    )
    whole = [Schema((Field(free, "value", type_),)) for type_ in (old, new)]
    batch = pa.RecordBatch.from_arrays([data], names=["value"])
    return plan_migration(whole[0], whole[1], names).apply(batch).column(0)


def _step(old: Type, new: Type, names: Names) -> _Step:
    match old, new:
        case Struct(), Struct():
            return _StructStep(old, new, names)
        case List(), List():
            return _ListStep(old, new, names)
        case Map(), Map():
            return _MapStep(old, new, names)
    return _Leaf(new, names)


def _rebase(array: pa.ListArray | pa.MapArray) -> tuple[pa.Array, int, int]:
    """Return offsets that start at zero, and the span of the child values that they cover.

    The values of a sliced list are those of the whole list: only its offsets show the slice.
    """
    offsets = array.offsets
    start, end = offsets[0].as_py(), offsets[-1].as_py()
    if start or offsets.offset:
        offsets = pc.subtract(offsets, pa.scalar(start, offsets.type))
    return offsets, start, end - start


def _untouched(array: pa.Array, target: pa.DataType, before: list[pa.Array], after: list[pa.Array]) -> bool:
    """Whether a nested array can be passed on: every child is the very object that went in."""
    same = len(before) == len(after) and all(old is new for old, new in zip(before, after, strict=True))
    return same and array.type.equals(target)


def _same_layout(found: pa.DataType, expected: pa.DataType) -> bool:
    """Compare types by shape: names and nullability are for the schema to say."""
    if found.id != expected.id or found.num_fields != expected.num_fields:
        return False
    if not found.num_fields:
        return bool(found == expected)
    return all(_same_layout(found.field(at).type, expected.field(at).type) for at in range(found.num_fields))
