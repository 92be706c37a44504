"""Reading a part under any schema that may read it: only the columns that are needed, migrated.

Whether a reader may go on at all is decided by `schema.check_reader`; which rows of an update count is
for the caller to say.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Union

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from instar.errors import AdoptedFileError, CorruptTableError, NotFoundError, StorageError, UsageError
from instar.parts.adopted import BATCH_ROWS, AdoptedColumns
from instar.parts.ahead import map_ahead
from instar.parts.foreign import open_foreign
from instar.parts.layout import DIFF, KEY, TS, file_schema, parquet_leaves, update_schema
from instar.parts.needed import needed_columns, needed_fields
from instar.schema import (
    Names,
    Schema,
    plan_migration,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

    from instar.parts.choice import RowChoice
    from instar.parts.probe import Probe
    from instar.state import Part


__all__ = ["AHEAD_BYTES", "ROW", "SMALL_PART", "read_part"]

ROW: Final = "\N{UNIT SEPARATOR}row"
"""The column of positions in the file: no column of a table has a character that cannot be printed."""

SMALL_PART: Final = 1 << 20
"""A file of at most so many bytes is read sooner than threads are handed their work."""
AHEAD_BYTES: Final = 8 * 1024 * 1024
"""Larger files have row groups that are read ahead; smaller ones rarely have more than one."""
_AHEAD_GROUPS: Final = 2

Source = Union[str, "Path", bytes, pa.Buffer, pa.NativeFile, Any]
"""A path, the bytes of a file, or a file that can be read and sought."""


def read_part(  # noqa: PLR0913 -- each is something that a reader may ask for
    source: Source,
    part: Part,
    written: Schema,
    reader: Schema,
    *,
    updates: bool = False,
    ts: int | None = None,
    names: Names = Names.COLUMN,
    choice: RowChoice | None = None,
    probe: Probe | None = None,
    numbered: bool = False,
    ahead: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part, written under one schema, as batches of the reader's schema.

    `source` is a path, the bytes of the file, or an open file. With `updates`, `_ts` and `_diff` follow
    the columns; `ts` is the time of the part's batch, for parts that do not say their own. `choice` leaves
    out rows by their positions, and with `numbered` the positions come last, as `ROW`. With a `probe`, row
    groups that can have none of its keys are not read. With `ahead`, the next row groups of a large local
    file are read while the first is used, which takes the memory of a few. A file that is missing, or not the
    one that `part` speaks of, raises `CorruptTableError`.
    """
    if updates and part.ts_min is None and ts is None:
        raise UsageError("the time of a part without times of its own is that of its batch: give it as ts")
    projected = (needed_fields if part.adopted is None else needed_columns)(written, reader)
    migration = plan_migration(projected, reader, names)
    stored = [name for name in (TS, DIFF) if updates and _is_stored(part, name)]
    columns = [leaf.path for leaf in parquet_leaves(projected)] + stored
    target = update_schema(reader, names, (TS, DIFF) if updates else ())
    if numbered:
        target = target.append(pa.field(ROW, pa.int64(), nullable=False))
    if choice is not None:
        choice.check(part)
    alone = probe is not None or part.size <= SMALL_PART
    with _opened(source, part, alone=alone) as file:
        adopted = None if part.adopted is None else AdoptedColumns(file, part, projected)
        if adopted is None:
            _check_columns(file, projected, stored, part)
        columns = columns if adopted is None else adopted.names
        groups = None if probe is None or adopted is not None else probe.row_groups(file.metadata, written)
        path = source if ahead and isinstance(source, str) and part.size > AHEAD_BYTES else None
        for first, found in _batches(file, columns, part, choice, groups, alone=alone, path=path):
            if adopted is None:
                _check_types(found, projected, stored, part)
            mask = None if choice is None else choice.mask(first, found.num_rows)
            batch = found if mask is None else _filtered(found, mask)
            batch = batch if adopted is None else adopted.conform(batch)
            own = batch.select(range(len(projected.fields)))
            arrays = migration.apply(own).columns
            if updates:
                arrays += [_times(batch, part, ts), _diffs(batch, part)]
            if numbered:
                numbers = np.arange(first, first + found.num_rows)
                arrays += [pa.array(numbers if mask is None else numbers[mask])]
            yield pa.RecordBatch.from_arrays(arrays, schema=target)


def _filtered(batch: pa.RecordBatch, mask: npt.NDArray[np.bool_]) -> pa.RecordBatch:
    """Return the rows of a mask.

    Column by column, because Arrow takes twice as long for a batch as a whole; and NumPy packs bits ten times
    as fast as Arrow makes an array of them.
    """
    bits = pa.py_buffer(np.packbits(mask, bitorder="little"))
    wanted = pa.BooleanArray.from_buffers(pa.bool_(), len(mask), [None, bits])
    columns = [column.filter(wanted) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch.filter(wanted)


def _is_stored(part: Part, name: str) -> bool:
    """Whether the file has the column: only if its values differ."""
    if name == TS:
        return part.ts_min != part.ts_max
    return part.diff_min != part.diff_max


def _times(batch: pa.RecordBatch, part: Part, ts: int | None) -> pa.Array:
    if _is_stored(part, TS):
        return batch.column(TS)
    return _constant(part.ts_min if part.ts_min is not None else ts, batch.num_rows)


def _diffs(batch: pa.RecordBatch, part: Part) -> pa.Array:
    return batch.column(DIFF) if _is_stored(part, DIFF) else _constant(part.diff_min, batch.num_rows)


def _constant(value: int | None, length: int) -> pa.Array:
    return pa.array(np.full(length, value, np.int64))


@contextmanager
def _opened(source: Source, part: Part, *, alone: bool) -> Iterator[pq.ParquetFile]:
    if part.adopted is not None:
        with _opened_adopted(source, part) as file:
            yield file
        return
    if isinstance(source, bytes):
        source = pa.py_buffer(source)
    if isinstance(source, pa.Buffer):
        _check(part, "bytes", part.size, source.size)
        source = pa.BufferReader(source)
    # Buffered: a store far away is asked for all columns of a row group at once. Small files it sends whole.
    buffered = part.size > SMALL_PART and not (alone and isinstance(source, str))
    with _corrupt_if_unreadable(part):
        file = pq.ParquetFile(source, page_checksum_verification=True, pre_buffer=buffered)
    with file:
        _check_file(file.metadata, part)
        yield file


def _check_file(metadata: pq.FileMetaData, part: Part) -> None:
    """Make sure that a file is the one that the part speaks of."""
    _check(part, "rows", part.rows, metadata.num_rows)
    named = (metadata.metadata or {}).get(KEY.encode(), b"nothing")
    if named != part.key.encode():
        shown = named.decode(errors="backslashreplace")
        raise CorruptTableError(f"part {part.key}", f"its file says that it is {shown!r}")


@contextmanager
def _opened_adopted(source: Source, part: Part) -> Iterator[pq.ParquetFile]:
    """Open a file that others wrote, and make sure that it is the one that was adopted."""
    assert part.adopted is not None  # noqa: S101 -- for the type checker
    with ExitStack() as opened:
        with _corrupt_if_unreadable(part):
            if isinstance(source, str):
                source = opened.enter_context(pa.OSFile(source))
            file, footer = opened.enter_context(open_foreign(source))
        if footer != part.adopted.footer or file.metadata.num_rows != part.rows:
            raise AdoptedFileError(part.key, "it is another file than the one that was adopted")
        yield file


def _batches(
    file: pq.ParquetFile,
    columns: list[str],
    part: Part,
    choice: RowChoice | None,
    groups: npt.NDArray[np.bool_] | None,
    *,
    alone: bool,
    path: str | None,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield rows with the position of the first; row groups of which none is chosen are not read.

    If a path is given, the file can be opened there again, to read the next groups meanwhile.
    """
    # Rows come in the pieces that they were written in, which are small enough to hold: many small
    # batches take half as long again.
    sizes = [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]
    starts = [0, *np.cumsum(sizes).tolist()]
    read = [
        at
        for at, size in enumerate(sizes)
        if not (choice is not None and choice.wants_none(starts[at], size)) and (groups is None or groups[at])
    ]
    size = max([1, *sizes]) if part.adopted is None else BATCH_ROWS

    def read_run(own: pq.ParquetFile, run: list[int]) -> Iterator[tuple[int, pa.RecordBatch]]:
        at, end = starts[run[0]] if run else 0, starts[run[-1] + 1] if run else 0
        batches = own.iter_batches(size, row_groups=run, columns=columns, use_threads=not alone)
        while True:
            with _corrupt_if_unreadable(part):
                batch = next(batches, None)
            if batch is None:
                break
            yield at, batch
            at += batch.num_rows
        _check(part, "rows", end, at)  # a damaged page header may look like the end

    def read_group(at: int) -> list[tuple[int, pa.RecordBatch]]:
        with _corrupt_if_unreadable(part):
            own = pq.ParquetFile(
                path, metadata=file.metadata, page_checksum_verification=True, pre_buffer=True
            )
        with own:
            return list(read_run(own, [at]))

    if path is not None and part.adopted is None and len(read) > 1:
        yield from chain.from_iterable(map_ahead(read_group, read, threads=_AHEAD_GROUPS))
    elif len(read) == len(sizes):
        yield from read_run(file, read)
    else:  # one by one, so that positions are known
        for at in read:
            yield from read_run(file, [at])


def _check_columns(file: pq.ParquetFile, projected: Schema, stored: list[str], part: Part) -> None:
    """Look for the columns that will be read."""
    with _corrupt_if_unreadable(part):
        found = {file.schema.column(at).path for at in range(len(file.schema))}
    for path in (*(leaf.path for leaf in parquet_leaves(projected)), *stored):
        if path not in found:
            raise CorruptTableError(f"part {part.key}", f"it has no column {path}")


def _check_types(batch: pa.RecordBatch, projected: Schema, stored: list[str], part: Part) -> None:
    """Compare what was read with what the schema says is there."""
    for found, expected in zip(batch.schema, file_schema(projected, tuple(stored)), strict=True):
        if found.name != expected.name or not _is_same(found.type, expected.type):
            why = f"column {found.name} is {found.type}, and {expected.name} of {expected.type} was written"
            raise CorruptTableError(f"part {part.key}", why)


def _is_same(found: pa.DataType, expected: pa.DataType) -> bool:
    """Compare types by what they hold: Arrow forgets names and nulls of elements that it read a part of."""
    if found.id != expected.id or found.num_fields != expected.num_fields:
        return False
    if pa.types.is_struct(found) and [it.name for it in found] != [it.name for it in expected]:
        return False
    if not found.num_fields:
        return bool(found.equals(expected))
    pairs = ((found.field(at).type, expected.field(at).type) for at in range(found.num_fields))
    return all(_is_same(one, other) for one, other in pairs)


@contextmanager
def _corrupt_if_unreadable(part: Part) -> Iterator[None]:
    """Tell a file that is not what was written from a store that did not answer, which has an errno."""
    try:
        yield
    except (NotFoundError, FileNotFoundError) as error:
        if part.adopted is not None:
            raise AdoptedFileError(part.key, "it is missing", missing=True) from error
        raise CorruptTableError(f"part {part.key}", "its file is missing", missing=True) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if getattr(error, "errno", None) is not None:
            raise StorageError(f"reading part {part.key}", str(error)) from error
        if part.adopted is not None:
            raise AdoptedFileError(part.key, str(error).strip()) from error
        raise CorruptTableError(f"part {part.key}", str(error)) from error


def _check(part: Part, what: str, expected: int, found: int) -> None:
    if expected != found:
        raise CorruptTableError(f"part {part.key}", f"it has {found} {what}, and {expected} were written")
