"""Streams without an engine: many tables with one history of schemas, and what brings them to it."""

from instar.stream.handle import StreamHandle, list_streams
from instar.stream.kinds import Kind, as_kind
from instar.stream.period import as_micros
from instar.stream.version import Version, as_version
from instar.stream.writing import StreamCommit

__all__ = [
    "Kind",
    "StreamCommit",
    "StreamHandle",
    "Version",
    "as_kind",
    "as_micros",
    "as_version",
    "list_streams",
]
