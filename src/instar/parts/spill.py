"""Sorting more rows than fit in memory: pieces are sorted one by one, and wait in files on the local disk."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from instar.errors import StorageError
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
    """Sort rows in pieces. If there are several, they wait in files, which go when the stack is closed."""
    paths: list[Path] = []
    piece: list[pa.RecordBatch] = []
    size = 0

    def spill() -> None:
        try:
            write()
        except OSError as error:
            why = f"{error.strerror or error}. Free some space, or set TMPDIR to another directory"
            raise StorageError(f"sorting rows on the local disk, in {tempfile.gettempdir()}", why) from error

    def write() -> None:
        if not paths:
            folder = Path(spilled.enter_context(tempfile.TemporaryDirectory(prefix="instar-")))
        else:
            folder = paths[0].parent
        paths.append(folder / str(len(paths)))
        table = sort_rows(pa.Table.from_batches(piece), schema, order_by)
        with pa.OSFile(str(paths[-1]), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=_BATCH_ROWS)

    for batch in batches:
        if piece and size + batch.nbytes > most_bytes:
            spill()
            piece, size = [], 0
        piece.append(batch)
        size += batch.nbytes
    if paths:
        spill()
        return [_read_file(path) for path in paths]
    if piece:
        table = sort_rows(pa.Table.from_batches(piece), schema, order_by)
        return [table.to_batches(max_chunksize=_BATCH_ROWS)]
    return []


def _read_file(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
        for at in range(reader.num_record_batches):
            yield reader.get_batch(at)
