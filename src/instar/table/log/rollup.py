"""Rollups: a whole state in one object, so that nobody has to replay a table's log from its beginning.

The parts since the last rollup become a chunk, small chunks are merged as they pile up, and all other
chunks are shared with the rollup before. Retractions go into sheets likewise. A rollup only saves work:
without it the log says the same.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace as replace_struct

from instar.state import Start, decode_rollup, encode_rollup
from instar.state.chunk import FIXED_GROUPS, PLACES, encode_chunk
from instar.state.manifest import columns_of_parts, concat_columns, stats_fields, with_header
from instar.state.parts import Place
from instar.storage import put_if_missing
from instar.storage.frame import decode_frame, encode_frame
from instar.table.layout import chunk_key, rollup_key
from instar.table.log.manifest import chunk_columns
from instar.table.log.sheets import SheetWriter, fold_sheets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from instar.schema import History
    from instar.state import ChunkRef, PlacedPart, TableState
    from instar.state.manifest import Columns
    from instar.storage import Blob
    from instar.table.log.manifest import ChunkReader
    from instar.table.services import Services

__all__ = ["MAX_CHUNK_PARTS", "ROLLUP_EVERY", "ChunkWriter", "load_rollup", "write_rollup"]

ROLLUP_EVERY: Final = 64
"""A rollup is written after this many commits."""

MAX_CHUNK_PARTS: Final = 8192
"""A chunk that has reached this many parts is not merged any more."""

_MERGE_FACTOR: Final = 4
"""A chunk is merged with the one after it until it is this many times larger."""


def write_rollup(services: Services, state: TableState, write_id: str, *, clean: bool = False) -> TableState:
    """Write the rollup of a pinned state, and return the same state with all its parts in chunks.

    If somebody else has just written it, theirs counts: other chunks than those it refers to are orphans.
    With `clean`, all chunks are written again, without metadata of removed parts and dropped fields.
    """
    chunks = _Folding(
        ChunkWriter(services, state.table_id, write_id), services.chunks, state, clean=clean
    ).fold()
    start = Start(state.seqno, rollup=True)
    sheets = fold_sheets(SheetWriter(services.blob, state.table_id, write_id), services.chunks.sheets, state)
    rolled = replace(state, start=start, chunks=chunks, sheets=sheets, tail=(), folded=state.seqno)
    data = encode_frame("rollup", f"{state.table_id}@{state.seqno}", encode_rollup(rolled))
    services.leases.check(write_id)
    if put_if_missing(services.blob, rollup_key(state.table_id, state.seqno), data):
        return rolled
    return load_rollup(services.blob, state.table_id, state.seqno)


def load_rollup(blob: Blob, table_id: str, seqno: int) -> TableState:
    """Return the state that was rolled up at a seqno."""
    key = rollup_key(table_id, seqno)
    payload = decode_frame(blob.get(key), "rollup", f"{table_id}@{seqno}", what=f"rollup {key}")
    return decode_rollup(payload, what=f"rollup {key}")


class ChunkWriter:
    """Writes the chunks of one write, which must hold a lease under its id."""

    def __init__(self, services: Services, table_id: str, write_id: str) -> None:
        self._blob = services.blob
        self._table_id = table_id
        self._write_id = write_id
        self._numbers = itertools.count()

    def write(self, columns: Columns, history: History) -> ChunkRef:
        """Write one chunk of columns whose bounds have the types of the latest schema."""
        key = chunk_key(self._table_id, self._write_id, next(self._numbers))
        data, ref = encode_chunk(key, columns, history.latest_id, history.latest)
        self._blob.put(key, data)
        return ref

    def write_parts(self, parts: Sequence[PlacedPart], history: History) -> list[ChunkRef]:
        """Write as many chunks as the parts need."""
        return [
            self.write(columns_of_parts(parts[start : start + MAX_CHUNK_PARTS], history), history)
            for start in range(0, len(parts), MAX_CHUNK_PARTS)
        ]


class _Folding:
    """Brings the tail and the removals of one state into chunks, in the order of places."""

    def __init__(
        self, writer: ChunkWriter, reader: ChunkReader, state: TableState, *, clean: bool = False
    ) -> None:
        self._clean = clean
        self._writer = writer
        self._reader = reader
        self._state = state
        self._removed = sorted(state.unfolded())

    def fold(self) -> tuple[ChunkRef, ...]:
        state = self._state
        folded = [self._mask(ref) for ref in state.chunks]
        loose: list[PlacedPart] = []
        for batch in state.tail:
            loose += [placed for placed in batch.placed() if not _contains(self._removed, placed.place)]
            if batch.chunks:
                folded += self._writer.write_parts(loose, state.history)
                folded += [self._mask(ref) for ref in batch.chunks]
                loose = []
        folded += self._writer.write_parts(loose, state.history)
        return tuple(self._merge([ref for ref in folded if ref.parts > len(ref.removed)]))

    def _mask(self, ref: ChunkRef) -> ChunkRef:
        """Note the rows of a chunk that are at removed places."""
        end = Place(ref.last.batch, ref.last.ordinal + 1)
        inside = self._removed[bisect_left(self._removed, ref.first) : bisect_left(self._removed, end)]
        if not inside:
            return ref
        places = with_header(self._reader.groups(ref, [PLACES]), ref.header)[PLACES]
        batches, ordinals = (places.column(name).to_numpy() for name in ("batch", "ordinal"))
        gone = set(inside)
        near = np.flatnonzero(np.isin(batches, [place.batch for place in inside]))
        rows = {int(row) for row in near if (int(batches[row]), int(ordinals[row])) in gone}
        return replace_struct(ref, removed=tuple(sorted(rows.union(ref.removed))))

    def _merge(self, refs: list[ChunkRef]) -> list[ChunkRef]:
        """Merge neighbours while the left one is not much larger, as a binary counter carries.

        So the number of small chunks grows with the logarithm of the parts, and a part is rewritten as often.
        """
        groups: list[list[ChunkRef]] = []
        for ref in refs:
            groups.append([ref])
            while len(groups) > 1 and _worth_merging(groups[-2], groups[-1]):
                right = groups.pop()
                groups[-1] += right
        return [self._rewrite(group) for group in groups]

    def _rewrite(self, group: list[ChunkRef]) -> ChunkRef:
        """Write a group of chunks as one, unless it is one already and not mostly gone."""
        if len(group) == 1 and len(group[0].removed) * 2 <= group[0].parts and not self._clean:
            return group[0]
        history = self._state.history
        fields = list(stats_fields(history.latest))
        pieces = [chunk_columns(self._reader, ref, history, fields, tuple(FIXED_GROUPS)) for ref in group]
        return self._writer.write(concat_columns(pieces), history)


def _worth_merging(left: list[ChunkRef], right: list[ChunkRef]) -> bool:
    before, after = _live(left), _live(right)
    return before <= _MERGE_FACTOR * after and before + after <= MAX_CHUNK_PARTS


def _live(refs: list[ChunkRef]) -> int:
    return sum(ref.parts - len(ref.removed) for ref in refs)


def _contains(places: list[Place], place: Place) -> bool:
    at = bisect_left(places, place)
    return at < len(places) and places[at] == place
