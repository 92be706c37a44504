"""Where Spark finds the files of a store: the file system that a session has for the store's URL.

Stores are opened at `s3://`, `gs://` and `az://`; Hadoop calls S3 `s3a` and Azure `abfss`. What opened the
store (endpoint, region, credentials) is told to Spark for that bucket alone, and only where the session's
own settings say nothing: what a user has configured wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JJavaError

from instar.errors import FileSystemMissingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from instar.spark.native.gateway import Gateway
    from instar.storage import Blob

__all__ = ["FileSystem", "connector", "find_file_system", "locator", "translator"]

_S3A: Final = "org.apache.hadoop.fs.s3a"
_NAMES: Final = {
    "s3": ("s3", "s3a"),
    "s3a": ("s3a", "s3"),
    "gs": ("gs",),
    "az": ("abfss",),
    "azure": ("abfss",),
    "abfs": ("abfs", "abfss"),
    "abfss": ("abfss",),
}
"""The schemes under which a session may have a file system for a store's scheme, the first that loads."""
_CONNECTORS: Final = {
    "s3": "org.apache.hadoop:hadoop-aws:{hadoop}",
    "gs": "com.google.cloud.bigdataoss:gcs-connector:hadoop3-2.2.26",
    "az": "org.apache.hadoop:hadoop-azure:{hadoop}",
}
_DEFAULTS: Final = "-default.xml"


@dataclass(frozen=True)
class FileSystem:
    """The file system of a session for one store: what its files are called there."""

    scheme: str | None
    """The scheme that Spark is given, or None if the session has no file system for the store."""
    root: str
    """The store's root, as Spark knows it."""
    why: str = ""
    """Why there is none."""


_found: WeakKeyDictionary[Gateway, dict[str, FileSystem]] = WeakKeyDictionary()


def find_file_system(gateway: Gateway, blob: Blob) -> FileSystem:
    """Return the file system of a session for a store, and tell it once how the store was opened."""
    known = _found.setdefault(gateway, {})
    url = blob.url
    if url not in known:
        known[url] = _ask(gateway, url, blob.settings)
    return known[url]


def locator(gateway: Gateway, blob: Blob) -> Callable[[str], str]:
    """Return how Spark finds an object of a store, by its key."""
    system = find_file_system(gateway, blob)
    if system.scheme is None:
        raise FileSystemMissingError(blob.url, connector(gateway, blob.url), system.why)
    if system.root == blob.url:
        return blob.location
    return lambda key: f"{system.root}{blob.location(key).removeprefix(blob.url)}"


def translator(gateway: Gateway, blob: Blob) -> Callable[[str], str]:
    """Return how Spark finds a file anywhere, by its path or URL, such as one of the same service."""
    system = find_file_system(gateway, blob)
    own = urlsplit(blob.url).scheme

    def translate(url: str) -> str:
        return f"{system.scheme}{url[len(own) :]}" if own in _NAMES and url.startswith(f"{own}://") else url

    return translate


def connector(gateway: Gateway, url: str) -> str:
    """Return the package that gives a session the file system for a URL, for the Hadoop that it has."""
    family = _family(urlsplit(url).scheme)
    hadoop = gateway.jvm.org.apache.hadoop.util.VersionInfo.getVersion()
    return _CONNECTORS.get(family, "").format(hadoop=hadoop)


def _ask(gateway: Gateway, url: str, settings: Mapping[str, str]) -> FileSystem:
    parts = urlsplit(url)
    if parts.scheme not in _NAMES:
        return FileSystem("file", url)
    why = "none is configured"
    for scheme in _NAMES[parts.scheme]:
        conf = gateway.hadoop_settings()
        if scheme == "s3" and not _is_own(conf, "fs.s3.impl"):
            continue  # only some vendors' clusters have it
        root = _root(scheme, url, settings)
        try:
            gateway.file_systems.getFileSystemClass(scheme, conf)
            _tell(gateway, conf, scheme, parts.netloc, settings)
            gateway.file_systems.get(gateway.path(root).toUri(), gateway.hadoop_settings())
        except Py4JJavaError as error:
            why = _reason(error)
        else:
            return FileSystem(scheme, root)
    return FileSystem(None, url, why)


def _root(scheme: str, url: str, settings: Mapping[str, str]) -> str:
    parts = urlsplit(url)
    account = settings.get("azure_storage_account_name")
    if scheme in ("abfs", "abfss") and "@" not in parts.netloc and account:
        return f"{scheme}://{parts.netloc}@{account}.dfs.core.windows.net{parts.path}"
    return f"{scheme}{url[len(parts.scheme) :]}"


def _tell(
    gateway: Gateway,
    conf: Any,  # noqa: ANN401 -- a Java object
    scheme: str,
    bucket: str,
    settings: Mapping[str, str],
) -> None:
    """Hand on how the store was opened, for its bucket, wherever the session says nothing of its own."""
    shared = gateway.shared_hadoop_settings()
    if scheme == "s3a":
        prefix = f"fs.s3a.bucket.{bucket}."
        has_credentials = any(
            _is_own(conf, f"{start}{name}")
            for start in ("fs.s3a.", prefix)
            for name in ("access.key", "secret.key", "aws.credentials.provider")
        )
        for name, value in _s3a_settings(settings, credentials=not has_credentials):
            if not _is_own(conf, f"fs.s3a.{name}") and not _is_own(conf, prefix + name):
                shared.set(prefix + name, value)
    elif scheme in ("abfs", "abfss"):
        account, key = (settings.get(f"azure_storage_account_{name}") for name in ("name", "key"))
        name = f"fs.azure.account.key.{account}.dfs.core.windows.net"
        if account and key and not _is_own(conf, name):
            shared.set(name, key)


def _s3a_settings(settings: Mapping[str, str], *, credentials: bool) -> Iterator[tuple[str, str]]:
    endpoint = settings.get("aws_endpoint") or settings.get("aws_endpoint_url")
    endpoint = settings.get("aws_endpoint_url_s3") or endpoint
    region = settings.get("aws_region") or settings.get("aws_default_region")
    virtual = settings.get("aws_virtual_hosted_style_request", "false").lower() == "true"
    if endpoint:
        yield "endpoint", endpoint
        yield "path.style.access", "false" if virtual else "true"
        yield "connection.ssl.enabled", "false" if endpoint.startswith("http://") else "true"
    if region:
        yield "endpoint.region", region
    if not credentials:
        return
    key, secret = settings.get("aws_access_key_id"), settings.get("aws_secret_access_key")
    token = settings.get("aws_session_token") or settings.get("aws_token")
    if settings.get("aws_skip_signature", "false").lower() == "true":
        yield "aws.credentials.provider", f"{_S3A}.AnonymousAWSCredentialsProvider"
    elif key and secret:
        kind = "TemporaryAWSCredentialsProvider" if token else "SimpleAWSCredentialsProvider"
        yield "aws.credentials.provider", f"{_S3A}.{kind}"
        yield "access.key", key
        yield "secret.key", secret
        if token:
            yield "session.token", token


def _is_own(conf: Any, name: str) -> bool:  # noqa: ANN401 -- a Java object
    """Whether a setting is the user's, and not one of Hadoop's own defaults."""
    sources = conf.getPropertySources(name)
    return sources is not None and len(sources) > 0 and not str(sources[-1]).endswith(_DEFAULTS)


def _family(scheme: str) -> str:
    return {"s3a": "s3", "azure": "az", "abfs": "az", "abfss": "az"}.get(scheme, scheme)


def _reason(error: Py4JJavaError) -> str:
    """Return what Java said, in one line: the innermost cause has the class that is missing."""
    cause: Any = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    name = str(cause.getClass().getSimpleName())
    return f"{name}: {str(cause.getMessage()).splitlines()[0]}" if cause.getMessage() else name
