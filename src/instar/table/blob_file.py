"""`BlobFile`: a stored object as a file that can be read and sought, for readers that know only files."""

# Methods are those of a file.
# ruff: noqa: D102

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from instar.storage import Blob

__all__ = ["BlobFile"]


class BlobFile(io.RawIOBase):
    """A stored object as a file: every read is a request for a range.

    With `whole`, the first read fetches everything: of a small object that takes no longer than a range.
    """

    def __init__(self, blob: Blob, key: str, size: int, *, whole: bool = False) -> None:
        super().__init__()
        self._blob = blob
        self._key = key
        self._size = size
        self._at = 0
        self._whole = whole
        self._data: bytes | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = base + offset
        return self._at

    def size(self) -> int:
        return self._size

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self._size - self._at)
        length = left if size is None or size < 0 else min(size, left)
        data = self._fetch(self._at, length) if length else b""
        self._at += length
        return data

    def _fetch(self, start: int, length: int) -> bytes:
        if not self._whole:
            return self._blob.get_ranges(self._key, [(start, length)])[0]
        if self._data is None:
            self._data = self._blob.get_ranges(self._key, [(0, self._size)])[0]
        return self._data[start : start + length]
