"""Files outside the store, which others wrote: finding, opening and knowing them again. They are only read.

A location is an absolute path or the URL of an object. What the files hold is in `instar.parts`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from instar.errors import AdoptedFileError, NotFoundError, StorageError, UsageError
from instar.parts.foreign import footer_digest
from instar.table.blob_file import BlobFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from instar.state import Adopted
    from instar.storage import Blob

__all__ = ["OutsideFile", "check_unchanged", "delete_outside", "find_files", "open_outside", "path_values"]

_SUFFIXES: Final = (".parquet", ".parq", ".pq")
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"


class OutsideFile(NamedTuple):
    """A file that others wrote."""

    location: str
    size: int
    modified_ms: int


def find_files(blob: Blob, paths: Sequence[str | os.PathLike[str]]) -> list[OutsideFile]:
    """Return the Parquet files at paths and URLs, and below those that are directories, in order.

    Like Spark, it leaves out names that begin with `_` or `.`. A file that is named itself is always
    included.
    """
    found: dict[str, OutsideFile] = {}
    for path in paths:
        text = os.fspath(path)
        files = list(
            _remote(blob, text) if "://" in text and not text.startswith("file://") else _local(text)
        )
        if not files:
            raise UsageError(f"there are no Parquet files at {text}: name files, or a directory of them")
        found |= {file.location: file for file in files}
    own = f"{blob.url.rstrip('/')}/"
    for location in found:
        if location.startswith(own):
            raise UsageError(f"cannot adopt {location}: it is inside the store. Name files outside of it")
    return [found[location] for location in sorted(found)]


def open_outside(blob: Blob, location: str, size: int) -> pa.NativeFile:
    """Open a file so that only what is needed of it is fetched."""
    if location.startswith("/"):
        return pa.OSFile(location)
    root, key = _split(location)
    return pa.PythonFile(BlobFile(blob.elsewhere(root), key, size), mode="r")


def check_unchanged(blob: Blob, location: str, size: int, adopted: Adopted) -> None:
    """Raise if a file is missing, or is another than the one that was adopted."""
    found = _stat(blob, location)
    if found is None:
        raise AdoptedFileError(location, "it is missing", missing=True)
    if found.size == size and found.modified_ms == adopted.modified_ms:
        return
    if found.size == size:
        with open_outside(blob, location, size) as file:
            if footer_digest(file) == adopted.footer:
                return
    raise AdoptedFileError(location, "it is another file than the one that was adopted")


def delete_outside(blob: Blob, location: str) -> None:
    """Delete an outside file, as its owner asked."""
    if location.startswith("/"):
        try:
            Path(location).unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"deleting {location}", error.strerror or str(error)) from error
        return
    root, key = _split(location)
    blob.elsewhere(root).delete([key])


def path_values(location: str) -> dict[str, str | None]:
    """Return the columns that a path tells, as Hive does: `…/day=2026-11-15/country=de/x.parquet`."""
    values: dict[str, str | None] = {}
    for segment in location.split("/")[:-1]:
        name, separator, value = segment.partition("=")
        if not separator or not name:
            continue
        try:
            name, value = (unquote(text, errors="strict") for text in (name, value))
        except UnicodeDecodeError:
            raise _refused(location, f"the percent-encoded bytes in `{segment}` are not UTF-8") from None
        if name.lower() in map(str.lower, values):
            raise _refused(location, f"its path has column `{name}` twice")
        values[name] = None if value == _NULL else value
    return values


def _refused(location: str, why: str) -> UsageError:
    return UsageError(f"cannot adopt {location}: {why}. Nothing was done; rename the directory")


def _local(text: str) -> Iterator[OutsideFile]:
    path = (
        Path(unquote(text.removeprefix("file://")) if text.startswith("file://") else text)
        .expanduser()
        .resolve()
    )
    try:
        if path.is_file():
            yield _known(path)
        above: dict[Path, tuple[str, ...]] = {path: (os.path.realpath(path),)}
        for folder, folders, names in os.walk(path, followlinks=True):
            way = above.pop(Path(folder))
            real = {name: os.path.realpath(Path(folder) / name) for name in folders if not _is_hidden(name)}
            # A link that leads back to where it is leads on for ever.
            folders[:] = sorted(name for name in real if real[name] not in way)
            above |= {Path(folder) / name: (*way, real[name]) for name in folders}
            for name in sorted(names):
                if name.endswith(_SUFFIXES) and not _is_hidden(name):
                    yield _known(Path(folder) / name)
    except OSError as error:
        raise UsageError(f"cannot read {text}: {error.strerror}") from error


def _known(path: Path) -> OutsideFile:
    if not _is_text(str(path)):
        raise UsageError(f"cannot adopt {str(path)!r}: its path is not UTF-8. Nothing was done; rename it")
    status = path.stat()
    return OutsideFile(str(path), status.st_size, status.st_mtime_ns // 1_000_000)


def _remote(blob: Blob, url: str) -> Iterator[OutsideFile]:
    root, key = _split(url.rstrip("/"))
    there = blob.elsewhere(root)
    single = there.stat(key) if key else None
    for stored in (single,) if single is not None else there.list(key):
        inside = stored.key.removeprefix(key).strip("/").split("/")
        visible = stored.key.endswith(_SUFFIXES) and not any(_is_hidden(name) for name in inside)
        if single is not None or visible:
            yield OutsideFile(f"{root}/{stored.key}", stored.size, stored.modified_ms)


def _stat(blob: Blob, location: str) -> OutsideFile | None:
    try:
        if location.startswith("/"):
            return _known(Path(location))
        root, key = _split(location)
        stored = blob.elsewhere(root).stat(key)
    except (NotFoundError, FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StorageError(f"reading {location}", error.strerror or str(error)) from error
    return None if stored is None else OutsideFile(location, stored.size, stored.modified_ms)


def _split(url: str) -> tuple[str, str]:
    """Split a URL into its bucket and the key there."""
    scheme, _, rest = url.partition("://")
    bucket, _, key = rest.partition("/")
    return f"{scheme}://{bucket}", key


def _is_text(path: str) -> bool:
    """Whether a path can be written down: Python has lone surrogates for bytes that are not UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in path)


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)
