"""The data source `instar` of a session: reading and writing tables by the name of a format.

It is what Spark Connect has, and what streams are made of. Where there is a JVM at hand, `table.read(spark)`
and the views of `instar.register` read with Spark's own Parquet reader, which is faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql.datasource import DataSource

from instar.errors import UsageError
from instar.spark.source.part_tasks import spark_schema
from instar.spark.source.sink import BatchSink, StreamSink, begin_sink
from instar.spark.source.stream_source import StreamSource, ask_for_changes
from instar.spark.source.table_options import parse_options
from instar.spark.source.table_scan import TableScan
from instar.spark.workers import use_own_python
from instar.table.read.snapshot import resolve_reader

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType

    from instar.table.read.snapshot import Reader

__all__ = ["InstarSource", "register_source"]


class InstarSource(DataSource):
    """One table of a store, by the options `store` and `table`.

    Reading takes `columns` (names with commas between), `where` (a condition; parts that it rules out are not
    opened), `schema` (an id), `as_of` (a time), and `since` for streams; writing takes `evolve`, `apply`
    (`_diff` tells what to retract) and, for a frame, `token`.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._options = parse_options(options)
        self._reader: Reader | None = None
        self._upper = 0
        self._is_copy = False

    def __getstate__(self) -> dict[str, Any]:
        """Let a copy know that it is one."""
        return {**self.__dict__, "_is_copy": True}

    @classmethod
    def name(cls) -> str:
        """Return what `format` is told."""
        return "instar"

    def schema(self) -> StructType:
        """Choose the reader's schema and time, which stay: the source remembers the ids of its fields."""
        with self._options.open() as (_, log):
            state = log.load()
        self._upper = state.upper
        self._reader = resolve_reader(state, self._options.schema, self._options.columns)
        return spark_schema(self._reader.schema, changes=self._options.changes)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Read the rows."""
        return TableScan(self._options, self._chosen(), self._upper, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 -- Spark's interface
        """Read the updates."""
        if not self._options.changes:
            raise UsageError("a stream reads the changes of a table: add .option('changes', 'true')")
        return StreamSource(self._options, self._chosen(), schema)

    def writer(self, schema: StructType, overwrite: bool) -> BatchSink:  # noqa: FBT001
        """Append a frame."""
        _check_append(overwrite=overwrite)
        return BatchSink(self._options, begin_sink(self._options, schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamSink:  # noqa: FBT001, N802
        """Append a stream: the original begins a write, for the tasks, and a copy commits what they bring."""
        _check_append(overwrite=overwrite)
        return StreamSink(self._options, None if self._is_copy else begin_sink(self._options, schema))

    def _chosen(self) -> Reader:
        if self._reader is None:
            raise UsageError(
                "a table knows its schema: leave out .schema(…), and choose .option('columns', …)"
            )
        return self._reader


def register_source(spark: SparkSession) -> None:
    """Make the source and sink `instar` known to a session."""
    ask_for_changes()
    if hasattr(spark, "_jsparkSession"):  # not a client of Spark Connect
        # Spark looks for a format in the active session, whichever that is: a writer, and also who registers.
        sessions = type(spark)._get_j_spark_session_class(spark._jvm)  # noqa: SLF001
        sessions.setActiveSession(spark._jsparkSession)  # noqa: SLF001
    try:
        use_own_python()
        spark.dataSource.register(InstarSource)
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise


def _check_append(*, overwrite: bool) -> None:
    if overwrite:
        raise UsageError("the format 'instar' only adds rows: write with mode('append')")
