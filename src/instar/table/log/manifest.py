"""Reading the metadata of a table's parts: only the columns that are asked for, each object once.

A state knows its chunks and its latest parts; here they become columns over all live parts.
"""

from __future__ import annotations

import threading
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from instar.errors import CorruptTableError, NotFoundError
from instar.schema import parse_type_ddl
from instar.state.chunk import (
    ADOPTED,
    FILES,
    FIXED_GROUPS,
    PLACES,
    TIMES,
    decode_directory,
    decode_group,
    group_name,
)
from instar.state.manifest import columns_of_parts, complete_bounds, concat_columns, no_adopted, with_header
from instar.stats import bounds_columns
from instar.storage.parallel import map_in_threads
from instar.table.log.part_set import PartSet, keep_rows
from instar.table.log.recent import Recent
from instar.table.log.sheets import SheetReader

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from instar.schema import Field, History
    from instar.state import ChunkRef, Place, TableState
    from instar.state.chunk import Directory
    from instar.state.manifest import Columns
    from instar.storage import Blob
    from instar.table.log.part_set import Mask

__all__ = ["ChunkReader", "chunk_bounds", "chunk_refs", "load_parts"]

_CACHED_BYTES: Final = 256 * 1024 * 1024
_CACHED_DIRECTORIES: Final = 64 * 1024 * 1024
"""As they are stored: in memory they take several times as much."""
_READERS: Final = 8


class ChunkReader:
    """Fetches directories and groups of chunks, and keeps the ones used last; chunks never change."""

    def __init__(self, blob: Blob) -> None:
        self._blob = blob
        self._lock = threading.Lock()
        self._directories: Recent[Directory] = Recent(_CACHED_DIRECTORIES)
        self._groups: Recent[pa.RecordBatch] = Recent(_CACHED_BYTES)
        self.bytes_read = 0
        self.sheets = SheetReader(blob)
        """The same for what is retracted by position."""

    def directory(self, ref: ChunkRef) -> Directory:
        """Return what is in a chunk."""
        directory = self._directories.find(ref.key)
        if directory is None:
            (data,) = self._get(ref, [(ref.size - ref.directory_size, ref.directory_size)])
            directory = decode_directory(data, ref)
            self._directories.keep(ref.key, directory, ref.directory_size)
            with self._lock:
                self.bytes_read += len(data)
        return directory

    def groups(self, ref: ChunkRef, names: Iterable[str]) -> Columns:
        """Return the groups of these names that the chunk has, in one request."""
        directory = self.directory(ref)
        wanted = [name for name in names if name in directory.groups]
        found = {name: self._groups.find((ref.key, name)) for name in wanted}
        missing = [name for name, batch in found.items() if batch is None]
        ranges = [(directory.groups[name].offset, directory.groups[name].length) for name in missing]
        for name, data in zip(missing, self._get(ref, ranges) if ranges else (), strict=True):
            batch = decode_group(data, name, directory.groups[name], what=f"manifest chunk {ref.key}")
            found[name] = batch
            self._groups.keep((ref.key, name), batch, batch.nbytes)
            with self._lock:
                self.bytes_read += len(data)
        return {name: batch for name, batch in found.items() if batch is not None}

    def has(self, ref: ChunkRef, names: Iterable[str]) -> bool:
        """Whether the groups of these names need not be fetched, because they are known or not there."""
        directory = self._directories.find(ref.key)
        return directory is not None and all(
            (ref.key, name) in self._groups for name in names if name in directory.groups
        )

    def _get(self, ref: ChunkRef, ranges: Sequence[tuple[int, int]]) -> Sequence[bytes]:
        """Fetch pieces of a chunk, which a state refers to and which therefore must be there."""
        try:
            return self._blob.get_ranges(ref.key, ranges)
        except NotFoundError as error:
            what, why = f"manifest chunk {ref.key}", "its object is missing"
            raise CorruptTableError(what, why, missing=True) from error


def load_parts(
    reader: ChunkReader,
    state: TableState,
    fields: Sequence[Field] = (),
    groups: Sequence[str] = (PLACES, TIMES, FILES),
    without: Collection[str] = frozenset(),
) -> PartSet:
    """Return the live parts of a state, with the fixed groups that are asked for and the bounds of fields.

    Bounds have the types of the state's latest schema, which the fields must be of. The chunks whose keys are
    in `without` are left out; none of them may hold a part that was removed after it was written.
    """
    refs = chunk_refs(state)
    removed = state.unfolded()
    groups = (*groups, ADOPTED) if FILES in groups else groups  # a key alone does not tell how to read it
    fixed = tuple(dict.fromkeys((*((PLACES,) if removed else ()), FILES, *groups)))

    def load(ref: ChunkRef) -> Columns:
        return chunk_columns(reader, ref, state.history, fields, fixed)

    chosen = [ref for ref in refs if ref.key not in without]
    names = (*fixed, *(group_name(field.id) for field in fields))
    fetched = any(not reader.has(ref, names) for ref in chosen)
    pieces = map_in_threads(load, chosen, threads=_READERS) if fetched else [load(ref) for ref in chosen]
    tail = [placed for batch in state.tail for placed in batch.placed()]
    pieces.append(columns_of_parts(tail, state.history, fields, fixed))
    rows = pa.concat_arrays([piece[FILES].column("rows") for piece in pieces])
    kept = [name for name in names if name in groups or name == PLACES or name not in FIXED_GROUPS]
    columns = concat_columns([{name: piece[name] for name in kept} for piece in pieces])
    left = [np.full(ref.parts - len(ref.removed), ref.key not in without) for ref in refs]
    mask = np.concatenate([*left, np.ones(len(tail), dtype=bool)])
    live = _live(columns, removed)
    if live is not None:
        columns, rows = keep_rows(columns, live), rows.filter(pa.array(live))
        mask = np.delete(mask, np.flatnonzero(mask)[~live])
    return PartSet({name: columns[name] for name in kept if name in groups or name != PLACES}, rows, mask)


def chunk_refs(state: TableState) -> list[ChunkRef]:
    """Return all chunks of a state, in the order of their parts."""
    return [*state.chunks, *(chunk for batch in state.tail for chunk in batch.chunks)]


def chunk_bounds(
    reader: ChunkReader, refs: Sequence[ChunkRef], history: History, fields: Sequence[Field]
) -> Columns:
    """Return the bounds of fields over the parts of each chunk together, from directories alone."""
    if not refs:
        return {}
    directories = map_in_threads(reader.directory, refs, threads=_READERS)
    return {group_name(field.id): _united(field, refs, directories, history) for field in fields}


def _united(
    field: Field, refs: Sequence[ChunkRef], directories: Sequence[Directory], history: History
) -> pa.RecordBatch:
    """Lay out the bounds of a field over each chunk; neighbours that store it alike are laid out at once."""
    name = group_name(field.id)
    pieces = []

    def layout(chunk: tuple[ChunkRef, Directory]) -> tuple[str | None, int]:
        entry = chunk[1].groups.get(name)
        return None if entry is None else entry.type, chunk[1].schema_id

    for (type_, schema_id), group in groupby(zip(refs, directories, strict=True), layout):
        chunks = list(group)
        files = pa.record_batch({"rows": pa.array([ref.rows for ref, _ in chunks], pa.int64())})
        united = None
        if type_ is not None:
            stats = [directory.groups[name].bounds for _, directory in chunks]
            united = bounds_columns(stats, parse_type_ddl(type_)[0])
        pieces.append(complete_bounds(united, field, files, history, schema_id))
    return pa.concat_batches(pieces)


def chunk_columns(
    reader: ChunkReader, ref: ChunkRef, history: History, fields: Sequence[Field], fixed: Sequence[str]
) -> Columns:
    """Return the live rows of one chunk, with bounds in the types of today."""
    names = [group_name(field.id) for field in fields]
    found = reader.groups(ref, [*fixed, *names])
    schema_id = reader.directory(ref).schema_id
    if ADOPTED in fixed and ADOPTED not in found:
        found[ADOPTED] = no_adopted(ref.parts)
    columns = with_header({name: found[name] for name in fixed}, ref.header)
    for field, name in zip(fields, names, strict=True):
        columns[name] = complete_bounds(found.get(name), field, columns[FILES], history, schema_id)
    if ref.removed:
        live = np.ones(ref.parts, dtype=bool)
        live[list(ref.removed)] = False
        columns = keep_rows(columns, live)
    return columns


def _live(columns: Columns, removed: frozenset[Place]) -> Mask | None:
    """Tell which parts are not at these places; None if there are no such places."""
    if not removed:
        return None
    batches, ordinals = (columns[PLACES].column(name).to_numpy() for name in ("batch", "ordinal"))
    candidates = np.flatnonzero(np.isin(batches, [place.batch for place in removed]))
    live = np.ones(len(batches), dtype=bool)
    for row in candidates:
        live[row] = (int(batches[row]), int(ordinals[row])) not in removed
    return live
