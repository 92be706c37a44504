"""Commits and rollups as bytes: MessagePack through msgspec, arrays in the order of the fields.

docs/format.md describes the bytes. Nothing decoded here is trusted to be well-formed: whatever does
not decode is a `CorruptTableError`. The frame around the bytes, with version and digest, is storage's.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from instar.errors import CorruptTableError, InstarError, UsageError
from instar.schema import History, Schema
from instar.state.commits import CommitRecord, ConfigValue, Start
from instar.state.parts import ChunkRef
from instar.state.retractions import SheetRef
from instar.state.table_state import Removal, TableState, TokenRecord, Totals

__all__ = ["decode_commit", "decode_rollup", "encode_commit", "encode_rollup"]

T = TypeVar("T")


class Rollup(msgspec.Struct, frozen=True, array_like=True):
    """A whole state at one seqno, except for the parts, which are in the chunks."""

    name: str
    table_id: str
    seqno: int
    schemas: tuple[Schema, ...]
    order_by: tuple[int, ...]
    key: tuple[int, ...]
    config: dict[str, ConfigValue]
    since: int
    upper: int
    chunks: tuple[ChunkRef, ...]
    removals: tuple[Removal, ...]
    removals_since: int
    tokens: tuple[TokenRecord, ...]
    totals: Totals
    dropped: bool
    commit_id: str
    sheets: tuple[SheetRef, ...] = ()
    touches: tuple[Removal, ...] = ()
    touches_since: int = 0
    adopted: str | None = None
    renaming: str | None = None
    pointer: str | None = None
    origins: tuple[str, ...] = ()


_encoder = msgspec.msgpack.Encoder()
_commit_decoder = msgspec.msgpack.Decoder(CommitRecord)
_rollup_decoder = msgspec.msgpack.Decoder(Rollup)


def encode_commit(commit: CommitRecord) -> bytes:
    """Return the payload of a log entry. What would not decode again is refused here."""
    data = _encoder.encode(commit)
    try:
        _commit_decoder.decode(data)
    except msgspec.ValidationError as error:
        raise UsageError(f"what is to be committed could not be read again: {error}") from None
    return data


def decode_commit(data: bytes, *, what: str) -> CommitRecord:
    """Read the payload of a log entry."""
    return _decode(_commit_decoder, data, what)


def encode_rollup(state: TableState) -> bytes:
    """Return the payload of a rollup; the state's parts must all be in its chunks."""
    if state.tail or state.unfolded():
        raise ValueError("a rollup has no tail: fold it into chunks first")
    return _encoder.encode(
        Rollup(
            state.name,
            state.table_id,
            state.seqno,
            state.history.schemas,
            state.order_by,
            state.key,
            state.config or {},
            state.since,
            state.upper,
            state.chunks,
            state.removals,
            state.removals_since,
            state.tokens,
            state.totals,
            state.dropped,
            state.commit_id,
            state.sheets,
            state.touches,
            state.touches_since,
            state.adopted,
            state.renaming,
            state.pointer,
            state.origins,
        )
    )


def decode_rollup(data: bytes, *, what: str) -> TableState:
    """Read the payload of a rollup."""
    rollup = _decode(_rollup_decoder, data, what)
    return TableState(
        rollup.name,
        rollup.table_id,
        rollup.seqno,
        Start(rollup.seqno, rollup=True),
        History.fold(rollup.schemas),
        rollup.order_by,
        rollup.key,
        rollup.config,
        rollup.since,
        rollup.upper,
        rollup.chunks,
        (),
        rollup.removals,
        rollup.removals_since,
        rollup.seqno,
        rollup.tokens,
        rollup.totals,
        rollup.dropped,
        rollup.commit_id,
        rollup.sheets,
        rollup.touches,
        rollup.touches_since,
        rollup.adopted,
        rollup.renaming,
        rollup.pointer,
        rollup.origins,
    )


def _decode(decoder: msgspec.msgpack.Decoder[T], data: bytes, what: str) -> T:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, InstarError, ValueError) as error:
        raise CorruptTableError(what, f"its content does not decode ({error})") from None
