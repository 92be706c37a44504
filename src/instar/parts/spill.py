"""Sorting more rows than fit in memory: pieces are sorted one by one, and wait in files on the local disk."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from instar.parts.sort import sort_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import ExitStack

    from instar.schema import Schema

__all__ = ["SORTED_BYTES", "spill_runs"]

SORTED_BYTES: Final = 256 * 1024 * 1024
"""How much Arrow memory is sorted at once."""

_BATCH_ROWS: Final = 65_536


def spill_runs(
    batches: Iterable[pa.RecordBatch],
    schema: Schema,
    order_by: Sequence[int],
    spilled: ExitStack,
    most_bytes: int = SORTED_BYTES,
) -> list[Iterable[pa.RecordBatch]]:
    """Sort rows in pieces; all but the last wait in files, which are removed when the stack is closed."""
    runs: list[Iterable[pa.RecordBatch]] = []
    piece: list[pa.RecordBatch] = []
    folder: Path | None = None
    for batch in batches:
        if piece and sum(one.nbytes for one in piece) + batch.nbytes > most_bytes:
            if folder is None:
                folder = Path(spilled.enter_context(tempfile.TemporaryDirectory(prefix="instar-")))
            path = folder / str(len(runs))
            table = sort_rows(pa.Table.from_batches(piece), schema, order_by)
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table, max_chunksize=_BATCH_ROWS)
            runs.append(_read_file(path))
            piece = []
        piece.append(batch)
    if piece:
        table = sort_rows(pa.Table.from_batches(piece), schema, order_by)
        runs.append(table.to_batches(max_chunksize=_BATCH_ROWS))
    return runs


def _read_file(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
        for at in range(reader.num_record_batches):
            yield reader.get_batch(at)
