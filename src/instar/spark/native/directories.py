"""Files as Spark lists them: directories, each with the values of its partition columns.

Every call into the JVM costs about a millisecond, so all files of a listing are sent at once.
"""

from __future__ import annotations

import struct
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from instar.spark.native.file_index import FileGroup
    from instar.spark.native.gateway import Gateway

__all__ = ["Directories"]

_FILE: Final = 2  # FileStatusProto.FileType.FT_FILE
_VARINT: Final = 0
_BYTES: Final = 2


class Directories:
    """Makes the directories of one session. Looking classes up takes calls too, so they are kept."""

    def __init__(self, gateway: Gateway) -> None:
        jvm = gateway.jvm
        sources = jvm.org.apache.spark.sql.execution.datasources
        self._gateway = gateway
        self._one = sources.PartitionDirectory
        self._kept = sources.FileStatusWithMetadata
        self._row = jvm.org.apache.spark.sql.catalyst.expressions.GenericInternalRow
        self._status = jvm.org.apache.hadoop.fs.FileStatus
        self._data_input = jvm.java.io.DataInputStream
        self._bytes_input = jvm.java.io.ByteArrayInputStream
        self._array_writable = jvm.org.apache.hadoop.io.ArrayWritable
        self._status_class = jvm.java.lang.Class.forName("org.apache.hadoop.fs.FileStatus")
        self._object = jvm.java.lang.Object
        self._system = jvm.java.lang.System
        self._utf8 = jvm.org.apache.spark.unsafe.types.UTF8String
        self._event = jvm.java.util.EventObject

    def of(self, groups: Sequence[FileGroup], keeper: object = None) -> Any:  # noqa: ANN401 -- a Scala sequence
        """Return the files of groups.

        The first file of a group carries the keeper in its metadata, which is in everything that Spark makes
        of a listing. Only an `EventObject`, which leaves its source behind, can also go to executors.
        """
        metadata = self._gateway.options({} if keeper is None else {"instar": self._event(keeper)})
        made = [self._list(group, metadata) for group in groups if group.files and group.numbers]
        plain = [self._directory(group, metadata) for group in groups if group.files and not group.numbers]
        listed = self._gateway.seq(plain)
        for own in made:
            listed = listed.concat(own)
        return listed

    def _directory(self, group: FileGroup, metadata: Any) -> Any:  # noqa: ANN401 -- Java objects
        made = self._one.apply(self._row(self._values(group)), self._statuses(group))
        if metadata.isEmpty():
            return made
        first = self._kept(made.files().head().fileStatus(), metadata)
        return self._one(made.values(), made.files().updated(0, first))

    def _list(self, group: FileGroup, metadata: Any) -> Any:  # noqa: ANN401 -- Java objects
        """Return a directory for each file of a group, with the file's own numbers."""
        count = len(group.numbers) * len(group.numbers[0])
        numbers = struct.pack(f">{count}q", *chain.from_iterable(group.numbers))
        none = self._gateway.options({})
        return self._gateway.taken.list(self._statuses(group), numbers, self._values(group), none, metadata)

    def _values(self, group: FileGroup) -> Any:  # noqa: ANN401 -- a Java array
        row = self._gateway.new_array(self._object, len(group.values))
        for at, value in enumerate(group.values):
            row[at] = self._utf8.fromString(value) if isinstance(value, str) else value
        return row

    def _statuses(self, group: FileGroup) -> Any:  # noqa: ANN401 -- a Java array
        """Make all file statuses in one call: Hadoop reads them from bytes, in its own wire format."""
        count = len(group.files)
        data = struct.pack(">i", count) + b"".join(_status(*file) for file in group.files)
        read = self._array_writable(self._status_class)
        read.readFields(self._data_input(self._bytes_input(data)))
        statuses = self._gateway.new_array(self._status, count)
        self._system.arraycopy(read.get(), 0, statuses, 0, count)
        return statuses


def _status(path: str, size: int) -> bytes:
    """Encode a `FileStatusProto`: type, path, length, permission, owner, group, modification time."""
    name = path.encode()
    message = b"".join(
        (
            _tag(1, _VARINT) + _varint(_FILE),
            _tag(2, _BYTES) + _varint(len(name)) + name,
            _tag(3, _VARINT) + _varint(size),
            _CONSTANT,
        )
    )
    return struct.pack(">i", len(message)) + message


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:  # noqa: PLR2004 -- seven bits a byte
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _tag(field: int, wire_type: int) -> bytes:
    return _varint(field << 3 | wire_type)


_PERMISSION: Final = _tag(1, _VARINT) + _varint(0o644)
_CONSTANT: Final = b"".join(
    (
        _tag(4, _BYTES) + _varint(len(_PERMISSION)) + _PERMISSION,
        _tag(5, _BYTES) + _varint(0),
        _tag(6, _BYTES) + _varint(0),
        _tag(7, _VARINT) + _varint(0),
    )
)
