"""Metadata of parts as columns: laid out from values, completed for a younger schema, put together.

The groups are those of `chunk.py`. Bounds have the types of one schema: older bounds are widened to
it, and a field that a part was written without is null in all its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from instar.schema import Field, History, List, Map, Schema
from instar.state.chunk import ADOPTED, FILES, FIXED_GROUPS, PLACES, ROWS, TIMES, group_name
from instar.stats import FieldStats, bounds_columns, cast_bounds, null_bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from instar.state.parts import BatchHeader, Part, PlacedPart

__all__ = [
    "Columns",
    "columns_of_parts",
    "complete_bounds",
    "concat_columns",
    "no_adopted",
    "stats_fields",
    "with_header",
]

Columns = dict[str, pa.RecordBatch]


def stats_fields(schema: Schema) -> Iterator[Field]:
    """Yield the fields that have statistics: leaves that hold single values."""
    return (leaf for _, leaf in schema.leaves() if not isinstance(leaf.type, List | Map))


def columns_of_parts(
    parts: Sequence[PlacedPart],
    history: History,
    fields: Iterable[Field] | None = None,
    groups: Iterable[str] = FIXED_GROUPS,
) -> Columns:
    """Lay parts out in columns: some fixed groups, and bounds in the types of the latest schema.

    Without `fields`, there are bounds of all fields.
    """
    columns = {name: _fixed(name, *_LISTS[name](parts)) for name in groups}
    known = {placed.header.schema_id: frozenset[int]() for placed in parts}
    for schema_id in known:
        known[schema_id] = frozenset(history.schemas[schema_id].field_ids())
    for field in stats_fields(history.latest) if fields is None else fields:
        stats = [
            part.stats.get(field.id) if field.id in known[header.schema_id] else FieldStats(part.rows, 0)
            for header, _, part in parts
        ]
        columns[group_name(field.id)] = bounds_columns(stats, field.type)
    return columns


def no_adopted(parts: int) -> pa.RecordBatch:
    """Return the group of a chunk that has left it out: no part is an adopted file."""
    return _fixed(ADOPTED, [None] * parts)


def complete_bounds(
    bounds: pa.RecordBatch | None, field: Field, files: pa.RecordBatch, history: History, schema_id: int
) -> pa.RecordBatch:
    """Bring a field's bounds from a chunk of an older schema to the field's type of today.

    A chunk has the bounds of every field that there was: one that it lacks did not exist, and is null.
    """
    if bounds is not None:
        return cast_bounds(bounds, field.type)
    if field.id in frozenset(history.schemas[schema_id].field_ids()):
        return bounds_columns([None] * files.num_rows, field.type)
    return null_bounds(files.column("rows"), field.type)


def with_header(columns: Columns, header: BatchHeader | None) -> Columns:
    """Fill in what a chunk of one batch leaves to its reference."""
    if header is None:
        return columns
    facts = {
        "batch": header.seqno,
        "lower": header.lower,
        "upper": header.upper,
        "schema_id": header.schema_id,
    }
    return {
        name: _constant(batch, facts) if name in (PLACES, TIMES) else batch for name, batch in columns.items()
    }


def concat_columns(pieces: Sequence[Columns]) -> Columns:
    """Put the same groups of several pieces together."""
    return {name: pa.concat_batches([piece[name] for piece in pieces]) for name in pieces[0]}


def _encode_adopted(part: Part) -> bytes | None:
    return None if part.adopted is None else msgspec.msgpack.encode(part.adopted)


_LISTS: Final[Mapping[str, Callable[[Sequence[PlacedPart]], tuple[list[Any], ...]]]] = {
    PLACES: lambda placed: (
        [own.header.seqno for own in placed],
        [own.ordinal for own in placed],
        [own.part.run for own in placed],
        [own.part.ordered for own in placed],
    ),
    TIMES: lambda placed: (
        [own.header.lower for own in placed],
        [own.header.upper for own in placed],
        [own.header.schema_id for own in placed],
        [own.part.ts_min for own in placed],
        [own.part.ts_max for own in placed],
        [own.part.diff_min for own in placed],
        [own.part.diff_max for own in placed],
    ),
    FILES: lambda placed: (
        [own.part.key for own in placed],
        [own.part.rows for own in placed],
        [own.part.size for own in placed],
    ),
    ROWS: lambda placed: (
        [own.part.first_row for own in placed],
        [own.part.last_row for own in placed],
    ),
    ADOPTED: lambda placed: ([_encode_adopted(own.part) for own in placed],),
}
"""The columns of each fixed group."""


def _fixed(name: str, *lists: list[Any]) -> pa.RecordBatch:
    schema = FIXED_GROUPS[name]
    arrays = [pa.array(values, field.type) for values, field in zip(lists, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _constant(batch: pa.RecordBatch, facts: dict[str, int]) -> pa.RecordBatch:
    arrays = [
        pa.array(np.full(batch.num_rows, facts[field.name]), field.type) if field.name in facts else column
        for field, column in zip(batch.schema, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)
