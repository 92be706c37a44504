"""The JVM behind a Spark session: the few classes and conversions that reading tables needs.

Nothing here knows about tables. Every call into the JVM costs about a millisecond, so what is many is
sent at once.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import Column

from instar.errors import UsageError
from instar.spark.native.callbacks import tend_callbacks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

__all__ = ["Gateway", "gateway_of"]

_FILE: Final = 2  # FileStatusProto.FileType.FT_FILE
_SEPARATOR: Final = "\0"
_VARINT: Final = 0
_BYTES: Final = 2


class Gateway:
    """Typed access to one session's JVM."""

    def __init__(self, spark: SparkSession) -> None:
        context = getattr(spark, "_sc", None)
        if context is None:
            raise UsageError(
                "this session is a Spark Connect client, which has no JVM at hand: "
                "read the table with spark.read.format('instar')"
            )
        self.spark = spark
        self.py4j = context._gateway  # noqa: SLF001 -- PySpark has no public way to its JVM
        self.jvm: Any = self.py4j.jvm
        self.session: Any = spark._jsparkSession  # noqa: SLF001
        self._settings: Any = self.session.sessionState().conf()
        self._context: Any = context._jsc  # noqa: SLF001
        ensure_callback_server_started(self.py4j)  # type: ignore[no-untyped-call]
        tend_callbacks(self.py4j)
        sources = self.jvm.org.apache.spark.sql.execution.datasources
        self.relation = sources.HadoopFsRelation
        self.parquet = sources.parquet.ParquetFileFormat
        self._directory = sources.PartitionDirectory
        self._kept = sources.FileStatusWithMetadata
        self._row = self.jvm.org.apache.spark.sql.catalyst.expressions.GenericInternalRow
        self._status = self.jvm.org.apache.hadoop.fs.FileStatus
        self.file_systems = self.jvm.org.apache.hadoop.fs.FileSystem
        # Looking a class up takes a call for each package that it is in, so those of every query are kept.
        self._utils = self.jvm.org.apache.spark.api.python.PythonUtils
        self._conf = self.jvm.org.apache.spark.sql.internal.SQLConf
        self._data_input = self.jvm.java.io.DataInputStream
        self._bytes_input = self.jvm.java.io.ByteArrayInputStream
        self._array_writable = self.jvm.org.apache.hadoop.io.ArrayWritable
        self._status_class = self.jvm.java.lang.Class.forName("org.apache.hadoop.fs.FileStatus")
        self._system = self.jvm.java.lang.System
        self._none = self.jvm.scala.Option.empty()
        self._data_type = self.jvm.org.apache.spark.sql.types.DataType
        self._path = self.jvm.org.apache.hadoop.fs.Path
        self._expressions = self.jvm.org.apache.spark.sql.classic.ExpressionUtils
        self._literal = self.jvm.org.apache.spark.sql.catalyst.expressions.Literal
        self._unsafe_array = self.jvm.org.apache.spark.sql.catalyst.expressions.UnsafeArrayData
        self._static_invoke = self.jvm.org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
        self._byte_array = self.jvm.java.lang.Class.forName("org.apache.spark.unsafe.types.ByteArray")
        self._byte_buffer = self.jvm.java.nio.ByteBuffer
        self._utf8 = self.jvm.org.apache.spark.unsafe.types.UTF8String
        self._traces = self.jvm.org.apache.commons.lang3.exception.ExceptionUtils
        self._throwable = self.jvm.java.lang.Throwable

    def schema(self, json: str) -> Any:  # noqa: ANN401 -- a Java object
        """Return a Spark schema from its JSON."""
        return self._data_type.fromJson(json)

    def seq(self, items: Sequence[Any]) -> Any:  # noqa: ANN401 -- a Java object
        """Return a Scala sequence."""
        return self._utils.toSeq(list(items))

    def options(self, options: Mapping[str, object]) -> Any:  # noqa: ANN401 -- a Java object
        """Return an immutable Scala map."""
        return self._utils.toScalaMap(options)

    def java_map(self, items: Mapping[str, str]) -> Any:  # noqa: ANN401 -- a Java map
        """Return a map of Java's own."""
        made = self.jvm.java.util.HashMap()
        for name, value in items.items():
            made.put(name, value)
        return made

    def java_list(self, items: Iterable[str]) -> Any:  # noqa: ANN401 -- a Java list
        """Return a list of Java's own."""
        made = self.jvm.java.util.ArrayList()
        for item in items:
            made.add(item)
        return made

    def strings(self, items: Sequence[str]) -> Any:  # noqa: ANN401 -- a Java array
        """Return an array of strings."""
        if not items:
            return self.py4j.new_array(self.jvm.java.lang.String, 0)
        split = self.jvm.org.apache.commons.lang3.StringUtils.splitPreserveAllTokens
        return split(_SEPARATOR.join(items), _SEPARATOR)

    def new_array(self, of: Any, size: int) -> Any:  # noqa: ANN401 -- a Java class, and an array of it
        """Return an array with nothing in it yet."""
        return self.py4j.new_array(of, size)

    def array(self, kind: Any, items: Sequence[Any]) -> Any:  # noqa: ANN401 -- a Java class, a Java array
        """Return an array of a class."""
        made = self.py4j.new_array(kind, len(items))
        for at, item in enumerate(items):
            made[at] = item
        return made

    def lines(self, items: Any) -> list[str]:  # noqa: ANN401 -- a Java array
        """Return what the objects of an array say of themselves, if that has no line breaks."""
        objects = self.py4j.new_array(self.jvm.java.lang.Object, len(items))
        self._system.arraycopy(items, 0, objects, 0, len(items))
        return str(self.jvm.org.apache.commons.lang3.StringUtils.join(objects, "\n")).splitlines()

    def none(self) -> Any:  # noqa: ANN401 -- a Java object
        """Return Scala's None."""
        return self._none

    def some(self, value: object) -> Any:  # noqa: ANN401 -- a Java object
        """Return a value as Scala has one that may be missing."""
        return self.jvm.scala.Option.apply(value)

    def calling(self) -> str:
        """Return what the JVM is in the middle of, as it prints a stack; in a callback, what calls it."""
        return str(self._traces.getStackTrace(self._throwable()))

    def path(self, text: str) -> Any:  # noqa: ANN401 -- a Java object
        """Return a Hadoop path."""
        return self._path(text)

    def directory(
        self,
        values: Sequence[str | int | bytes | None],
        files: Sequence[tuple[str, int, int]],
        keeper: object = None,
    ) -> Any:  # noqa: ANN401 -- a Java object
        """Return files, given as (path, size, number), with the values of their partition columns.

        A file's number is what Spark is told for the time at which it was modified, in milliseconds.

        The first file carries the keeper in its metadata, which is in everything that Spark makes of a
        listing. Only an `EventObject`, which leaves its source behind, can also go to executors.
        """
        row = self.py4j.new_array(self.jvm.java.lang.Object, len(values))
        for at, value in enumerate(values):
            text = isinstance(value, str)
            row[at] = self._utf8.fromString(value) if text else value
        made = self._directory.apply(self._row(row), self.statuses(files))
        if keeper is None or not files:
            return made
        metadata = self.options({"instar": self.jvm.java.util.EventObject(keeper)})
        first = self._kept(made.files().head().fileStatus(), metadata)
        return self._directory(made.values(), made.files().updated(0, first))

    def long_array(self, data: bytes, count: int) -> Column:
        """Return so many big-endian numbers of 64 bits as a constant that Spark indexes in one step."""
        numbers = self.py4j.new_array(self.jvm.long, count)
        self._byte_buffer.wrap(data).asLongBuffer().get(numbers)
        kind = self.schema('{"type": "array", "elementType": "long", "containsNull": false}')
        return self._column(self._literal(self._unsafe_array.fromPrimitiveArray(numbers), kind))

    def text(self, value: str) -> Any:  # noqa: ANN401 -- an expression
        """Return a text as a literal."""
        return self._literal(self._utf8.fromString(value), self.schema('"string"'))

    def first_long(self, binary: Column) -> Column:
        """Return the first eight bytes of a binary as a big-endian number."""
        child = self._expressions.expression(binary._jc)  # noqa: SLF001 -- PySpark has no public way to it
        call = self._static_invoke(
            self._byte_array,
            self.schema('"long"'),
            "getPrefix",
            self.seq([child]),
            self.seq([self.schema('"binary"')]),
            True,  # noqa: FBT003 -- a null gives null
            True,  # noqa: FBT003 -- which may be
            True,  # noqa: FBT003 -- deterministic
            self.none(),
        )
        return self._column(call)

    def not_null(self, column: Column) -> Column:
        """Return a column that is known never to be null, though Spark cannot see it."""
        child = self.jvm.org.apache.spark.sql.classic.ExpressionUtils.expression(column._jc)  # noqa: SLF001
        return self._column(self.jvm.org.apache.spark.sql.catalyst.expressions.KnownNotNull(child))

    def _column(self, expression: Any) -> Column:  # noqa: ANN401 -- a Java object
        return Column(self._expressions.column(expression))

    def settings(self, names: Iterable[str]) -> dict[str, str]:
        """Return those of these settings that the session has."""
        found = {name: self._settings.getConfString(name, None) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    def hadoop_settings(self) -> Any:  # noqa: ANN401 -- a Java object
        """Return a copy of Hadoop's settings, with those of the session."""
        return self.session.sessionState().newHadoopConf()

    def shared_hadoop_settings(self) -> Any:  # noqa: ANN401 -- a Java object
        """Return Hadoop's settings of the whole application, which its executors get."""
        return self._context.hadoopConfiguration()

    def time_zone(self) -> str:
        """Return the time zone of the session of the running query."""
        return str(self._conf.get().sessionLocalTimeZone())

    def statuses(self, files: Sequence[tuple[str, int, int]]) -> Any:  # noqa: ANN401 -- a Java array
        """Make all file statuses in one call: Hadoop reads them from bytes, in its own wire format."""
        data = struct.pack(">i", len(files)) + b"".join(_status(*file) for file in files)
        read = self._array_writable(self._status_class)
        read.readFields(self._data_input(self._bytes_input(data)))
        statuses = self.py4j.new_array(self._status, len(files))
        self._system.arraycopy(read.get(), 0, statuses, 0, len(files))
        return statuses


_gateways: WeakKeyDictionary[SparkSession, Gateway] = WeakKeyDictionary()


def gateway_of(spark: SparkSession) -> Gateway:
    """Return the gateway of a session, made once."""
    found = _gateways.get(spark)
    if found is None:
        found = _gateways[spark] = Gateway(spark)
    return found


def _status(path: str, size: int, number: int) -> bytes:
    """Encode a `FileStatusProto`: type, path, length, permission, owner, group, modification time."""
    name = path.encode()
    message = b"".join(
        (
            _tag(1, _VARINT) + _varint(_FILE),
            _tag(2, _BYTES) + _varint(len(name)) + name,
            _tag(3, _VARINT) + _varint(size),
            _CONSTANT,
            _tag(7, _VARINT) + _varint(number),
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
    )
)
