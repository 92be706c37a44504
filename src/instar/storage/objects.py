"""Blobs in memory and in the object stores that `obstore` speaks to: S3, Google Cloud Storage, Azure.

Nothing of obstore leaves this module: neither its types nor its errors.
"""

# The protocol documents the methods.
# ruff: noqa: D102

from __future__ import annotations

import os
import re
from bisect import bisect_right
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    GenericError,
    JoinError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import MemoryStore, from_url

from instar.errors import (
    CorruptTableError,
    NotFoundError,
    StorageDeniedError,
    StorageError,
    StorageTimeoutError,
    StorageUnsupportedError,
    UsageError,
)
from instar.storage.blob import Blob, Data, StoredObject
from instar.storage.credentials import carried, profile_settings, taken
from instar.storage.keys import check_key, check_prefix
from instar.storage.parallel import map_in_threads

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from obstore import ObjectMeta
    from obstore.store import ObjectStore

__all__ = ["ObjectBlob"]

_PARALLEL = 16
_NEAR = 1 << 20  # bytes; obstore's own measure, so that it finds nothing left to merge
_RETRIES = 5
_CONFLICTS = 5

# What proves that a request was not carried out: it was refused, it could not be put together, or nobody
# was there to send it to.
_REFUSED = re.compile(r"status code: (?:4(?!08)\d\d|501)|builder error|tcp connect error|dns error")
_UNSUPPORTED = re.compile(r"status code: 501")
# After a retry the last answer says nothing about the requests before it.
_RETRIED = re.compile(r"after \d+ retries")

_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|specified (?:bucket|container) does not exist")

# What to do about errors whose own words do not tell.
_HINTS = (
    (re.compile(r"http://.*builder error"), "If the endpoint speaks plain HTTP, set AWS_ALLOW_HTTP=true"),
    (
        re.compile(r"/169\.254\.169\.254/"),
        "Give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true for a public bucket",
    ),
    (_NO_BUCKET, "Create the bucket, or check its name: instar does not create buckets"),
)

_FOREIGN = (BaseError, OSError, ValueError, NotImplementedError)

# Settings of the HTTP client, which obstore wants apart from those of the store.
_CLIENT_SETTING = re.compile(
    r"(?:aws_|google_|azure_)?"
    r"(allow_http|allow_invalid_certificates|timeout|connect_timeout|proxy_url|proxy_excludes|user_agent)",
    re.IGNORECASE,
)

# What the settings of each kind of store begin with, in the environment and in full.
_AWS = "aws_"
_PROFILES = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")
_CLOUDS = {
    "s3": _AWS,
    "s3a": _AWS,
    "gs": "google_",
    "az": "azure_",
    "azure": "azure_",
    "abfs": "azure_",
    "abfss": "azure_",
}

_memory: dict[str, MemoryStore] = {}


class ObjectBlob:
    """The `Blob` of an object store, or of this process's memory.

    A conditional put goes through a client that never repeats a request: if the first try landed and its
    answer was lost, the second would find its own object and report that somebody else was first.
    """

    def __init__(self, url: str, store: ObjectStore, once: ObjectStore, options: Mapping[str, str]) -> None:
        self._url = url if url.endswith("://") else url.rstrip("/")
        self._store = store
        self._once = once
        self._options = dict(options)

    @classmethod
    def open(cls, url: str, options: Mapping[str, str] | None = None) -> Self:
        """Open a URL that obstore knows; settings that are not in `options` come from the environment.

        On S3, what neither says comes from a profile of AWS's tools.
        """
        given = dict(options or {})
        if _CLOUDS.get(url.partition(":")[0].lower()) == _AWS:
            given = {**profile_settings(given, os.environ), **given}
        given = {name: text for name, text in given.items() if name.upper() not in _PROFILES}
        config: Any = {name: value for name, value in given.items() if not _client_setting(name)}
        client: Any = _client_settings(given)
        try:
            store = from_url(
                url, config=config, client_options=client, retry_config={"max_retries": _RETRIES}
            )
            once = from_url(url, config=config, client_options=client, retry_config={"max_retries": 0})
        except (*_FOREIGN, TypeError) as error:
            raise UsageError(f"cannot open {url}: {_brief(error)}") from error
        return cls(url, store, once, given)

    @classmethod
    def arrive(cls, url: str, options: Mapping[str, str], told: Mapping[str, str]) -> Self:
        """Open what was open in another process, whose environment said some things that this one may not."""
        known = {**os.environ, **{name.upper(): text for name, text in options.items()}}
        return cls.open(url, {**taken(told, known), **options})

    @classmethod
    def in_memory(cls, name: str | None = None) -> Self:
        """Open the memory of that name, the same for the whole process; without a name, one of its own."""
        store = MemoryStore() if name is None else _memory.setdefault(name, MemoryStore())
        return cls(f"memory://{name or ''}", store, store, {})

    def __repr__(self) -> str:
        return f"ObjectBlob({self._url!r})"

    def __reduce__(self) -> tuple[object, tuple[str, dict[str, str], dict[str, str]]]:
        if isinstance(self._store, MemoryStore):
            raise UsageError(f"{self._url} lives in the memory of one process and cannot be sent to another")
        return type(self).arrive, (self._url, self._options, carried(os.environ))

    @property
    def url(self) -> str:
        return self._url

    @property
    def seeks(self) -> bool:
        return True

    @property
    def settings(self) -> Mapping[str, str]:
        cloud = _CLOUDS.get(self._url.partition(":")[0], "")
        found = {name.lower(): text for name, text in os.environ.items() if name.startswith(cloud.upper())}
        for name, text in self._options.items():
            plain = name.lower()
            found[plain if plain.startswith(cloud) else cloud + plain] = text
        return found if cloud else {}

    def location(self, key: str) -> str:
        check_key(key)
        return f"{self._url}/{key}"

    def elsewhere(self, url: str) -> Blob:
        return type(self).open(url, self._options)

    def put(self, key: str, data: Data, *, durable: bool = True) -> None:  # noqa: ARG002 -- a store always is
        where = self.location(key)
        with _translated(f"writing {where}"):
            obstore.put(self._store, key, data)

    def put_if_absent(self, key: str, data: Data) -> bool:
        where = self.location(key)
        for _ in range(_CONFLICTS):
            try:
                with _translated(f"creating {where}"):
                    obstore.put(self._once, key, data, mode="create")
            except _TakenError:
                # S3 answers with a conflict, too, when another request for the key is under way.
                # Then nothing was written, and perhaps nothing will be: only what exists is taken.
                if self.stat(key) is not None:
                    return False
            else:
                return True
        raise StorageError(f"creating {where}", "other requests for the same key kept getting in the way")

    def find(self, key: str) -> bytes | None:
        where = self.location(key)
        with _translated(f"reading {where}"):
            try:
                return bytes(obstore.get(self._store, key).bytes())
            except FileNotFoundError as error:
                if _NO_BUCKET.search(str(error)):
                    raise
                return None

    def find_many(self, keys: Sequence[str]) -> Sequence[bytes | None]:
        if len(keys) <= 1 or isinstance(self._store, MemoryStore):
            return [self.find(key) for key in keys]
        return map_in_threads(self.find, keys, threads=_PARALLEL)

    def get(self, key: str) -> bytes:
        data = self.find(key)
        if data is None:
            raise self._not_found(key)
        return data

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> Sequence[bytes]:
        where = self.location(key)
        spans = _merge(ranges)
        starts = [start for start, _ in spans]
        ends = [end for _, end in spans]
        try:
            with _translated(f"reading {where}"):
                try:
                    found = obstore.get_ranges(self._store, key, starts=starts, ends=ends)
                except FileNotFoundError:
                    raise self._not_found(key) from None
        except StorageError:
            # Stores do not agree on how to refuse a range that is not there.
            self._check_size(key, ends)
            raise
        if any(len(data) != end - start for data, (start, end) in zip(found, spans, strict=True)):
            self._check_size(key, ends)
            raise StorageError(f"reading {where}", "the store sent fewer bytes than it has")
        pieces = []
        for offset, length in ranges:
            if length:
                span = bisect_right(starts, offset) - 1
                begin = offset - starts[span]
                pieces.append(bytes(memoryview(found[span])[begin : begin + length]))
            else:
                pieces.append(b"")
        return pieces

    def stat(self, key: str) -> StoredObject | None:
        where = self.location(key)
        with _translated(f"looking for {where}"):
            try:
                return _stored(obstore.head(self._store, key))
            except FileNotFoundError:
                return None

    def delete(self, keys: Iterable[str]) -> None:
        doomed = list(keys)
        for key in doomed:
            check_key(key)
        with _translated(f"deleting {len(doomed)} objects in {self._url}"):
            try:
                obstore.delete(self._store, doomed)
            except FileNotFoundError:
                # Some stores stop at what is already gone.
                for key in doomed:
                    with suppress(FileNotFoundError):
                        obstore.delete(self._store, key)

    def list(self, prefix: str = "", start_after: str | None = None) -> Iterator[StoredObject]:
        prefix = check_prefix(prefix)
        if start_after is not None:
            check_key(start_after)
        return self._list(prefix, start_after)

    def list_prefixes(self, prefix: str = "") -> Iterator[str]:
        prefix = check_prefix(prefix)
        with _translated(f"listing {self._url}/{prefix}"):
            return iter(sorted(obstore.list_with_delimiter(self._store, prefix or None)["common_prefixes"]))

    def list_unfinished(self) -> Iterator[StoredObject]:
        """List nothing: an object store hides unfinished uploads, and its own rules remove them."""
        return iter(())

    def _list(self, prefix: str, start_after: str | None) -> Iterator[StoredObject]:
        with _translated(f"listing {self._url}/{prefix}"):
            for chunk in obstore.list(self._store, prefix or None, offset=start_after, chunk_size=1000):
                yield from map(_stored, chunk)

    def _check_size(self, key: str, ends: Sequence[int]) -> None:
        stored = self.stat(key)
        if stored is not None and stored.size < ends[-1]:
            raise CorruptTableError(self.location(key), f"it ends before byte {ends[-1]}")

    def _not_found(self, key: str) -> NotFoundError:
        return NotFoundError(f"there is no object {self.location(key)}")


class _TakenError(Exception):
    """The store says that the key is taken."""


@contextmanager
def _translated(operation: str) -> Iterator[None]:
    """Turn what obstore raises into the two errors of a store: it did not happen, it is not known."""
    try:
        yield
    except AlreadyExistsError as error:
        raise _TakenError from error
    except (GenericError, JoinError) as error:
        text = str(error)
        certain = _REFUSED.search(text) and not _RETRIED.search(text)
        if certain and _UNSUPPORTED.search(text):
            raise StorageUnsupportedError(operation, _brief(error)) from error
        raise (StorageError if certain else StorageTimeoutError)(operation, _brief(error)) from error
    except TimeoutError as error:
        raise StorageTimeoutError(operation, _brief(error)) from error
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise StorageDeniedError(operation, _brief(error)) from error
    except _FOREIGN as error:
        raise StorageError(operation, _brief(error)) from error


def _merge(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans (start, end) to ask for, in order: what lies between near ranges is read along.

    obstore would merge them too, but dies of a panic if the object then ends too early.
    """
    spans: list[tuple[int, int]] = []
    for offset, length in sorted(ranges):
        if spans and offset - spans[-1][1] <= _NEAR:
            spans[-1] = (spans[-1][0], max(spans[-1][1], offset + length))
        elif length:
            spans.append((offset, offset + length))
    return spans


def _client_setting(name: str) -> str | None:
    match = _CLIENT_SETTING.fullmatch(name)
    return match and match[1].lower()


def _client_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Collect the client's settings, from the environment too: obstore forgets those once it is given any."""
    named = {
        name: value for name, value in os.environ.items() if name.startswith(("AWS_", "GOOGLE_", "AZURE_"))
    }
    named |= options
    return {setting: value for name, value in named.items() if (setting := _client_setting(name))}


def _brief(error: BaseException) -> str:
    """Return what an error says without obstore's debugging output and the markup of a store's answer.

    What to do about it follows, where that is known.
    """
    text = str(error).partition("\n\nDebug source")[0]
    hint = next((f". {hint}" for pattern, hint in _HINTS if pattern.search(text)), "")
    message = re.search(r"<\?xml.*<Message>(.*?)</Message>", text, re.DOTALL)
    if message:
        text = text[: message.start()] + message[1]
    return (text.strip() or type(error).__name__) + hint


def _stored(meta: ObjectMeta) -> StoredObject:
    return StoredObject(meta["path"], meta["size"], meta["last_modified"])
