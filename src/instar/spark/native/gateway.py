"""The JVM behind a Spark session: the few classes and conversions that reading tables needs.

Nothing here knows about tables. Every call into the JVM costs about a millisecond, so what is many is
sent at once.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import Column

from instar.errors import UsageError
from instar.spark.native.callbacks import tend_callbacks
from instar.spark.native.directories import Directories
from instar.spark.native.java import compiled_object
from instar.spark.native.settings import READ_OPTIONS, SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["Gateway", "gateway_of"]

_SEPARATOR: Final = "\0"


class Gateway:
    """Typed access to one session's JVM."""

    def __init__(self, spark: SparkSession) -> None:
        context = getattr(spark, "_sc", None)
        if context is None:
            raise UsageError(
                "this session is a Spark Connect client, which has no JVM at hand: read tables with "
                "spark.read.format('instar'), write with it or with table.append, and change rows in this "
                "process, without a session: table.delete(condition), table.merge(frame.toArrow(), on=…)"
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
        self.file_systems = self.jvm.org.apache.hadoop.fs.FileSystem
        # Looking a class up takes a call for each package that it is in, so those of every query are kept.
        # So are methods: each look for one is a call, too.
        utils = self.jvm.org.apache.spark.api.python.PythonUtils
        self._seq, self._scala_map = utils.toSeq, utils.toScalaMap
        self._split = self.jvm.org.apache.commons.lang3.StringUtils.splitPreserveAllTokens
        self._conf = self.jvm.org.apache.spark.sql.internal.SQLConf
        self._system = self.jvm.java.lang.System
        self._none = self.jvm.scala.Option.empty()
        self._schema = self.jvm.org.apache.spark.sql.types.DataType.fromJson
        self._path = self.jvm.org.apache.hadoop.fs.Path
        self._expressions = self.jvm.org.apache.spark.sql.classic.ExpressionUtils
        self._literal = self.jvm.org.apache.spark.sql.catalyst.expressions.Literal
        self._static_invoke = self.jvm.org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
        self._byte_array = self.jvm.java.lang.Class.forName("org.apache.spark.unsafe.types.ByteArray")
        self._utf8 = self.jvm.org.apache.spark.unsafe.types.UTF8String
        self._traces = self.jvm.org.apache.commons.lang3.exception.ExceptionUtils
        self._throwable = self.jvm.java.lang.Throwable

    @cached_property
    def taken(self) -> Any:  # noqa: ANN401 -- a Java object
        """What leaves out rows by position."""
        return compiled_object(self.py4j, "taken.java", "instar.taken.Taken")

    @cached_property
    def relations(self) -> Any | None:  # noqa: ANN401 -- a Java object
        """What makes relations over files, and tells of queries; None if it cannot be compiled."""
        try:
            sessions = compiled_object(self.py4j, "relations.java", "instar.relations.Sessions")
        except UsageError:
            return None
        return sessions.of(self.session, self.java_list(SETTINGS), self.java_map(READ_OPTIONS))

    @cached_property
    def directories(self) -> Directories:
        """What files are listed with."""
        return Directories(self)

    def schema(self, json: str) -> Any:  # noqa: ANN401 -- a Java object
        """Return a Spark schema from its JSON."""
        return self._schema(json)

    def seq(self, items: Sequence[Any]) -> Any:  # noqa: ANN401 -- a Java object
        """Return a Scala sequence."""
        return self._seq(list(items))

    def options(self, options: Mapping[str, object]) -> Any:  # noqa: ANN401 -- a Java object
        """Return an immutable Scala map."""
        return self._scala_map(options)

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
        return self._split(_SEPARATOR.join(items), _SEPARATOR)

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

    def statement(self) -> str:
        """Return the statement that the JVM is in the middle of, as it was written, if there is one."""
        text = self.jvm.org.apache.spark.sql.catalyst.trees.CurrentOrigin.get().sqlText()
        return "" if text.isEmpty() else str(text.get())

    def path(self, text: str) -> Any:  # noqa: ANN401 -- a Java object
        """Return a Hadoop path."""
        return self._path(text)

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

    def add_jar(self, path: Path) -> None:
        """Give classes to all executors of the application."""
        self._context.sc().addJar(path.as_uri())

    def time_zone(self) -> str:
        """Return the time zone of the session of the running query."""
        return str(self._conf.get().sessionLocalTimeZone())


_gateways: WeakKeyDictionary[SparkSession, Gateway] = WeakKeyDictionary()
_lock = threading.RLock()


def gateway_of(spark: SparkSession) -> Gateway:
    """Return the gateway of a session, made once.

    One at a time: the first of a JVM starts the server that takes its calls, and PySpark does not look
    whether another thread is about to. Of two servers, the connections of one would never be closed.
    """
    with _lock:
        found = _gateways.get(spark)
        if found is None:
            found = _gateways[spark] = Gateway(spark)
        return found
