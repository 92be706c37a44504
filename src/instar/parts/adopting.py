"""What has to be known of a file that others wrote before a table takes it: does it fit, and what is in it.

What the footer leaves open is looked up in the columns that it leaves open, and in no others.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from instar.errors import DataMismatchError
from instar.parts.adopted import BATCH_ROWS, path_value
from instar.parts.conform import Conformer
from instar.parts.foreign import has_nanos, open_foreign
from instar.parts.incoming import is_list, plain, plain_type
from instar.parts.statistics import STATS_BUDGET, fit_budget, integers
from instar.schema import Field, List, Map, Schema, Struct, Type, format_path
from instar.schema.algebra import slots, walk_types
from instar.schema.schema import index_fields
from instar.stats import FieldStats

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from instar.parts.foreign import ForeignFile

__all__ = ["adopted_stats", "check_foreign", "foreign_nanos"]

_FIRST_DATE: Final = date(1582, 10, 15)
_FIRST_TIME: Final = datetime(1900, 1, 1, tzinfo=UTC)
"""From here on all calendars and time zones that Spark has used agree."""


def _stored_fields(foreign: ForeignFile, schema: Schema) -> list[tuple[pa.Field, Field]]:
    """Return the columns of a file, each with the field that has its name."""
    known = index_fields(schema.fields)
    return [(own, known[own.name.lower()]) for own in foreign.schema]


def foreign_nanos(foreign: ForeignFile, schema: Schema) -> tuple[int, ...]:
    """Return the fields, at every level, that a file holds in nanoseconds; of elements, their column."""
    found: list[int] = []

    def walk(given: pa.DataType, type_: Type, owner: int) -> None:
        given = plain_type(given)
        match type_:
            case Struct(fields=members):
                known = index_fields(members)
                for member in given.fields:
                    field = known[member.name.lower()]
                    walk(member.type, field.type, field.id)
            case List(element=element):
                walk(given.value_type, element, owner)
            case Map(key=key, value=value):
                walk(given.key_type, key, owner)
                walk(given.item_type, value, owner)
            case _ if has_nanos(given):
                found.append(owner)

    for own, field in _stored_fields(foreign, schema):
        walk(own.type, field.type, field.id)
    return tuple(dict.fromkeys(found))


def check_foreign(source: pa.NativeFile, foreign: ForeignFile, schema: Schema) -> None:
    """Raise `DataMismatchError` if a value of a file does not fit; only doubtful columns are read."""
    pairs = [pair for pair in _stored_fields(foreign, schema) if _is_doubtful(*pair, foreign)]
    if not pairs:
        return
    layout = pa.schema([own for own, _ in pairs])
    conformer = Conformer(layout, Schema(tuple(field for _, field in pairs)))
    done = 0
    with open_foreign(source) as (file, _):
        for batch in file.iter_batches(BATCH_ROWS, columns=layout.names):
            own = pa.RecordBatch.from_arrays(
                [batch.column(batch.schema.get_field_index(field.name)).cast(field.type) for field in layout],
                schema=layout,
            )
            conformer.apply(own, first_row=done)
            if foreign.old_calendar:
                for field in layout:
                    _check_calendar(field, plain(own.column(field.name)))
            done += batch.num_rows


def adopted_stats(
    foreign: ForeignFile, values: Mapping[int, str | None], schema: Schema, order_by: Sequence[int]
) -> dict[int, FieldStats]:
    """Return what is known of the leaves of a file without reading it."""
    rows = foreign.rows
    believed = {tuple(name.lower() for name in path): stats for path, stats in foreign.stats.items()}
    present = {own.name.lower() for own in foreign.schema}
    found: dict[int, FieldStats] = {}
    for path, leaf in schema.leaves():
        if isinstance(leaf.type, List | Map):
            continue
        if leaf.id in values:
            found[leaf.id] = _told(values[leaf.id], leaf, rows)
        elif path[0].lower() not in present:
            found[leaf.id] = FieldStats(rows, 0)
        elif tuple(name.lower() for name in path) in believed:
            found[leaf.id] = believed[tuple(name.lower() for name in path)]
    return fit_budget(found, schema, order_by, STATS_BUDGET)


def _told(text: str | None, field: Field, rows: int) -> FieldStats:
    if text is None:
        return FieldStats(rows, 0)
    value = integers(pa.array([path_value(text, field).as_py()], path_value(text, field).type))[0].as_py()
    if isinstance(value, str | bool | int):
        return FieldStats(0, 0, value, value)
    return FieldStats(0, 0, str(value), str(value))


def _is_doubtful(own: pa.Field, field: Field, foreign: ForeignFile) -> bool:
    """Whether a column may hold something that its type does not tell."""
    if any(has_nanos(leaf) for leaf in _leaf_types(own.type)) or _has_rules(field.type):
        return True
    if foreign.old_calendar and any(pa.types.is_temporal(leaf) for leaf in _leaf_types(own.type)):
        return True
    known = foreign.stats.get((own.name,))
    return not field.nullable and own.nullable and (known is None or known.nulls != 0)


def _has_rules(type_: Type) -> bool:
    """Whether something inside a type may not be null, or a map may not have a key twice."""
    return any(
        isinstance(inside, Map) or not all(slot.nullable for slot in slots(inside))
        for inside in walk_types(type_)
    )


def _leaf_types(type_: pa.DataType) -> Iterator[pa.DataType]:
    type_ = plain_type(type_)
    if pa.types.is_struct(type_):
        for member in type_.fields:
            yield from _leaf_types(member.type)
    elif pa.types.is_map(type_):
        yield from _leaf_types(type_.key_type)
        yield from _leaf_types(type_.item_type)
    elif is_list(type_):
        yield from _leaf_types(type_.value_type)
    else:
        yield type_


def _check_calendar(field: pa.Field, array: pa.Array) -> None:
    """Raise if a value is so old that the calendar of its writer matters."""
    if pa.types.is_date(array.type):
        early = pc.less(array, pa.scalar(_FIRST_DATE, pa.date32()))
    elif pa.types.is_timestamp(array.type):
        early = pc.less(
            array.cast(pa.timestamp("us", "UTC")), pa.scalar(_FIRST_TIME, pa.timestamp("us", "UTC"))
        )
    elif pa.types.is_nested(array.type):
        raise DataMismatchError(
            format_path((field.name,)),
            "it holds times of the old calendar of Spark 2. Import the file instead",
        )
    else:
        return
    if pc.any(early).as_py():
        reason = "it holds times of long ago in the old calendar of Spark 2. Import the file instead"
        raise DataMismatchError(format_path((field.name,)), reason)
