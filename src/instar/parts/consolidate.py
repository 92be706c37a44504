"""Updates added up: how often each row is there, and the rows of a snapshot.

Rows are equal as they are for Spark's `group by`: null is null, NaN is NaN, -0.0 is 0.0, at every level, and
maps are equal whatever the order of their entries. Of equal rows, the first one stands for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from instar.errors import NegativeCountError, UsageError
from instar.parts.keys import flat_keys
from instar.parts.layout import DIFF, TS, split_updates, whole
from instar.parts.samples import sample_row

if TYPE_CHECKING:
    from instar.schema import Schema

__all__ = ["consolidate", "expand", "snapshot_rows"]

_SAFE_SUM: Final = 2.0**62


def snapshot_rows(updates: pa.Table, schema: Schema) -> pa.Table:
    """Return the rows that are left when all updates are added up, each as often as it is there."""
    rows, _ = split_updates(updates)
    return expand(consolidate(rows.append_column(DIFF, updates.column(DIFF)), schema))


def consolidate(updates: pa.Table, schema: Schema) -> pa.Table:
    """Add up `_diff` of equal rows, of the same `_ts` if there is one, and leave out what adds up to zero.

    The table has the columns of the schema, then `_ts` if times matter, and `_diff`. Rows stay in the
    order of their first appearance.
    """
    updates = updates.combine_chunks()
    keys = []
    for at, field in enumerate(schema.fields):
        keys += flat_keys(whole(updates.column(at)), field.type, maps_as_sets=True)
    if TS in updates.column_names:
        keys.append(whole(updates.column(TS)))
    diffs = whole(updates.column(DIFF))
    _check_sums(diffs)
    firsts, sums = _group(keys, diffs)
    left = np.flatnonzero(sums)
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


def _group(keys: list[pa.Array], diffs: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each group of rows with equal keys, its first row and the sum of its diffs."""
    names = [str(at) for at in range(len(keys))]
    rows = pa.array(np.arange(len(diffs)))
    table = pa.Table.from_arrays([*keys, rows, diffs], names=[*names, "row", "diff"])
    groups = table.group_by(names, use_threads=False).aggregate([("row", "min"), ("diff", "sum")])
    firsts, sums = groups.column("row_min").to_numpy(), groups.column("diff_sum").to_numpy()
    order = np.argsort(firsts)
    return firsts[order], sums[order]


def _check_sums(diffs: pa.Array) -> None:
    """Make sure that no sum can exceed 64 bits, whatever the groups are."""
    if np.abs(diffs.to_numpy().astype(np.float64)).sum() >= _SAFE_SUM:
        raise UsageError(
            "these diffs are too large to be added up in 64 bits: no row can be there that often"
        )
