"""Which files were opened: the kernel tells, whoever opens them, in this process or in a JVM beside it."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

__all__ = ["CAN_WATCH", "Opened"]

CAN_WATCH: Final = sys.platform == "linux"
"""Other systems have no inotify."""

_OPEN: Final = 0x20
_IS_DIRECTORY: Final = 0x4000_0000
_OVERFLOW: Final = 0x4000
_EVENT: Final = struct.Struct("iIII")
_BUFFER: Final = 1 << 20


class Opened:
    """Watches all directories that are below one when it is made."""

    def __init__(self, directory: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._queue = _checked(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        folders = [directory, *(path for path in directory.rglob("*") if path.is_dir())]
        self._folders = {
            _checked(libc.inotify_add_watch(self._queue, os.fsencode(folder), _OPEN)): folder
            for folder in folders
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._queue)

    def take(self) -> set[Path]:
        """Return the files that were opened since the last call."""
        found: set[Path] = set()
        while data := self._read():
            at = 0
            while at < len(data):
                watch, mask, _, length = _EVENT.unpack_from(data, at)
                at += _EVENT.size
                assert not mask & _OVERFLOW, "more files were opened than the kernel could tell"
                if not mask & _IS_DIRECTORY and watch in self._folders:
                    found.add(self._folders[watch] / os.fsdecode(data[at : at + length].rstrip(b"\0")))
                at += length
        return found

    def _read(self) -> bytes:
        try:
            return os.read(self._queue, _BUFFER)
        except BlockingIOError:
            return b""


def _checked(answer: int) -> int:
    """Raise what a call of the C library has failed with."""
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer
