"""Sorted runs become one: rows of any number of runs in one order, a few batches in memory at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from instar.parts.sort import arrange_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from instar.schema import Schema

__all__ = ["merge_runs"]

TOGETHER_BYTES: Final = 64 * 1024 * 1024
"""How much of all runs is put together and sorted at once; it is copied a few times meanwhile."""
_LEAST_BYTES: Final = 64 * 1024
"""Of each run; a round of less would not be worth it."""


def merge_runs(
    runs: Iterable[Iterable[pa.RecordBatch]], schema: Schema, order_by: Sequence[int] = ()
) -> Iterator[pa.Table]:
    """Yield the rows of sorted runs, sorted; of equal rows, one of the earliest run comes first.

    A run is batches whose rows are in order, with the columns of the schema, then `_ts` and `_diff` if they
    matter. One batch of each run is held at most, and of these only some rows are put together at a time.
    Runs that lie apart are passed on without sorting.
    """
    iterators = [iter(run) for run in runs]
    most = max(_LEAST_BYTES, TOGETHER_BYTES // max(1, len(iterators)))
    heads = [_Head(batches, most) for batches in iterators]
    while live := [head for head in heads if head.fill()]:
        ends = arrange_rows(pa.concat_tables([head.ends() for head in live]), schema, order_by).ranks()
        firsts, lasts = ends[::2], ends[1::2]
        nearest = int(np.argmin(lasts))  # all of its rows can go: later ones of any run are not less
        taking = [live[at] for at in np.flatnonzero(firsts <= lasts[nearest])]
        if len(taking) == 1:
            yield taking[0].drop(taking[0].rows.num_rows)
        else:
            yield _merge(taking, taking.index(live[nearest]), schema, order_by)


class _Head:
    """The rows of a run that come next: so many bytes of them, about."""

    def __init__(self, batches: Iterator[pa.RecordBatch], most_bytes: int) -> None:
        self._batches = batches
        self._most_bytes = most_bytes
        self._later = pa.table({})
        self._step = 0
        self.rows = pa.table({})

    def fill(self) -> bool:
        """Make sure that there are rows, and return whether there are."""
        while self.rows.num_rows == 0:
            if self._later.num_rows == 0:
                batch = next(self._batches, None)
                if batch is None:
                    return False
                self._later = pa.Table.from_batches([batch])
                self._step = max(1, batch.num_rows * self._most_bytes // max(1, batch.nbytes))
            self.rows = self._later.slice(0, self._step)
            self._later = self._later.slice(self._step)
        return True

    def ends(self) -> pa.Table:
        """Return the first and the last row."""
        return self.rows.take([0, self.rows.num_rows - 1])

    def drop(self, count: int) -> pa.Table:
        """Take the first rows away, and return them."""
        taken, self.rows = self.rows.slice(0, count), self.rows.slice(count)
        return taken


def _merge(heads: list[_Head], nearest: int, schema: Schema, order_by: Sequence[int]) -> pa.Table:
    """Take the rows that are not greater than the last row of one head from all of them, in order."""
    together = pa.concat_tables([head.rows for head in heads]).combine_chunks()
    ends = np.cumsum([head.rows.num_rows for head in heads])
    found = arrange_rows(together, schema, order_by)
    ranks = found.ranks()
    going = ranks <= ranks[ends[nearest] - 1]
    for head, flags in zip(heads, np.split(going, ends[:-1]), strict=True):
        head.drop(int(np.count_nonzero(flags)))
    return together.take(pa.array(found.order[: np.count_nonzero(going)]))
