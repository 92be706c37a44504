"""One part: rows in the layout of a schema become the bytes of a Parquet file and what is known of them.

How a stream of any length is cut into parts is in `split.py`; where the bytes go is the caller's business.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from instar.errors import UsageError
from instar.parts.dictionaries import dictionary_columns
from instar.parts.layout import (
    DIFF,
    KEY,
    TS,
    UPDATE_FIELDS,
    file_schema,
    file_step,
    parquet_leaves,
    split_updates,
)
from instar.parts.nested import open_slots
from instar.parts.rows import encode_limits, encode_row
from instar.parts.sort import sort_indices
from instar.parts.statistics import STATS_BUDGET, compute_stats, present_fields
from instar.schema import Names, Primitive, Schema, field_name, plan_migration
from instar.state import Part

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from instar.parts.layout import Leaf
    from instar.schema import Type
    from instar.stats import FieldStats

__all__ = ["ROW_GROUP_BYTES", "ROW_GROUP_ROWS", "USUAL", "NewPart", "PartLimits", "RowOrder", "write_part"]

MIB: Final = 1024 * 1024

ROW_GROUP_ROWS: Final = 1024 * 1024
ROW_GROUP_BYTES: Final = 64 * MIB
"""Of Arrow memory, which is some 16 to 32 MiB in the file: a part of 128 MiB has a handful of row groups.

So Spark can divide a part among tasks and skip inside it, a reader holds little at once, and a column of
a row group is still read in one long request.
"""

_LONG_BYTES: Final = MIB
"""A column that has a longer value gets no dictionary and no bounds in Parquet.

Either would copy it several times, only to leave it out: neither takes more than a few kilobytes.
"""
_FLOATS: Final = (Primitive("float"), Primitive("double"))


class RowOrder(Enum):
    """In which order rows are written, and so what the parts say of it."""

    SORT = "sort"
    """Each part is sorted here, and is a run of its own."""
    SORTED = "sorted"
    """The rows come in order, and all parts together are one run."""
    NONE = "none"
    """The rows are written as they come, and the parts say that they are not ordered."""


class PartLimits(NamedTuple):
    """How large things may become."""

    file_bytes: int = 128 * MIB
    """The size that parts should have: one task of Spark reads 128 MiB unless told otherwise."""
    buffer_bytes: int = 256 * MIB
    """The Arrow memory that is gathered for a part at most.

    A process that sorts and writes parts takes about four times as much, however long the stream is: the
    rows exist twice for a moment, then once beside their order and their file. Rows that compress to less
    than half make parts smaller than they should be; with more memory they can be larger.
    """
    stats_bytes: int = STATS_BUDGET
    """What the statistics of a part may take of the metadata."""
    bounded: tuple[int, ...] = ()
    """The fields whose statistics stay even so, beside those that rows are sorted by."""


USUAL: Final = PartLimits()


class NewPart(NamedTuple):
    """A part that is not stored yet: the bytes of its file, and its metadata."""

    data: pa.Buffer
    part: Part
    present: frozenset[int]
    """The fields, at every level, that have a value in some row."""


def write_part(
    table: pa.Table,
    schema: Schema,
    order_by: Sequence[int] = (),
    *,
    order: RowOrder = RowOrder.SORT,
    run: int = 0,
    ts: int | None = None,
    limits: PartLimits = USUAL,
    key: str = "",
) -> NewPart:
    """Write rows as one part, whose file says under which key it will be stored.

    The table has the columns of the schema in their order, as `conform` makes them; `_ts` and `_diff`
    (64-bit integers) may follow. A time or diff that is the same in all rows is not written but recorded
    in the part. `ts` is the time of all rows, if there is no `_ts`; without either it is the batch's.
    """
    if table.num_rows == 0:
        raise UsageError("a part needs at least one row")
    rows, updates = split_updates(table)
    present = present_fields(rows, schema)
    stats = compute_stats(rows, schema, (*order_by, *limits.bounded), limits.stats_bytes)
    long = frozenset(_long_columns(rows, schema))
    spans = {name: _span(column) for name, column in updates.items()}
    stored = {name: column for name, column in updates.items() if spans[name][0] != spans[name][1]}
    physical = plan_migration(schema, schema, Names.FIELD).apply(rows)
    for name, column in stored.items():
        physical = physical.append_column(UPDATE_FIELDS[name], column)
    indices = None
    if order is RowOrder.SORT:
        physical = physical.combine_chunks()
        del table, rows, updates  # now there is a copy, and the caller may have dropped the original
        indices = sort_indices(physical, schema, order_by)
    if order is RowOrder.NONE:
        first, last = encode_limits(stats, physical.num_rows, schema, order_by)
    else:
        least, greatest = (0, physical.num_rows - 1) if indices is None else _ends(indices)
        first = encode_row(physical, least, schema, order_by, greatest=False)
        last = encode_row(physical, greatest, schema, order_by, greatest=True)
    sink = pa.BufferOutputStream()
    dictionaries = dictionary_columns(physical, indices, schema, long)
    with _open_file(sink, file_schema(schema, tuple(stored)), schema, stats, long, dictionaries) as writer:
        for group in _row_groups(physical, indices):
            writer.write_table(group.cast(writer.schema), row_group_size=group.num_rows)
        writer.add_key_value_metadata({KEY: key})
    data = sink.getvalue()
    ts_min, ts_max = spans.get(TS, (ts, ts))
    diff_min, diff_max = spans.get(DIFF, (1, 1))
    part = Part(
        key,
        physical.num_rows,
        data.size,
        run=run,
        ordered=order is not RowOrder.NONE,
        ts_min=ts_min,
        ts_max=ts_max,
        diff_min=diff_min,
        diff_max=diff_max,
        first_row=first,
        last_row=last,
        stats=stats,
    )
    return NewPart(data, part, present)


def _open_file(
    sink: pa.BufferOutputStream,
    layout: pa.Schema,
    schema: Schema,
    stats: dict[int, FieldStats],
    long: frozenset[str],
    dictionaries: list[str],
) -> pq.ParquetWriter:
    leaves = [leaf for leaf in parquet_leaves(schema) if leaf.path not in long]
    updates = [name for name in layout.names if name in UPDATE_FIELDS]
    return pq.ParquetWriter(
        sink,
        layout,
        compression="zstd",
        use_dictionary=dictionaries + updates,
        # Bounds in Parquet leave NaN out, and for Spark it is greater than any of them.
        write_statistics=list(_with_bounds(leaves, stats)) + updates,
        write_page_index=True,
        write_page_checksum=True,
        use_compliant_nested_type=True,
        # As Spark stores them: byte arrays take it nearly twice as long to read.
        store_decimal_as_integer=True,
        version="2.6",  # timestamps are microseconds in 64 bits, never INT96
    )


def _long_columns(rows: pa.Table, schema: Schema) -> Iterator[str]:
    """Yield the paths of the columns of Parquet that have a very long value."""
    for at, field in enumerate(schema.fields):
        for chunk in rows.column(at).chunks:
            yield from _long(field.type, chunk, field_name(field.id))


def _long(type_: Type, array: pa.Array, path: str) -> Iterator[str]:
    if array.nbytes <= _LONG_BYTES:
        return
    for slot, inside in open_slots(type_, array):
        yield from _long(slot.type, inside, f"{path}.{file_step(slot)}")
    is_text = pa.types.is_string(array.type) or pa.types.is_binary(array.type)
    if is_text and (pc.max(pc.binary_length(array)).as_py() or 0) > _LONG_BYTES:
        yield path


def _own_name(leaf: Leaf) -> str:
    """Return the name of a leaf, below all that it is a member of."""
    return leaf.path.rpartition(".")[2]


def _with_bounds(leaves: Sequence[Leaf], stats: dict[int, FieldStats]) -> Iterator[str]:
    """Yield the columns that Parquet may keep bounds of: all but floats that hold NaN, or may hold it."""
    without_nan = {field_name(field_id) for field_id, known in stats.items() if known.nans == 0}
    for leaf in leaves:
        if leaf.type not in _FLOATS or (not leaf.repeated and _own_name(leaf) in without_nan):
            yield leaf.path


def _row_groups(table: pa.Table, indices: pa.Array | None) -> Iterator[pa.Table]:
    """Cut rows into groups, in order; only one group is copied at a time."""
    rows = min(ROW_GROUP_ROWS, max(1, ROW_GROUP_BYTES * table.num_rows // max(1, table.nbytes)))
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows) if indices is None else table.take(indices.slice(start, rows))


def _ends(indices: pa.Array) -> tuple[int, int]:
    return indices[0].as_py(), indices[-1].as_py()


def _span(column: pa.ChunkedArray) -> tuple[int, int]:
    found = pc.min_max(column)
    return found["min"].as_py(), found["max"].as_py()
