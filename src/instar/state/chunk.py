"""Manifest chunks: the metadata of many parts in typed columns, readable group by group.

A chunk is a sequence of groups and, at its end, a directory that says where each group is, what type
its bounds have, and its digest. A reader fetches the directory, then only the groups it needs.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from instar.errors import CorruptTableError, InstarError
from instar.schema import Schema, format_type, parse_type_ddl
from instar.state.parts import ChunkRef, Place
from instar.stats import FieldStats, bounds_schema, unite_bounds

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ADOPTED",
    "FILES",
    "PLACES",
    "ROWS",
    "TIMES",
    "Directory",
    "GroupEntry",
    "decode_directory",
    "decode_group",
    "encode_chunk",
    "field_of_group",
    "group_name",
]

PLACES: Final = "places"
TIMES: Final = "times"
FILES: Final = "files"
ROWS: Final = "rows"
ADOPTED: Final = "adopted"

FIXED_GROUPS: Final = {
    PLACES: pa.schema(
        [("batch", pa.int64()), ("ordinal", pa.int32()), ("run", pa.int32()), ("ordered", pa.bool_())]
    ),
    TIMES: pa.schema(
        [
            ("lower", pa.int64()),
            ("upper", pa.int64()),
            ("schema_id", pa.int32()),
            ("ts_min", pa.int64()),
            ("ts_max", pa.int64()),
            ("diff_min", pa.int64()),
            ("diff_max", pa.int64()),
        ]
    ),
    FILES: pa.schema([("key", pa.string()), ("rows", pa.int64()), ("size", pa.int64())]),
    ROWS: pa.schema([("first_row", pa.binary()), ("last_row", pa.binary())]),
    ADOPTED: pa.schema([("adopted", pa.binary())]),
}
"""The groups that every chunk has; statistics are in one group a field, `f<id>`.

That of adopted files is left out where there are none.
"""

_CODEC: Final = pa.Codec("zstd")
_DIGEST_SIZE: Final = 16


class GroupEntry(msgspec.Struct, frozen=True, array_like=True):
    """Where a group is, and what it holds. A field's group says its type and the bounds of all parts."""

    offset: int
    length: int
    raw_length: int
    digest: bytes
    type: str | None = None
    bounds: FieldStats | None = None


class Directory(msgspec.Struct, frozen=True, array_like=True):
    """What is in a chunk. Fields younger than `schema_id` are null in all its parts."""

    schema_id: int
    parts: int
    groups: dict[str, GroupEntry]


_directory_decoder = msgspec.msgpack.Decoder(Directory)


def group_name(field_id: int) -> str:
    """Return the name of the group with a field's statistics."""
    return f"f{field_id}"


def field_of_group(name: str) -> int:
    """Return the id of the field whose statistics are in a group."""
    return int(name.removeprefix("f"))


def encode_chunk(
    key: str, groups: Mapping[str, pa.RecordBatch], schema_id: int, schema: Schema
) -> tuple[bytes, ChunkRef]:
    """Lay out a chunk, and return it with the reference that a state keeps."""
    types = {group_name(leaf.id): leaf.type for _, leaf in schema.leaves()}
    files, places = groups[FILES], groups[PLACES]
    entries: dict[str, GroupEntry] = {}
    pieces: list[bytes] = []
    offset = 0
    for name, batch in groups.items():
        if name == ADOPTED and batch.column(0).null_count == batch.num_rows:
            continue
        raw = batch.serialize()
        piece = _CODEC.compress(raw, asbytes=True)
        described = (
            (format_type(types[name]), unite_bounds(batch, files.column("rows")))
            if name in types
            else (None, None)
        )
        entries[name] = GroupEntry(offset, len(piece), raw.size, _digest(piece), *described)
        pieces.append(piece)
        offset += len(piece)
    directory = msgspec.msgpack.encode(Directory(schema_id, files.num_rows, entries))
    ordinals, batches = places.column("ordinal"), places.column("batch")
    ref = ChunkRef(
        key,
        offset + len(directory),
        len(directory),
        _digest(directory),
        files.num_rows,
        pc.sum(files.column("rows")).as_py(),
        pc.sum(files.column("size")).as_py(),
        Place(batches[0].as_py(), ordinals[0].as_py()),
        Place(batches[-1].as_py(), ordinals[-1].as_py()),
    )
    return b"".join((*pieces, directory)), ref


def decode_directory(data: bytes, ref: ChunkRef) -> Directory:
    """Read the last `directory_size` bytes of a chunk."""
    what = f"manifest chunk {ref.key}"
    if _digest(data) != ref.digest:
        raise CorruptTableError(what, "its directory is not the one that the table refers to")
    try:
        return _directory_decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise CorruptTableError(what, f"its directory does not decode ({error})") from None


def decode_group(data: bytes, name: str, entry: GroupEntry, *, what: str) -> pa.RecordBatch:
    """Read the bytes of one group."""
    if _digest(data) != entry.digest:
        raise CorruptTableError(what, f"the digest of its group {name} does not match")
    try:
        raw = _CODEC.decompress(data, decompressed_size=entry.raw_length)
        schema = FIXED_GROUPS[name] if entry.type is None else bounds_schema(parse_type_ddl(entry.type)[0])
        return pa.ipc.read_record_batch(raw, schema)
    except (pa.ArrowException, KeyError, OSError, InstarError) as error:
        raise CorruptTableError(what, f"its group {name} does not decode ({error})") from None


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST_SIZE).digest()
