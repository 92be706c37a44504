"""Blobs as files below a directory, written so that an acknowledged put survives a power cut.

A file is staged under `.staging/`, synced, given its name in one step, and then its directory is synced.
"""

# The protocol documents the methods; plain `os` calls are what durability is argued about.
# ruff: noqa: D102, PTH100, PTH102, PTH105, PTH108, PTH112, PTH114, PTH116, PTH120, PTH123

from __future__ import annotations

import errno
import os
import re
import uuid
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from instar.errors import (
    CorruptTableError,
    InvalidNameError,
    NotFoundError,
    StorageDeniedError,
    StorageError,
    StorageTimeoutError,
)
from instar.storage.blob import Blob, Data, StoredObject
from instar.storage.keys import check_key, check_prefix
from instar.storage.objects import ObjectBlob

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["DirectoryBlob"]

_STAGING = ".staging"
_STAGED = re.compile(rf"{re.escape(_STAGING)}/[0-9a-f]{{32}}")
_DENIED = (errno.EROFS, errno.EACCES, errno.EPERM)
_FULL = (errno.ENOSPC, errno.EDQUOT)
_ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


class DirectoryBlob:
    """The `Blob` of a local directory, which the first put creates.

    No symbolic link below the root is followed, so neither a key nor a planted link leads out of it.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = os.path.abspath(root)
        self._durable: set[str] = set()  # directories whose own names are known to be on disk

    def __repr__(self) -> str:
        return f"DirectoryBlob({self._root!r})"

    def __reduce__(self) -> tuple[type[DirectoryBlob], tuple[str]]:
        return DirectoryBlob, (self._root,)

    @property
    def url(self) -> str:
        return self._root

    @property
    def seeks(self) -> bool:
        return False

    @property
    def settings(self) -> Mapping[str, str]:
        return {}

    def location(self, key: str) -> str:
        check_key(key)
        return f"{self._root}/{key}"

    def elsewhere(self, url: str) -> Blob:
        return ObjectBlob.open(url)

    def put(self, key: str, data: Data, *, durable: bool = True) -> None:
        path = self._path(key)
        staged = self._stage(key, data, sync=durable)
        with self._undoing(staged, f"writing {path}"):
            self._make_directory(os.path.dirname(path))
            os.replace(staged, path)
        if durable:
            self._sync_name(path)

    def put_if_absent(self, key: str, data: Data) -> bool:
        path = self._path(key)
        if os.path.lexists(path):
            return False
        staged = self._stage(key, data)
        with self._undoing(staged, f"creating {path}"):
            self._make_directory(os.path.dirname(path))
            try:
                # A link, unlike a rename, fails if the name is taken.
                os.link(staged, path)
                created = True
            except FileExistsError:
                created = False
        with suppress(OSError):
            os.unlink(staged)
        if created:
            self._sync_name(path)
        return created

    def find(self, key: str) -> bytes | None:
        path = self._path(key)
        with _reading(path):
            try:
                with open(path, "rb") as file:
                    return file.read()
            except _ABSENT:
                return None

    def find_many(self, keys: Sequence[str]) -> Sequence[bytes | None]:
        return [self.find(key) for key in keys]

    def get(self, key: str) -> bytes:
        data = self.find(key)
        if data is None:
            raise _not_found(self._path(key))
        return data

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> Sequence[bytes]:
        path = self._path(key)
        with _reading(path):
            try:
                with open(path, "rb", buffering=0) as file:
                    found = [os.pread(file.fileno(), length, offset) for offset, length in ranges]
            except _ABSENT:
                raise _not_found(path) from None
        for (offset, length), data in zip(ranges, found, strict=True):
            if len(data) != length:
                raise CorruptTableError(path, f"it ends before byte {offset + length}")
        return found

    def stat(self, key: str) -> StoredObject | None:
        path = self._path(key)
        with _reading(path):
            try:
                return None if os.path.isdir(path) else _stored(key, os.stat(path))
            except _ABSENT:
                return None

    def delete(self, keys: Iterable[str]) -> None:
        for deleted, key in enumerate(keys):
            path = f"{self._root}/{key}" if _STAGED.fullmatch(key) else self._path(key)
            try:
                with suppress(*_ABSENT):
                    os.unlink(path)
            except OSError as error:
                kind = StorageTimeoutError if deleted else StorageError
                why = f"{error.strerror}, after {deleted} others were deleted"
                raise kind(f"deleting {path}", why) from error

    def list(self, prefix: str = "", start_after: str | None = None) -> Iterator[StoredObject]:
        prefix = check_prefix(prefix)
        if start_after is not None:
            check_key(start_after)
        return self._walk(f"{prefix}/" if prefix else "", start_after or "")

    def list_prefixes(self, prefix: str = "") -> Iterator[str]:
        prefix = check_prefix(prefix)
        start = f"{prefix}/" if prefix else ""
        for name, entry in self._entries(start):
            if name.endswith("/") and next(self._walk(start + name, ""), None) is not None:
                yield start + entry.name

    def list_unfinished(self) -> Iterator[StoredObject]:
        staging = f"{self._root}/{_STAGING}"
        with _reading(staging):
            try:
                entries = list(os.scandir(staging))
            except _ABSENT:
                return
        for entry in sorted(entries, key=lambda entry: entry.name):
            with suppress(FileNotFoundError):
                yield _stored(f"{_STAGING}/{entry.name}", entry.stat(follow_symlinks=False))

    def _path(self, key: str) -> str:
        check_key(key)
        path = self._root
        for segment in key.split("/"):
            path = f"{path}/{segment}"
            if os.path.islink(path):
                raise InvalidNameError(key, f"{path} is a symbolic link, and could lead out of the store")
        return path

    def _stage(self, key: str, data: Data, *, sync: bool = True) -> str:
        """Write `data` under a name that no list shows, and bring it to disk unless told otherwise."""
        directory = f"{self._root}/{_STAGING}"
        staged = f"{directory}/{uuid.uuid4().hex}"
        with self._undoing(staged, f"writing {key} in {self._root}"):
            self._make_directory(directory)
            with open(staged, "xb", buffering=0) as file:
                rest = memoryview(data).cast("B")
                while rest:
                    rest = rest[file.write(rest) :]
                if sync:
                    os.fsync(file.fileno())
        return staged

    @contextmanager
    def _undoing(self, staged: str, operation: str) -> Iterator[None]:
        """Take the staged file away if the put fails; then it is certain that nothing happened."""
        try:
            yield
        except OSError as error:
            with suppress(OSError):
                os.unlink(staged)
            kind = StorageDeniedError if error.errno in _DENIED else StorageError
            raise kind(operation, _why(error)) from error

    def _sync_name(self, path: str) -> None:
        try:
            _sync_directory(os.path.dirname(path))
        except OSError as error:
            why = f"{_why(error)}; the file is there, but a power cut might still take it away"
            raise StorageTimeoutError(f"syncing the directory of {path}", why) from error

    def _make_directory(self, directory: str) -> None:
        """Create a directory and bring its name, and those of its parents up to the root, to disk.

        A directory that was already there is synced too, once per handle: another process may have
        created it a moment ago, and may die before it has synced it.
        """
        if directory in self._durable and os.path.isdir(directory):
            return
        parent = os.path.dirname(directory)
        if directory != self._root:
            self._make_directory(parent)
            with suppress(FileExistsError):
                os.mkdir(directory)
            _sync_directory(parent)
        else:
            _make_root(directory)
        self._durable.add(directory)

    def _walk(self, start: str, start_after: str) -> Iterator[StoredObject]:
        for name, entry in self._entries(start):
            key = start + name
            if not name.endswith("/"):
                if key.encode() > start_after.encode():
                    with suppress(FileNotFoundError):
                        yield _stored(key, entry.stat(follow_symlinks=False))
            elif start_after.startswith(key) or key.encode() > start_after.encode():
                yield from self._walk(key, start_after)

    def _entries(self, start: str) -> Sequence[tuple[str, os.DirEntry[str]]]:
        """Return what is directly below `start`; directories end with `/`, as their keys do go on."""
        path = f"{self._root}/{start}"
        with _reading(path):
            try:
                with os.scandir(path) as entries:
                    named = [
                        (f"{entry.name}/" if entry.is_dir() else entry.name, entry)
                        for entry in entries
                        if not entry.name.startswith(".") and not entry.is_symlink()
                    ]
            except _ABSENT:
                return []
        return sorted(named, key=lambda pair: pair[0].encode())


def _make_root(root: str) -> None:
    """Create the root and what is missing above it; what was there before is not ours to sync."""
    if os.path.isdir(root):
        return
    parent = os.path.dirname(root)
    if parent != root:
        _make_root(parent)
    with suppress(FileExistsError):
        os.mkdir(root)
    _sync_directory(parent)


def _sync_directory(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _reading(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"reading {path}", _why(error)) from error


def _why(error: OSError) -> str:
    why = error.strerror or str(error)
    return f"{why}: free some, and try again" if error.errno in _FULL else why


def _stored(key: str, status: os.stat_result) -> StoredObject:
    return StoredObject(key, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))


def _not_found(path: str) -> NotFoundError:
    return NotFoundError(f"there is no object {path}")
