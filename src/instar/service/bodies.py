"""Bodies of requests: read up to a limit, unpacked up to the same limit, and decoded."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread
import msgspec

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["BadRequestError", "decode_body", "read_body"]

_MOST_MEMBERS: Final = 64  # a client writes one; each of very many would copy all that follow it


class BadRequestError(Exception):
    """A request that is wrong as HTTP, with the status to answer."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        self.status = status
        self.headers = headers or {}
        super().__init__(message)


async def read_body(request: Request, limit: int) -> bytes:
    """Read a body; one that is too long, packed or unpacked, is refused before it is all in memory."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:20]) > limit:
        raise _too_large(limit)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise _too_large(limit)
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding in {"", "identity"}:
        return bytes(body)
    if encoding not in {"gzip", "x-gzip"}:
        raise BadRequestError(415, f"a body is sent as it is or with gzip, and not with {encoding!r}")
    return await anyio.to_thread.run_sync(_unpack, bytes(body), limit)


def _unpack(packed: bytes, limit: int) -> bytes:
    unpacked = bytearray()
    try:
        for _ in range(_MOST_MEMBERS):
            if not packed:
                return bytes(unpacked)
            stream = zlib.decompressobj(wbits=31)
            unpacked += stream.decompress(packed, limit + 1 - len(unpacked))
            if len(unpacked) > limit:
                raise _too_large(limit)
            if not stream.eof:
                raise BadRequestError(400, "the gzip of the body ends too early")
            packed = stream.unused_data
    except zlib.error as error:
        raise BadRequestError(400, f"the body is not gzip: {error}") from None
    raise BadRequestError(400, f"the gzip of the body has more than {_MOST_MEMBERS} members")


def decode_body(body: bytes) -> Any:  # noqa: ANN401 -- whatever JSON can say
    """Decode JSON; no body at all is None."""
    if not body.strip():
        return None
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise BadRequestError(400, f"the body is not JSON: {error}") from None
    except RecursionError:
        raise BadRequestError(400, "the body is nested too deeply") from None


def _too_large(limit: int) -> BadRequestError:
    return BadRequestError(413, f"the body is larger than {limit} bytes")
