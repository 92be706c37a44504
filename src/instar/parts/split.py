"""A stream of rows of any length becomes parts of a good size, one in memory at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from instar.parts.write import USUAL, NewPart, PartLimits, RowOrder, write_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from instar.schema import Schema

__all__ = ["write_parts"]


def write_parts(
    batches: Iterable[pa.RecordBatch],
    schema: Schema,
    order_by: Sequence[int] = (),
    *,
    order: RowOrder = RowOrder.SORT,
    run: int = 0,
    ts: int | None = None,
    limits: PartLimits = USUAL,
    key: Callable[[int], str] = lambda _: "",
) -> Iterator[NewPart]:
    """Yield parts as they fill up; arguments are those of `write_part`. No rows make no parts.

    `key` gives the part of each number, from 0, its key.
    Where parts are sorted here, each is a run of its own, numbered from `run`; otherwise all are that run.
    """
    splitter = _Splitter(limits.file_bytes, limits.buffer_bytes)
    for number, gathered in enumerate(splitter.gather(batches)):
        own = run + number if order is RowOrder.SORT else run
        size = sum(batch.nbytes for batch in gathered)
        new = write_part(
            _drain(gathered), schema, order_by, order=order, run=own, ts=ts, limits=limits, key=key(number)
        )
        splitter.learn(size, new.data.size)
        yield new
        del new  # before more rows are gathered


class _Splitter:
    """Gathers batches until they make about one file of the target size."""

    def __init__(self, target_bytes: int, buffer_bytes: int) -> None:
        self._target = target_bytes
        self._most = buffer_bytes
        self._limit = min(buffer_bytes, 2 * target_bytes)  # a guess: most rows compress to half and less

    def learn(self, arrow_bytes: int, file_bytes: int) -> None:
        """Expect the next rows to compress as the last ones did."""
        self._limit = min(self._most, self._target * arrow_bytes // max(1, file_bytes))

    def gather(self, batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
        """Yield the batches of each part, for the caller to drain."""
        gathered: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            for piece in _pieces(batch, max(1, min(self._target, self._most) // 8)):
                gathered.append(piece)
                size += piece.nbytes
                if size >= self._limit:
                    yield gathered
                    gathered, size = [], 0
        if gathered:
            yield gathered


def _drain(batches: list[pa.RecordBatch]) -> pa.Table:
    """Return batches as a table that nobody else holds on to."""
    table = pa.Table.from_batches(batches)
    batches.clear()
    return table


def _pieces(batch: pa.RecordBatch, most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Cut a large batch, so that parts come near their target."""
    rows = max(1, batch.num_rows * most_bytes // max(1, batch.nbytes, most_bytes))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)
