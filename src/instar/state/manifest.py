"""Metadata of parts as columns: laid out from values, completed for a younger schema, put together.

The groups are those of `chunk.py`. Bounds have the types of one schema: older bounds are widened to
it, and a field that a part was written without is null in all its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa

from instar.schema import Field, History, List, Map, Schema
from instar.state.chunk import ADOPTED, FILES, FIXED_GROUPS, PLACES, ROWS, TIMES, group_name
from instar.stats import FieldStats, bounds_columns, cast_bounds, null_bounds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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
    parts: Sequence[PlacedPart], history: History, fields: Iterable[Field] | None = None
) -> Columns:
    """Lay parts out in columns, with bounds in the types of the latest schema: of all fields, or of some."""
    values = [placed.part for placed in parts]
    headers = [placed.header for placed in parts]
    columns = {
        PLACES: _fixed(
            PLACES,
            [header.seqno for header in headers],
            [placed.ordinal for placed in parts],
            [part.run for part in values],
            [part.ordered for part in values],
        ),
        TIMES: _fixed(
            TIMES,
            [header.lower for header in headers],
            [header.upper for header in headers],
            [header.schema_id for header in headers],
            [part.ts_min for part in values],
            [part.ts_max for part in values],
            [part.diff_min for part in values],
            [part.diff_max for part in values],
        ),
        FILES: _fixed(
            FILES,
            [part.key for part in values],
            [part.rows for part in values],
            [part.size for part in values],
        ),
        ROWS: _fixed(ROWS, [part.first_row for part in values], [part.last_row for part in values]),
        ADOPTED: _fixed(ADOPTED, [_encode_adopted(part) for part in values]),
    }
    known = {header.schema_id: frozenset[int]() for header in headers}
    for schema_id in known:
        known[schema_id] = frozenset(history.schemas[schema_id].field_ids())
    for field in stats_fields(history.latest) if fields is None else fields:
        stats = [
            part.stats.get(field.id) if field.id in known[header.schema_id] else FieldStats(part.rows, 0)
            for part, header in zip(values, headers, strict=True)
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
