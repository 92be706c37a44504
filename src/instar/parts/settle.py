"""Settling: rows that were retracted by value, where both the row and its retraction are at hand.

The row then says itself when it is gone, and the retraction is no more: a reader has nothing left to add up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from instar.parts.consolidate import SAFE_SUM
from instar.parts.keys import arrange, column_keys
from instar.parts.layout import DIFF, TS, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from instar.schema import Schema

    Mask = npt.NDArray[np.bool_]

__all__ = ["settle_runs"]


def settle_runs(tables: Iterable[pa.Table], schema: Schema, gone: str) -> Iterator[pa.Table]:
    """Settle sorted updates that come piece by piece. `gone` is the column of the time when a row is gone.

    The rows that are equal to the last one of a piece wait for the next, so that equal rows come together.
    """
    waiting: pa.Table | None = None
    for table in tables:
        piece = table if waiting is None else pa.concat_tables([waiting, table])
        if not piece.num_rows:
            continue
        piece = piece.combine_chunks()
        groups = _groups(piece, schema)
        last = np.flatnonzero(groups != groups[-1])
        cut = int(last[-1]) + 1 if len(last) else 0
        if cut:
            yield _settle(piece.slice(0, cut), groups[:cut], gone)
        waiting = piece.slice(cut)
    if waiting is not None and waiting.num_rows:
        yield _settle(waiting, _groups(waiting, schema), gone)


def _groups(table: pa.Table, schema: Schema) -> npt.NDArray[np.int64]:
    """Return a number for each row; those of equal rows are equal."""
    columns = (
        column_keys(whole(table.column(at)), field.type, maps_as_sets=True)
        for at, field in enumerate(schema.fields)
    )
    return arrange(table.num_rows, columns).ranks()


def _settle(table: pa.Table, groups: npt.NDArray[np.int64], gone: str) -> pa.Table:
    """Give rows the times of their retractions, the first to be added the first, and leave these out."""
    diffs = whole(table.column(DIFF)).to_numpy()
    if (diffs > 0).all():
        return table
    times = whole(table.column(TS)).to_numpy()
    ends = whole(table.column(gone))
    here = ends.is_null().to_numpy(zero_copy_only=False)
    settled = np.isin(groups, groups[diffs < 0])
    # A row that is there several times at once is added up with its equals, if numbers reach that far.
    summed = settled & np.isin(groups, groups[np.abs(diffs) != 1])
    settled &= ~summed
    summed &= 2 * np.abs(diffs[summed].astype(np.float64)).sum() < SAFE_SUM
    added = _numbered(np.flatnonzero(settled & (diffs == 1) & here), groups, times)
    taken = _numbered(np.flatnonzero(settled & (diffs == -1)), groups, times)
    pairs = [(row, taken[key]) for key, row in added.items() if key in taken]
    # What is taken before it was added was added elsewhere: it is not known which of the equals is meant.
    unclear = {groups[row] for row, other in pairs if times[row] > times[other]}
    pairs = [(row, other) for row, other in pairs if groups[row] not in unclear]
    found = np.where(here, 0, ends.fill_null(0).to_numpy())
    known = ~here
    left = ~summed
    if pairs:
        rows, others = (np.array(side, dtype=np.int64) for side in zip(*pairs, strict=True))
        found[rows] = times[others]
        known[rows] = True
        left[others] = False
        left[rows[times[rows] == times[others]]] = False  # it was there at no time
    at = table.schema.get_field_index(gone)
    paired = table.set_column(at, table.schema.field(at), pa.array(found, mask=~known))
    return _with_sums(paired, left, _sums(groups, times, diffs, found, known, summed), gone)


class _Sums(NamedTuple):
    """What equal rows add up to at each time: one of them, the time, and the sum, which is not zero."""

    rows: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]
    diffs: npt.NDArray[np.int64]


def _sums(
    groups: npt.NDArray[np.int64],
    times: npt.NDArray[np.int64],
    diffs: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    ended: Mask,
    chosen: Mask,
) -> _Sums:
    """Add up some updates by row and time; a row that is gone by position is taken back when it is gone."""
    own, over = np.flatnonzero(chosen), np.flatnonzero(chosen & ended)
    rows = np.concatenate([own, over])
    at = np.concatenate([times[own], ends[over]])
    change = np.concatenate([diffs[own], -diffs[over]])
    if not len(rows):
        return _Sums(rows, at, change)
    order = np.lexsort((at, groups[rows]))
    rows, at, change = rows[order], at[order], change[order]
    same = (np.diff(groups[rows]) == 0) & (np.diff(at) == 0)
    starts = np.concatenate([[0], np.flatnonzero(~same) + 1])
    # All sums of a row stand where its first update stood, so that what is sorted stays so.
    _, group = np.unique(groups[rows], return_inverse=True)
    firsts = np.full(group.max() + 1, len(groups), dtype=np.int64)
    np.minimum.at(firsts, group, rows)
    sums = np.add.reduceat(change, starts)
    some = sums != 0
    return _Sums(firsts[group][starts][some], at[starts][some], sums[some])


def _with_sums(table: pa.Table, left: Mask, sums: _Sums, gone: str) -> pa.Table:
    """Return the rows that are left, and sums in place of others."""
    kept = table.filter(pa.array(left))
    if not len(sums.rows):
        return kept
    added = table.take(pa.array(sums.rows))
    for name, values in ((TS, sums.times), (DIFF, sums.diffs), (gone, None)):
        at = added.schema.get_field_index(name)
        column = pa.nulls(len(sums.rows), pa.int64()) if values is None else pa.array(values)
        added = added.set_column(at, added.schema.field(at), column)
    place = np.concatenate([np.flatnonzero(left), sums.rows])
    time = np.concatenate([np.zeros(kept.num_rows, dtype=np.int64), sums.times])
    return pa.concat_tables([kept, added]).take(pa.array(np.lexsort((time, place))))


def _numbered(
    rows: npt.NDArray[np.int64], groups: npt.NDArray[np.int64], times: npt.NDArray[np.int64]
) -> dict[tuple[int, int], int]:
    """Return rows by their group and their number in it, in the order of their times."""
    ordered = rows[np.lexsort((times[rows], groups[rows]))]
    own = groups[ordered]
    starts = np.searchsorted(own, own)
    return {
        (int(group), int(number)): int(row)
        for group, number, row in zip(own, np.arange(len(own)) - starts, ordered, strict=True)
    }
