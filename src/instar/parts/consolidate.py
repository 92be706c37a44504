"""Updates added up: how often each row is there, and the rows of a snapshot.

Rows are equal as they are for Spark's `group by`: null is null, NaN is NaN, -0.0 is 0.0, at every level, and
maps are equal whatever the order of their entries. Of equal rows, the first one stands for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from instar.errors import NegativeCountError, UsageError
from instar.parts.keys import arrange, column_keys
from instar.parts.layout import DIFF, TS, split_updates, whole
from instar.parts.samples import sample_row
from instar.schema import Primitive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from instar.parts.keys import Column
    from instar.schema import Schema

__all__ = ["consolidate", "expand", "snapshot_rows"]

_SAFE_SUM: Final = 2.0**62


def snapshot_rows(
    updates: pa.Table, schema: Schema, wanted: Callable[[pa.Table], pa.ChunkedArray] | None = None
) -> pa.Table:
    """Return the rows that are left when all updates are added up, each as often as it is there.

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
    _check_sums(diffs)
    found = arrange(updates.num_rows, _columns(updates, schema))
    groups = found.groups()
    if len(groups) == 0:
        return updates
    sums = np.add.reduceat(diffs[found.order], groups)
    firsts = np.minimum.reduceat(found.order, groups)
    left = np.flatnonzero(sums)
    left = left[np.argsort(firsts[left])]
    kept = updates.take(pa.array(firsts[left]))
    at = kept.schema.get_field_index(DIFF)
    return kept.set_column(at, kept.schema.field(at), pa.array(sums[left]))


def expand(counted: pa.Table) -> pa.Table:
    """Return each row as often as its `_diff` says, without `_diff`; a negative count is an error."""
    counts = counted.column(DIFF).to_numpy()
    if (counts < 0).any():
        at = int(np.argmax(counts < 0))
        raise NegativeCountError(sample_row(counted.drop_columns([DIFF]), at), int(counts[at]))
    rows = counted.drop_columns([DIFF])
    if (counts == 1).all():
        return rows
    return rows.take(pa.array(np.repeat(np.arange(len(counts)), counts)))


def _columns(updates: pa.Table, schema: Schema) -> Iterator[Column]:
    """Yield what makes rows equal."""
    for at, field in enumerate(schema.fields):
        yield column_keys(whole(updates.column(at)), field.type, maps_as_sets=True)
    if TS in updates.column_names:
        yield column_keys(whole(updates.column(TS)), Primitive("bigint"))


def _check_sums(diffs: npt.NDArray[np.int64]) -> None:
    """Make sure that no sum can exceed 64 bits, whatever the groups are."""
    if np.abs(diffs.astype(np.float64)).sum() >= _SAFE_SUM:
        raise UsageError(
            "these diffs are too large to be added up in 64 bits: no row can be there that often"
        )
