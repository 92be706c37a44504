"""A stream of rows of any length becomes parts of a good size, one in memory at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from instar.parts.write import USUAL, NewPart, PartLimits, RowOrder, write_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from instar.schema import Schema

__all__ = ["write_parts"]


def write_parts(
    batches: Iterable[pa.RecordBatch],
    schema: Schema,
    order_by: Sequence[int] = (),
    *,
    order: RowOrder = RowOrder.SORT,
    ts: int | None = None,
    limits: PartLimits = USUAL,
) -> Iterator[NewPart]:
    """Yield parts as they fill up; arguments are those of `write_part`. No rows make no parts.

    Where parts are sorted here, each is a run of its own, numbered from 0; otherwise all are run 0.
    """
    splitter = _Splitter(limits.file_bytes, limits.buffer_bytes)
    for number, rows in enumerate(splitter.tables(batches)):
        run = number if order is RowOrder.SORT else 0
        new = write_part(rows, schema, order_by, order=order, run=run, ts=ts, limits=limits)
        splitter.learn(rows.nbytes, new.data.size)
        del rows  # not needed while the caller stores the part
        yield new


class _Splitter:
    """Gathers batches until they make about one file of the target size."""

    def __init__(self, target_bytes: int, buffer_bytes: int) -> None:
        self._target = target_bytes
        self._most = buffer_bytes
        self._limit = min(buffer_bytes, 2 * target_bytes)  # a guess: most rows compress to half and less

    def learn(self, arrow_bytes: int, file_bytes: int) -> None:
        """Expect the next rows to compress as the last ones did."""
        self._limit = min(self._most, self._target * arrow_bytes // max(1, file_bytes))

    def tables(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        gathered: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            for piece in _pieces(batch, max(1, min(self._target, self._most) // 8)):
                gathered.append(piece)
                size += piece.nbytes
                if size >= self._limit:
                    table = pa.Table.from_batches(gathered)
                    gathered, size = [], 0
                    yield table
                    del table
        if gathered:
            yield pa.Table.from_batches(gathered)


def _pieces(batch: pa.RecordBatch, most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Cut a large batch, so that parts come near their target."""
    rows = max(1, batch.num_rows * most_bytes // max(1, batch.nbytes, most_bytes))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)
