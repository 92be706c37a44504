"""Looking rows up by the values of some columns, in process: few parts are opened, and little is read.

Which parts may have such rows is known from their statistics and their first and last rows; which row groups,
from the file. Where nothing is known, because a table has no order or lost it, more is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from instar.errors import UsageError
from instar.parts.layout import path_to
from instar.schema import Map, Primitive, Schema, Struct, arrow_schema, arrow_type, format_path, format_type
from instar.table.read.locate_keys import Keys, key_schema, narrow_plan
from instar.table.read.rows import merge_updates, read_updates, read_written
from instar.table.read.snapshot import check_fence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.schema import Field
    from instar.table.read.snapshot import SnapshotPlan
    from instar.table.services import Services

__all__ = ["lookup_rows"]


def lookup_rows(services: Services, plan: SnapshotPlan, key: object) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a snapshot that have the given values in some columns, under the reader's schema."""
    keys = _keys(plan, key)
    shown = plan.reader.schema
    own = {field.id for field in keys.schema.fields}
    # The columns of the key come first, so that they are easy to find.
    wider = Schema((*keys.schema.fields, *(field for field in shown.fields if field.id not in own)))
    check_fence(plan.state, plan.reader._replace(schema=wider))
    order = [wider.fields.index(field) for field in shown.fields]
    plan = narrow_plan(services.chunks, plan, keys.probe)
    for written in plan.scan.written(plan.state.history):
        for batch in read_written(services.blob, written, wider, probe=keys.probe):
            found = keys.matching(batch)
            if len(found):
                yield batch.take(found).select(order)
    if plan.merge:
        history = plan.state.history
        updates = read_updates(services.blob, plan.merge.written(history), history.latest)
        for batch in merge_updates(updates, history.latest, plan.as_of, wider, keys):
            yield batch.select(order)


def _keys(plan: SnapshotPlan, key: object) -> Keys:
    """Read what a caller looks for: values by column, or the values of the table's key in their order."""
    whole = plan.reader.whole
    values = _by_field(plan, key)
    schema = key_schema(whole, list(values))
    arrays = [_column(field, values, plan.state.name) for field in schema.fields]
    return Keys(pa.Table.from_arrays(arrays, schema=arrow_schema(schema)), schema, list(values))


def _by_field(plan: SnapshotPlan, key: object) -> dict[int, Any]:
    """Return the values that are looked for, by the id of their field."""
    state, whole = plan.state, plan.reader.whole
    if isinstance(key, Mapping):
        if not key:
            raise UsageError(f"lookup in `{state.name}` needs a column and its value, such as {{'id': 7}}")
        named = {whole.load_column(column): value for column, value in key.items()}
        if len(named) < len(key):
            raise UsageError(f"a column is named twice in {', '.join(key)}")
        for field in named:
            if isinstance(field.type, Map):
                raise UsageError(f"cannot look up rows by `{field.name}`: maps cannot be compared")
        return {field.id: value for field, value in named.items()}
    if not state.key:
        raise UsageError(
            f"`{state.name}` has no key: say which columns are looked up, such as lookup({{'id': 7}})"
        )
    several = isinstance(key, Sequence) and not isinstance(key, str | bytes) and len(state.key) > 1
    values = list(key) if several and isinstance(key, Sequence) else [key]
    if len(values) != len(state.key):
        names = ", ".join(format_path(path_to(state.history.latest.fields, it)) for it in state.key)
        raise UsageError(
            f"the key of `{state.name}` is {names}: give a value for each, or a dict of column and value"
        )
    return dict(zip(state.key, values, strict=True))


def _column(field: Field, values: Mapping[int, Any], table: str) -> pa.Array:
    """Return the one value of a top-level column; members that are not looked for are null."""
    if field.id not in values and isinstance(field.type, Struct):
        members = [_column(member, values, table) for member in field.type.fields]
        return pa.StructArray.from_arrays(members, fields=list(arrow_type(field.type)))
    value = values.get(field.id)
    target = arrow_type(field.type)
    try:
        return _parsed(str(value), target) if _is_text(value, field) else _exact(value, target)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise UsageError(
            f"cannot look up {value!r} in `{table}`: `{field.name}` is {format_type(field.type)} ({error})"
        ) from None


def _exact(value: object, target: pa.DataType) -> pa.Array:
    """Return a value as a column of a type; Arrow would cut fractions off."""
    made = pa.array([value], target)
    if pa.types.is_integer(target) and made[0].as_py() != value:
        raise ValueError("it is not a whole number")
    return made


def _is_text(value: object, field: Field) -> bool:
    """Whether a value is written as text, of a column that holds something else."""
    holds_text = isinstance(field.type, Primitive) and field.type.name in {"string", "binary"}
    return isinstance(value, str) and not holds_text


def _parsed(text: str, target: pa.DataType) -> pa.Array:
    """Read a number, a date or a time from text; a time without a zone is in UTC."""
    written = pa.array([text.strip()], pa.string())
    if pa.types.is_timestamp(target) and target.tz is not None:
        try:
            return written.cast(pa.timestamp("us")).cast(target)
        except pa.ArrowInvalid:
            return written.cast(target)  # it names its zone
    return written.cast(target)
