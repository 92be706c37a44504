"""Updates added up: how often each row is there, and the rows of a snapshot.

Rows are equal as they are for Spark's `group by`: null is null, NaN is NaN, -0.0 is 0.0, at every level, and
maps are equal whatever the order of their entries. Of equal rows, the first one stands for all.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from instar.errors import CountOverflowError, NegativeCountError
from instar.parts.keys import arrange, column_keys
from instar.parts.layout import DIFF, TS, split_updates, whole
from instar.parts.samples import sample_row
from instar.schema import Primitive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from instar.parts.keys import Column
    from instar.schema import Schema

__all__ = ["MOST_COPIES", "consolidate", "expand", "group_rows", "snapshot_rows"]

MOST_COPIES: Final = 1 << 40
"""How often a snapshot shows a row at most: nobody could read through more."""

SAFE_SUM: Final = 2.0**62
_PIECE: Final = 1 << 20
"""How many copies of a row are made at once: a row may be there more often than memory could hold."""


def snapshot_rows(
    updates: pa.Table, schema: Schema, wanted: Callable[[pa.Table], pa.ChunkedArray] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that are left when all updates are added up, each as often as it is there.

    `wanted` tells which of them to return. The counts of others do not matter, and cannot be right where
    parts that hold none of the wanted rows were left out.
    """
    rows, _ = split_updates(updates)
    counted = consolidate(rows.append_column(DIFF, updates.column(DIFF)), schema)
    return expand(counted if wanted is None else counted.filter(wanted(counted)))


def consolidate(updates: pa.Table, schema: Schema) -> pa.Table:
    """Add up `_diff` of equal rows, of the same `_ts` if there is one, and leave out what adds up to zero.

    The table has the columns of the schema, then `_ts` if times matter, and `_diff`. Rows stay in the
    order of their first appearance.
    """
    updates = updates.combine_chunks()
    diffs = whole(updates.column(DIFF)).to_numpy()
    found = arrange(updates.num_rows, _columns(updates, schema))
    groups = found.groups()
    if len(groups) == 0:
        return updates
    firsts = np.minimum.reduceat(found.order, groups)
    ordered = diffs[found.order]
    sums = np.add.reduceat(ordered, groups)
    if np.abs(diffs.astype(np.float64)).sum() >= SAFE_SUM:
        _check_sums(updates, ordered, groups, firsts)
    left = np.flatnonzero(sums)
    left = left[np.argsort(firsts[left])]
    kept = updates.take(pa.array(firsts[left]))
    at = kept.schema.get_field_index(DIFF)
    return kept.set_column(at, kept.schema.field(at), pa.array(sums[left]))


def group_rows(rows: pa.Table, schema: Schema) -> npt.NDArray[np.int64]:
    """Return a number for each row, from 0: equal rows have the same."""
    rows = rows.combine_chunks()
    return arrange(rows.num_rows, _columns(rows, schema)).ranks()


def expand(counted: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield each row as often as its `_diff` says, without `_diff`; a negative count is an error."""
    counts = counted.column(DIFF).to_numpy()
    rows = counted.drop_columns([DIFF])
    if (counts < 0).any():
        at = int(np.argmax(counts < 0))
        raise NegativeCountError(sample_row(rows, at), int(counts[at]))
    if (counts > MOST_COPIES).any():
        at = int(np.argmax(counts > MOST_COPIES))
        raise CountOverflowError(sample_row(rows, at), int(counts[at]))
    many = np.flatnonzero(counts > _PIECE)
    few = np.where(counts > _PIECE, 0, counts)
    once = bool((counts == 1).all())
    yield from (rows if once else rows.take(pa.array(np.repeat(np.arange(len(few)), few)))).to_batches()
    for row in many:
        (piece,) = rows.take(pa.array(np.full(_PIECE, row))).combine_chunks().to_batches()
        whole_pieces, rest = divmod(int(counts[row]), _PIECE)
        yield from repeat(piece, whole_pieces)
        yield piece.slice(0, rest)


def _columns(updates: pa.Table, schema: Schema) -> Iterator[Column]:
    """Yield what makes rows equal."""
    for at, field in enumerate(schema.fields):
        yield column_keys(whole(updates.column(at)), field.type, maps_as_sets=True)
    if TS in updates.column_names:
        yield column_keys(whole(updates.column(TS)), Primitive("bigint"))


def _check_sums(
    updates: pa.Table,
    ordered: npt.NDArray[np.int64],
    groups: npt.NDArray[np.int64],
    firsts: npt.NDArray[np.int64],
) -> None:
    """Raise if the sum of a group exceeds 64 bits: halves of 32 bits are added up without loss."""
    high = np.add.reduceat(ordered >> 32, groups)
    low = np.add.reduceat(ordered & 0xFFFF_FFFF, groups)
    carried = high + (low >> 32)
    wrong = np.flatnonzero((carried < -(2**31)) | (carried >= 2**31))
    if len(wrong):
        at = wrong[0]
        count = (int(high[at]) << 32) + int(low[at])
        row = sample_row(updates.drop_columns([DIFF]), int(firsts[at]))
        raise NegativeCountError(row, count) if count < 0 else CountOverflowError(row, count)
