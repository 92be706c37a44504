"""Retractions of a table: which rows of its parts were retracted by position, and when.

A state knows its sheets and what its latest commits retracted; here they are put together by part. Bitmaps
are fetched only for the parts that are read, each sheet in one request.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from instar.errors import CorruptTableError, NegativeCountError, NotFoundError
from instar.state.retractions import (
    Retraction,
    SheetEntry,
    SheetRef,
    decode_bitmap,
    decode_sheet,
    encode_sheet,
)
from instar.table.layout import sheet_key
from instar.table.log.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pyroaring import BitMap

    from instar.state import Place, TableState
    from instar.storage import Blob

__all__ = ["Retracted", "Retractions", "SheetReader", "SheetWriter", "fold_sheets", "load_retractions"]

_CACHED_BYTES: Final = 64 * 1024 * 1024
_MERGE_FACTOR: Final = 4
"""A sheet is merged with the one after it until it has this many times more retractions."""
MAX_SHEET: Final = 65_536
"""A sheet that has reached this many retractions is not merged any more."""


class Retracted(NamedTuple):
    """What one batch has retracted of one part: its seqno, its time, how many rows, and their positions.

    The positions are either here, or in a sheet.
    """

    batch: int
    ts: int
    place: Place
    rows: int
    bitmap: bytes | None
    sheet: SheetRef | None = None
    entry: SheetEntry | None = None


class SheetReader:
    """Fetches directories and bitmaps of sheets, and keeps the ones used last; sheets never change."""

    def __init__(self, blob: Blob) -> None:
        self._blob = blob
        self._directories: Recent[Sequence[SheetEntry]] = Recent(_CACHED_BYTES)
        self._bitmaps: Recent[bytes] = Recent(_CACHED_BYTES)

    def directory(self, ref: SheetRef) -> Sequence[SheetEntry]:
        """Return what is in a sheet."""
        found = self._directories.find(ref.key)
        if found is None:
            (data,) = self._get(ref, [(ref.size - ref.directory_size, ref.directory_size)])
            found = decode_sheet(data, ref)
            self._directories.keep(ref.key, found, ref.directory_size)
        return found

    def bitmaps(self, ref: SheetRef, entries: Sequence[SheetEntry]) -> list[bytes]:
        """Return the bitmaps of some entries as they are stored, in one request."""
        found = {entry.offset: self._bitmaps.find((ref.key, entry.offset)) for entry in entries}
        missing = [entry for entry in entries if found[entry.offset] is None]
        if missing:
            ranges = [(entry.offset, entry.length) for entry in missing]
            for entry, data in zip(missing, self._get(ref, ranges), strict=True):
                found[entry.offset] = data
                self._bitmaps.keep((ref.key, entry.offset), data, len(data))
        return [found[entry.offset] or b"" for entry in entries]

    def _get(self, ref: SheetRef, ranges: Sequence[tuple[int, int]]) -> Sequence[bytes]:
        try:
            return self._blob.get_ranges(ref.key, ranges)
        except NotFoundError as error:
            raise CorruptTableError(f"retraction sheet {ref.key}", "it is missing", missing=True) from error


@dataclass(frozen=True)
class Retractions:
    """What is retracted of the parts of a state in a span of times, by place."""

    reader: SheetReader
    by_place: Mapping[Place, Sequence[Retracted]]

    def __bool__(self) -> bool:
        return bool(self.by_place)

    def rows(self, place: Place) -> int:
        """Return how many rows of the part at a place are retracted."""
        return sum(found.rows for found in self.by_place.get(place, ()))

    def positions(self, places: Iterable[Place]) -> dict[Place, BitMap]:
        """Return the positions that are retracted of those of some parts that have any."""
        wanted = [found for place in places for found in self.by_place.get(place, ())]
        taken: dict[Place, BitMap] = {}
        for found, own in self.read(wanted):
            known = taken.get(found.place)
            if known is None:
                taken[found.place] = own
                continue
            if known.intersect(own):
                where = f"at position {(known & own).min()} of part {found.place.ordinal} of commit "
                raise NegativeCountError(f"{where}{found.place.batch}", -1)
            taken[found.place] = known | own
        return taken

    def read(self, wanted: Sequence[Retracted]) -> Iterator[tuple[Retracted, BitMap]]:
        """Yield the positions of each of some retractions."""
        by_sheet: dict[str, list[Retracted]] = {}
        for found in wanted:
            by_sheet.setdefault("" if found.sheet is None else found.sheet.key, []).append(found)
        for key, group in by_sheet.items():
            ref = group[0].sheet
            what = f"commit {group[0].batch}" if ref is None else f"retraction sheet {key}"
            entries = [found.entry for found in group if found.entry is not None]
            data = (
                [found.bitmap or b"" for found in group] if ref is None else self.reader.bitmaps(ref, entries)
            )
            for found, bitmap in zip(group, data, strict=True):
                digest = None if found.entry is None else found.entry.digest
                yield found, decode_bitmap(bitmap, found.rows, what=what, digest=digest)


def load_retractions(
    reader: SheetReader, state: TableState, *, since: int | None = None, as_of: int | None = None
) -> Retractions:
    """Return what was retracted by position from a time on and up to another, both included."""
    by_place: dict[Place, list[Retracted]] = {}
    for found in all_retractions(reader, state):
        if (since is None or found.ts >= since) and (as_of is None or found.ts <= as_of):
            by_place.setdefault(found.place, []).append(found)
    return Retractions(reader, by_place)


def all_retractions(reader: SheetReader, state: TableState) -> Iterator[Retracted]:
    """Yield the retractions of a state, in the order of their commits; parts may have been removed since."""
    for ref in state.sheets:
        yield from _of_sheet(reader, ref)
    for batch in state.tail:
        for own in batch.retractions:
            yield Retracted(batch.header.seqno, batch.header.upper - 1, own.place, own.rows, own.bitmap)
        for ref in batch.sheets:
            yield from _of_sheet(reader, ref)


def _of_sheet(reader: SheetReader, ref: SheetRef) -> Iterator[Retracted]:
    for entry in reader.directory(ref):
        yield Retracted(entry.batch, entry.ts, entry.place, entry.rows, None, ref, entry)


class SheetWriter:
    """Writes the sheets of one write, which must hold a lease under its id."""

    def __init__(self, blob: Blob, table_id: str, write_id: str) -> None:
        self._blob = blob
        self._table_id = table_id
        self._write_id = write_id
        self._numbers = itertools.count()

    def write(self, items: Iterable[tuple[int, int, Retraction]]) -> SheetRef:
        """Write one sheet of retractions, each with the seqno and the time of its batch."""
        key = sheet_key(self._table_id, self._write_id, next(self._numbers))
        data, ref = encode_sheet(key, items)
        self._blob.put(key, data)
        return ref


def fold_sheets(writer: SheetWriter, reader: SheetReader, state: TableState) -> tuple[SheetRef, ...]:
    """Bring the retractions of a state into sheets, and merge small ones as they pile up.

    New sheets leave out retractions of parts that no longer exist.
    """
    gone = frozenset(place for removal in state.removals for place in removal.places)
    sheets = list(state.sheets)
    loose: list[Retracted] = []
    for batch in state.tail:
        ts = batch.header.upper - 1
        loose += [
            Retracted(batch.header.seqno, ts, own.place, own.rows, own.bitmap) for own in batch.retractions
        ]
        sheets += batch.sheets
    groups: list[list[SheetRef]] = []
    for ref in sheets:
        groups.append([ref])
        while len(groups) > 1 and _worth_merging(groups[-2], groups[-1]):
            right = groups.pop()
            groups[-1] += right
    folded = [group[0] if len(group) == 1 else _rewrite(writer, reader, group, gone, []) for group in groups]
    if loose:
        last = [folded.pop()] if folded and folded[-1].retractions <= _MERGE_FACTOR * len(loose) else []
        folded.append(_rewrite(writer, reader, last, gone, loose))
    return tuple(ref for ref in folded if ref.retractions)


def _worth_merging(left: list[SheetRef], right: list[SheetRef]) -> bool:
    before, after = (sum(ref.retractions for ref in refs) for refs in (left, right))
    return before <= _MERGE_FACTOR * after and before + after <= MAX_SHEET


def _rewrite(
    writer: SheetWriter,
    reader: SheetReader,
    refs: Sequence[SheetRef],
    gone: Collection[Place],
    loose: Sequence[Retracted],
) -> SheetRef:
    """Write sheets and loose retractions as one sheet."""
    found = [own for ref in refs for own in _of_sheet(reader, ref)] + list(loose)
    kept = [own for own in found if own.place not in gone]
    bitmaps: dict[int, bytes] = {}
    for ref in refs:
        at = [number for number, own in enumerate(kept) if own.sheet is not None and own.sheet.key == ref.key]
        entries = [entry for number in at if (entry := kept[number].entry) is not None]
        bitmaps |= dict(zip(at, reader.bitmaps(ref, entries), strict=True))
    return writer.write(
        (own.batch, own.ts, Retraction(own.place, own.rows, bitmaps.get(number, own.bitmap or b"")))
        for number, own in enumerate(kept)
    )
