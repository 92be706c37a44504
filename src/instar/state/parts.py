"""Parts, batches and references to manifest chunks: what a table is made of, as durable values.

A part's place is `(batch, ordinal)`: the seqno of the commit that added it, and its position there.
It is the same forever, however the metadata is laid out in chunks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from instar.stats import FieldStats

if TYPE_CHECKING:
    from instar.state.retractions import Retraction, SheetRef

__all__ = ["Adopted", "Batch", "BatchHeader", "ChunkRef", "Part", "Place", "PlacedPart"]


class Place(NamedTuple):
    """Which part of which batch."""

    batch: int
    ordinal: int


class Adopted(msgspec.Struct, frozen=True, array_like=True):
    """What is known about an adopted file, which is read in its place, by the names of its columns.

    `footer` is the BLAKE2b-16 digest of its Parquet footer, and `modified_ms` when it was last written:
    another footer means another file. `values` are the columns in its path, by field id,
    as text. `nanos` are the fields that it holds in nanoseconds. `analyzed` says that its statistics come
    from its rows.
    """

    footer: bytes
    modified_ms: int
    values: dict[int, str | None] = {}
    nanos: tuple[int, ...] = ()
    analyzed: bool = False


class Part(msgspec.Struct, frozen=True, array_like=True):
    """One immutable Parquet file, and what is known about it without opening it.

    `ts_min` and `ts_max` are None where every row has the time of its batch, which is then `upper - 1`.
    `first_row` and `last_row` are the least and the greatest row, encoded by the writer of the part.
    Where `adopted` is set, the key is a path or URL outside the store.
    """

    key: str
    rows: int
    size: int
    run: int = 0
    ordered: bool = True
    ts_min: int | None = None
    ts_max: int | None = None
    diff_min: int = 1
    diff_max: int = 1
    first_row: bytes | None = None
    last_row: bytes | None = None
    stats: dict[int, FieldStats] = {}
    adopted: Adopted | None = None


class BatchHeader(msgspec.Struct, frozen=True, array_like=True):
    """What all parts of one commit have in common: times in [lower, upper), written under one schema."""

    seqno: int
    lower: int
    upper: int
    schema_id: int


class ChunkRef(msgspec.Struct, frozen=True, array_like=True):
    """A manifest chunk: metadata of many parts in columns, in one immutable object.

    Chunks of a state are disjoint and in the order of places. `header` is set where all parts are of one
    batch; then the chunk itself does not say so. `removed` are the rows of the chunk that are no longer
    part of the table. The digest is that of the chunk's directory, which has the digests of all columns.
    """

    key: str
    size: int
    directory_size: int
    digest: bytes
    parts: int
    rows: int
    parts_size: int
    first: Place
    last: Place
    header: BatchHeader | None = None
    removed: tuple[int, ...] = ()


class PlacedPart(NamedTuple):
    """A part, the batch that it came with, and its position in it."""

    header: BatchHeader
    ordinal: int
    part: Part

    @property
    def place(self) -> Place:
        """Where the part is forever."""
        return Place(self.header.seqno, self.ordinal)


@dataclass(frozen=True)
class Batch:
    """What one commit added: its parts, inline if they are few and in chunks if they are many.

    Retractions of rows of other batches are likewise inline or in sheets.
    """

    header: BatchHeader
    parts: tuple[Part, ...] = ()
    chunks: tuple[ChunkRef, ...] = ()
    retractions: tuple[Retraction, ...] = ()
    sheets: tuple[SheetRef, ...] = ()

    def placed(self) -> tuple[PlacedPart, ...]:
        """Return the inline parts with their places."""
        return tuple(PlacedPart(self.header, ordinal, part) for ordinal, part in enumerate(self.parts))
