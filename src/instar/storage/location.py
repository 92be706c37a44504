"""From the URLs that people type to the two services of a store.

Opening connects to nothing and creates nothing: the first request finds out whether anybody answers.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from instar.errors import UsageError
from instar.storage.bloblog import BlobConsensus
from instar.storage.consensus import MemoryConsensus
from instar.storage.directory import DirectoryBlob
from instar.storage.objects import ObjectBlob
from instar.storage.urls import hide_password

if TYPE_CHECKING:
    from collections.abc import Mapping

    from instar.storage.blob import Blob
    from instar.storage.consensus import Consensus

__all__ = ["consensus_kind", "open_blob", "open_consensus"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_USER = re.compile(r"([^/:@]*):.*@")  # up to the last @: a password need not be well written
_CLOUDS = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl")
_POSTGRES = ("postgresql", "postgres")


def open_blob(location: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Blob:
    """Open the blob store at a directory or URL.

    A path or `file://` URL is a directory; `memory://name` is shared within the process, and `memory://`
    by nobody; `s3://`, `gs://`, `az://` and their relatives are object stores. `options` are named as the
    clouds' own tools name them (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP` …) and take
    precedence over the environment.
    """
    text = os.fspath(location)
    if not text:
        raise UsageError("the location of a store is empty; name a directory or a URL")
    scheme = _scheme(text)
    if scheme is None:
        _check_path(text)
        return DirectoryBlob(_path(text))
    if scheme == "memory":
        return ObjectBlob.in_memory(_memory_name(text))
    shown = hide_password(text)
    if scheme == "file":
        _check_plain(text)
        return DirectoryBlob(_file_path(text))
    if scheme in _CLOUDS:
        if shown != text:
            raise UsageError(
                f"cannot open {shown}: the URL of an object store has no password; use options, "
                "or variables of the environment such as AWS_SECRET_ACCESS_KEY"
            )
        _check_plain(text)
        return ObjectBlob.open(text, options)
    raise UsageError(
        f"cannot open {shown} as a store of blobs: use a path, "
        f"or one of {_listed('file', 'memory', *_CLOUDS)}"
    )


def open_consensus(location: str | None, blob: Blob, options: Mapping[str, str] | None = None) -> Consensus:
    """Open the consensus service at a URL, or the one inside `blob` if there is no URL.

    `postgresql://…` takes everything that libpq does, and `schema=…` for the schema that holds the log, so
    that several stores can share a database. A path has a `/` in it.
    """
    if location is None:
        return BlobConsensus(blob)
    scheme = _scheme(location)
    if scheme in _POSTGRES:
        from instar.storage.postgres import PostgresConsensus  # noqa: PLC0415 - only who needs it loads libpq

        return PostgresConsensus(location)
    if scheme == "memory":
        name = _memory_name(location)
        return MemoryConsensus() if name is None else MemoryConsensus.named(name)
    if scheme is None:
        _check_path(location)
    if scheme is None and "/" not in location:
        shown = hide_password(location)
        raise UsageError(
            f"consensus={shown!r} is neither a URL nor a path: write postgresql://…, "
            f"or ./{shown} for a directory"
        )
    if scheme is None or scheme == "file" or scheme in _CLOUDS:
        return BlobConsensus(open_blob(location, options))
    raise UsageError(
        f"cannot open {hide_password(location)} for consensus: use postgresql://…, "
        "or nothing to keep it in the store itself"
    )


def consensus_kind(location: str | None) -> str:
    """Name the kind of a consensus location, the same however it is spelt: `blob` is the store itself."""
    scheme = "blob" if location is None else _scheme(location)
    return "postgresql" if scheme in _POSTGRES else scheme or "file"


def _scheme(location: str) -> str | None:
    match = _SCHEME.match(location)
    return match and match[1].lower()


def _check_plain(url: str) -> None:
    """Raise if a URL says more than a place, or says it in a way that some would read as another place."""
    shown = hide_password(url)
    if "?" in url or "#" in url:
        raise UsageError(
            f"cannot open {shown}: the URL of a store ends with its path. Leave out `?` and `#` and what "
            "follows; settings are given as options, or in the environment"
        )
    if {".", ".."}.intersection(unquote(url).split("/")):
        raise UsageError(f"cannot open {shown}: a part of its path is `.` or `..`. Write the path without")


def _check_path(text: str) -> None:
    """Raise if a path reads like a URL that has lost its scheme: it would make a directory of a password."""
    if _USER.match(text):
        shown = _USER.sub(r"\1:…@", text, count=1)
        raise UsageError(
            f"{shown!r} looks like a URL without its scheme: write postgresql://{shown}, or ./{shown} for a "
            "directory of that name"
        )


def _path(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise UsageError(
            f"cannot open {text}: this machine has no such user. "
            "Write the path in full, or ./~… for a directory of that name"
        ) from error


def _file_path(url: str) -> str:
    parts = urlsplit(url)
    if parts.netloc not in {"", "localhost"} or not parts.path.startswith("/"):
        raise UsageError(f"cannot open {hide_password(url)}: write an absolute path, as in file:///data/lake")
    return unquote(parts.path)


def _memory_name(url: str) -> str | None:
    return url.partition("://")[2].strip("/") or None


def _listed(*schemes: str) -> str:
    return ", ".join(f"{scheme}://" for scheme in schemes)
