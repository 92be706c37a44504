"""Which files are meant, and what they are."""

from __future__ import annotations

import glob
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from instar.errors import InputNotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Format", "find_files", "guess_format"]


class Format(StrEnum):
    """What files may be."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    ARROW = "arrow"


_SUFFIXES: Final = {
    ".parquet": Format.PARQUET,
    ".csv": Format.CSV,
    ".tsv": Format.CSV,
    ".json": Format.JSON,
    ".jsonl": Format.JSON,
    ".ndjson": Format.JSON,
    ".arrow": Format.ARROW,
    ".feather": Format.ARROW,
}
_COMPRESSED: Final = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate", ".xz")
_SKIPPED: Final = ("_", ".")
"""What the names of files in a directory begin with that are not data: `_SUCCESS`, `.crc`."""


def guess_format(paths: Sequence[str]) -> Format:
    """Guess a format from the names of files."""
    formats = {_named_format(path) for path in paths}
    found = formats.pop() if len(formats) == 1 else None
    if found is None:
        given, known = ", ".join(paths), ", ".join(Format)
        raise UsageError(
            f"cannot tell the format of {given} from the names: say --format, which is one of {known}"
        )
    return found


def _named_format(path: str) -> Format | None:
    """Return the format that the name of a file or directory ends with, compressed or not."""
    suffixes = PurePosixPath(path.lower()).suffixes
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return _SUFFIXES.get(suffixes[-1]) if suffixes else None


def find_files(paths: Sequence[str]) -> list[Path] | None:
    """Return the files of this machine that are meant, in order; None if some are elsewhere.

    A directory means the files in it, and a pattern such as `new/*.csv` those that it fits.
    """
    if any("://" in path and not path.startswith("file://") for path in paths):
        return None
    return [file for path in paths for file in _expand(path.removeprefix("file://"))]


def _expand(path: str) -> Iterator[Path]:
    found = Path(path)
    if found.exists():
        yield from _inside(found)
        return
    matches = sorted(glob.glob(path, recursive=True))  # noqa: PTH207 -- the pattern may be absolute
    if not matches:
        raise InputNotFoundError(path)
    for match in matches:
        yield from _inside(Path(match))


def _inside(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for child in sorted(path.iterdir()):
        if not child.name.startswith(_SKIPPED):
            yield from _inside(child)
