"""Rows of any number along a curve: those that are near in several fields come near each other.

Which ranges the curve divides each field into follows from a sample. How the curve goes is in `curve.py`.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final
from zlib import crc32

import pyarrow as pa

from instar.parts.curve import Curve
from instar.parts.layout import locate
from instar.parts.merge import merge_runs
from instar.parts.spill import SORTED_BYTES, spill_runs
from instar.schema import Field, Primitive, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["SAMPLE_ROWS", "cluster_rows", "clustered_run", "sample_rows"]

SAMPLE_ROWS: Final = 200_000
"""How many rows decide where the ranges begin: 200 for each of them."""

_POSITION: Final = Field(0, "_position", Primitive("bigint"), nullable=False)
"""Where on the curve a row lies: a column that travels with the rows while they are sorted."""
_FIRST_RUN: Final = 2**30


def clustered_run(cluster_by: Sequence[int]) -> int:
    """Return the number that runs along a curve over some fields have, and no others."""
    return _FIRST_RUN + crc32(",".join(map(str, cluster_by)).encode()) % 2**29


def sample_rows(batches: Iterable[pa.RecordBatch], rows: int) -> pa.Table:
    """Return rows at equal distances, of so many that there are."""
    step = max(1, rows // SAMPLE_ROWS)
    pieces, skipped = [], 0
    for batch in batches:
        pieces.append(batch.take(pa.array(range(skipped, batch.num_rows, step), pa.int64())))
        skipped = (skipped - batch.num_rows) % step
    return pa.Table.from_batches(pieces)


def cluster_rows(
    batches: Iterable[pa.RecordBatch],
    schema: Schema,
    cluster_by: Sequence[int],
    *,
    sample: pa.Table | None = None,
    most_bytes: int = SORTED_BYTES,
) -> Iterator[pa.RecordBatch]:
    """Yield rows along a curve over some fields of a schema, whose columns come first in the batches.

    The sample has these columns too. Without one, the first rows are it, as many as are sorted at once.
    """
    known = [field_id for field_id in cluster_by if locate(schema.fields, field_id)]
    wider = Schema((_POSITION, *schema.fields))
    with ExitStack() as spilled:
        placed = _placed(batches, schema, known, sample, most_bytes)
        runs = spill_runs(placed, wider, (_POSITION.id,), spilled, most_bytes)
        for table in merge_runs(runs, wider, (_POSITION.id,)):
            for batch in table.to_batches():
                yield batch.drop_columns([_POSITION.name])


def _placed(
    batches: Iterable[pa.RecordBatch],
    schema: Schema,
    cluster_by: Sequence[int],
    sample: pa.Table | None,
    most_bytes: int,
) -> Iterator[pa.RecordBatch]:
    """Put the position on the curve before the columns of each row."""
    held: list[pa.RecordBatch] = []
    curve = None if sample is None else Curve.fit(sample, schema, cluster_by)
    for batch in batches:
        if curve is not None:
            yield _with_position(batch, schema, curve)
            continue
        held.append(batch)
        if sum(one.nbytes for one in held) >= most_bytes:
            curve = Curve.fit(_sample(held), schema, cluster_by)
            yield from (_with_position(one, schema, curve) for one in held)
            held = []
    if held:
        curve = Curve.fit(_sample(held), schema, cluster_by)
        yield from (_with_position(one, schema, curve) for one in held)


def _sample(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    return sample_rows(batches, sum(batch.num_rows for batch in batches))


def _with_position(batch: pa.RecordBatch, schema: Schema, curve: Curve) -> pa.RecordBatch:
    own = pa.Table.from_batches([batch.select(range(len(schema.fields)))])
    positions = curve.positions(own, schema).astype("int64")
    field = pa.field(_POSITION.name, pa.int64(), nullable=False)
    return pa.RecordBatch.from_arrays(
        [pa.array(positions), *batch.columns], schema=pa.schema([field, *batch.schema])
    )
