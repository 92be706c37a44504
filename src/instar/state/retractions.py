"""Retractions: rows of a part that a batch removes, by their positions in the file.

The positions are a Roaring bitmap in its portable format. A few small ones travel in the commit; others are
in sheets, which are immutable objects: bitmaps one after the other, and a directory that says whose they are.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import msgspec
from pyroaring import BitMap

from instar.errors import CorruptTableError
from instar.state.parts import BatchHeader, Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "Retraction",
    "SheetEntry",
    "SheetRef",
    "decode_bitmap",
    "decode_sheet",
    "encode_bitmap",
    "encode_sheet",
    "whole_part",
]

_DIGEST_SIZE: Final = 16


class Retraction(msgspec.Struct, frozen=True, array_like=True):
    """The retracted rows of the part at a place, and their number."""

    place: Place
    rows: int
    bitmap: bytes


class SheetRef(msgspec.Struct, frozen=True, array_like=True):
    """A sheet of retractions: where it is, what is in it, and the digest of its directory.

    `header` is set where all of it is of one batch; then the sheet itself does not say so. `own` is set where
    it is about the parts of that very batch, whose seqno was not known when it was written; then it has the
    times of the retractions, which are older than the batch.
    """

    key: str
    size: int
    directory_size: int
    digest: bytes
    retractions: int
    rows: int
    header: BatchHeader | None = None
    own: bool = False


class SheetEntry(msgspec.Struct, frozen=True, array_like=True):
    """One retraction of a sheet: the batch that it came with, its time, and where its bitmap is."""

    batch: int
    ts: int
    place: Place
    rows: int
    offset: int
    length: int
    digest: bytes


_directory_decoder = msgspec.msgpack.Decoder(tuple[SheetEntry, ...])


def encode_bitmap(positions: BitMap) -> bytes:
    """Return positions in the portable format, with runs where these are shorter."""
    compact = positions.copy()
    compact.run_optimize()
    return compact.serialize()


def whole_part(rows: int) -> BitMap:
    """Return all positions of a part."""
    positions = BitMap()
    positions.add_range(0, rows)
    return positions


def decode_bitmap(data: bytes, rows: int, *, what: str, digest: bytes | None = None) -> BitMap:
    """Read positions, and check their number and their digest."""
    if digest is not None and _digest(data) != digest:
        raise CorruptTableError(what, "the digest of a bitmap does not match")
    try:
        positions = BitMap.deserialize(data)
    except (ValueError, RuntimeError) as error:
        raise CorruptTableError(what, f"a bitmap does not decode ({error})") from None
    if len(positions) != rows:
        raise CorruptTableError(what, f"a bitmap has {len(positions)} positions, and {rows} were written")
    return positions


def encode_sheet(key: str, items: Iterable[tuple[int, int, Retraction]]) -> tuple[bytes, SheetRef]:
    """Lay out retractions, each with the seqno and the time of its batch; return also the reference."""
    entries: list[SheetEntry] = []
    pieces: list[bytes] = []
    offset = 0
    for batch, ts, (place, rows, bitmap) in ((b, t, msgspec.structs.astuple(r)) for b, t, r in items):
        entries.append(SheetEntry(batch, ts, place, rows, offset, len(bitmap), _digest(bitmap)))
        pieces.append(bitmap)
        offset += len(bitmap)
    directory = msgspec.msgpack.encode(entries)
    data = b"".join((*pieces, directory))
    rows = sum(entry.rows for entry in entries)
    return data, SheetRef(key, len(data), len(directory), _digest(directory), len(entries), rows)


def decode_sheet(data: bytes, ref: SheetRef) -> Sequence[SheetEntry]:
    """Read the last `directory_size` bytes of a sheet; what it leaves to its reference is filled in."""
    what = f"retraction sheet {ref.key}"
    if _digest(data) != ref.digest:
        raise CorruptTableError(what, "its directory is not the one that the table refers to")
    try:
        entries = _directory_decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise CorruptTableError(what, f"its directory does not decode ({error})") from None
    if ref.header is None:
        return entries
    seqno, ts = ref.header.seqno, ref.header.upper - 1
    if ref.own:
        return tuple(
            msgspec.structs.replace(entry, batch=seqno, place=Place(seqno, entry.place.ordinal))
            for entry in entries
        )
    return tuple(msgspec.structs.replace(entry, batch=seqno, ts=ts) for entry in entries)


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST_SIZE).digest()
