"""Short bounds for long texts and bytes: never above a least value, never below a greatest one."""

from __future__ import annotations

from typing import Final

__all__ = ["BOUND_BYTES", "lower_bound", "upper_bound"]

BOUND_BYTES: Final = 64
"""Where bounds are cut. A UUID, a timestamp, a host name and most keys fit; a page of text does not."""

_SURROGATES: Final = (0xD800, 0xE000)
_LAST_CODE_POINT: Final = 0x10FFFF
_LAST_BYTE: Final = 0xFF


def lower_bound(value: str | bytes, limit: int = BOUND_BYTES) -> str | bytes:
    """Return the value, or a prefix of it: what is shorter is less."""
    if isinstance(value, bytes):
        return value[:limit]
    return _cut(value, limit)


def upper_bound(value: str | bytes, limit: int = BOUND_BYTES) -> str | bytes | None:
    """Return the value if it is short, or else something short that is greater.

    None if there is nothing: no text is greater than one of U+10FFFF only, but for a longer one.
    """
    if isinstance(value, bytes):
        return value if len(value) <= limit else _next_bytes(value[:limit])
    prefix = _cut(value, limit)
    return value if len(prefix) == len(value) else _next_text(prefix)


def _cut(text: str, limit: int) -> str:
    """Return the longest prefix of whole characters that has at most `limit` bytes."""
    return text[:limit].encode()[:limit].decode(errors="ignore")


def _next_text(prefix: str) -> str | None:
    """Return the least text of at most this length that is greater than all that begin with the prefix."""
    for at in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[at]) + 1
        if code == _SURROGATES[0]:  # these code points are not characters, and have no bytes
            code = _SURROGATES[1]
        if code <= _LAST_CODE_POINT:
            return prefix[:at] + chr(code)
    return None


def _next_bytes(prefix: bytes) -> bytes | None:
    kept = prefix.rstrip(bytes([_LAST_BYTE]))
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
