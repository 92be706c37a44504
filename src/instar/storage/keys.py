"""Which names may be used for objects and for logs, and how a log's name becomes one path segment.

A name that passes `check_key` cannot leave the root it is joined to, on any backend.
What names mean to users, such as tables and streams, is decided above this layer.
"""

from __future__ import annotations

import unicodedata
from urllib.parse import quote, unquote

from instar.errors import InvalidNameError

__all__ = ["check_key", "check_prefix", "decode_key", "encode_key"]

_LONGEST_KEY = 900  # object stores allow 1,024 bytes, of which a store's own prefix takes some
_LONGEST_SEGMENT = 240  # file systems allow 255 bytes


def check_key(key: str) -> None:
    """Raise unless `key` is relative, `/`-separated and made of plain, visible segments."""
    if not key:
        raise InvalidNameError(key, "it is empty")
    if len(_utf8(key)) > _LONGEST_KEY:
        raise InvalidNameError(key, f"it is longer than {_LONGEST_KEY} bytes")
    if "\\" in key:
        raise InvalidNameError(key, "it has a backslash; separate its parts with `/`")
    if not key.isprintable() and any(unicodedata.category(character) == "Cc" for character in key):
        raise InvalidNameError(key, "it has a control character")
    for segment in key.split("/"):
        if not segment:
            raise InvalidNameError(key, "it begins or ends with `/`, or has `//`")
        if segment.startswith("."):
            raise InvalidNameError(key, "a part of it begins with a dot")
        if len(_utf8(segment)) > _LONGEST_SEGMENT:
            raise InvalidNameError(key, f"a part of it is longer than {_LONGEST_SEGMENT} bytes")


def check_prefix(prefix: str) -> str:
    """Return `prefix` without its final slash, or raise unless it is empty or such a key."""
    plain = prefix.removesuffix("/")
    if prefix:
        check_key(plain)
    return plain


def encode_key(key: str) -> str:
    """Turn a checked key into one path segment that no other key has.

    A key cannot hold `/` afterwards, so `a` and `a/b` are neighbours and neither is inside the other.
    """
    check_key(key)
    segment = quote(key, safe="")
    if len(segment) > _LONGEST_SEGMENT:
        raise InvalidNameError(key, f"percent-encoded, it is longer than {_LONGEST_SEGMENT} bytes")
    return segment


def decode_key(segment: str) -> str:
    """Return the key that `encode_key` turned into `segment`."""
    return unquote(segment, errors="strict")


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidNameError(text, "it has a lone surrogate, which has no UTF-8 form") from None
