"""The envelope around every object that instar encodes itself: what it is, whose it is, and a digest.

A frame, integers little-endian:

    offset  bytes  what
    0       6      magic: the ASCII letters INSTAR
    6       2      format version, unsigned; this module writes version 5 and reads versions 1 to 4 too
    8       1      length k of the kind, unsigned
    9       k      kind: what sort of object this is, ASCII, such as `diff` or `rollup`
    9+k     2      length i of the identity, unsigned
    11+k    i      identity: which object of that kind this is, UTF-8, such as a table's id and a seqno
    11+k+i  8      length p of the payload, unsigned
    19+k+i  p      payload
    end-16  16     digest: BLAKE2b with a 16-byte output, without key, over everything before it

Every future version keeps the magic, the place of the version, and a digest of this sort at the end. So
damage is found before a version is believed, and a damaged version is never mistaken for a newer one.

BLAKE2b rather than a CRC: it is in the standard library and reads about a gigabyte per second, which is
nothing beside the store's own latency for objects this small. A CRC of 32 bits would miss one in four
billion of the damages that are not short bursts, and its value can be met on purpose by choosing the
payload. The identity makes a copy of an intact object in the place of another an error.
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeVar

import msgspec

from instar.errors import CorruptTableError, FormatTooNewError

if TYPE_CHECKING:
    from instar.storage.blob import Data

__all__ = ["FORMAT_VERSION", "decode_frame", "decode_record", "encode_frame", "encode_record"]

FORMAT_VERSION = 5
"""Version 2 has retractions by position, 3 adopted files, 4 names and clones, 5 logs that begin with the end
of a table: older readers miss these."""

T = TypeVar("T")

_MAGIC = b"INSTAR"
_VERSION = struct.Struct("<H")
_KIND_LENGTH = struct.Struct("<B")
_IDENTITY_LENGTH = struct.Struct("<H")
_PAYLOAD_LENGTH = struct.Struct("<Q")
_DIGEST_SIZE = 16
_VERSION_END = len(_MAGIC) + _VERSION.size


def encode_frame(kind: str, identity: str, payload: Data) -> bytes:
    """Wrap a payload, saying what it is and which one."""
    kind_bytes = kind.encode("ascii")
    identity_bytes = identity.encode()
    body = b"".join(
        (
            _header(kind_bytes, identity_bytes),
            _PAYLOAD_LENGTH.pack(len(payload)),
            payload,
        )
    )
    return body + _digest(body)


def decode_frame(data: Data, kind: str, identity: str, *, what: str) -> bytes:
    """Return the payload of a frame, or raise `CorruptTableError` naming `what`.

    An intact frame of a newer version raises `FormatTooNewError`.
    """
    whole = memoryview(data)
    body, digest = whole[:-_DIGEST_SIZE], whole[-_DIGEST_SIZE:]
    if len(whole) < _VERSION_END + _DIGEST_SIZE:
        raise CorruptTableError(what, f"it has only {len(whole)} bytes")
    if body[: len(_MAGIC)] != _MAGIC:
        raise CorruptTableError(what, "it does not begin as an object of instar does")
    if _digest(body) != digest:
        raise CorruptTableError(what, "its digest does not match its content")
    (version,) = _VERSION.unpack_from(body, len(_MAGIC))
    if version > FORMAT_VERSION:
        raise FormatTooNewError(what, found=version, supported=FORMAT_VERSION)
    header = _header(kind.encode("ascii"), identity.encode(), max(version, 1))
    if body[: len(header)] != header:
        raise CorruptTableError(what, f"it is intact, but it is not the {kind} {identity}")
    rest = body[len(header) :]
    if (
        len(rest) < _PAYLOAD_LENGTH.size
        or _PAYLOAD_LENGTH.unpack_from(rest)[0] != len(rest) - _PAYLOAD_LENGTH.size
    ):
        raise CorruptTableError(what, "the length of its payload is wrong")
    return bytes(rest[_PAYLOAD_LENGTH.size :])


def encode_record(kind: str, identity: str, value: object) -> bytes:
    """Wrap a value as MessagePack."""
    return encode_frame(kind, identity, msgspec.msgpack.encode(value))


def decode_record(data: Data, kind: str, identity: str, type_: type[T], *, what: str) -> T:
    """Return the value of a frame, or raise `CorruptTableError` naming `what`."""
    payload = decode_frame(data, kind, identity, what=what)
    try:
        return msgspec.msgpack.decode(payload, type=type_)
    except msgspec.MsgspecError as error:
        raise CorruptTableError(what, f"its content does not decode ({error})") from None


def _header(kind: bytes, identity: bytes, version: int = FORMAT_VERSION) -> bytes:
    """Return the bytes before the length of the payload; no two (kind, identity) share them."""
    return b"".join(
        (
            _MAGIC,
            _VERSION.pack(version),
            _KIND_LENGTH.pack(len(kind)),
            kind,
            _IDENTITY_LENGTH.pack(len(identity)),
            identity,
        )
    )


def _digest(body: Data) -> bytes:
    return blake2b(body, digest_size=_DIGEST_SIZE).digest()
