"""`Stream`: a family of tables with one history of schemas."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import pyarrow as pa

from instar.api.checking import judge_alive
from instar.api.protobuf import write_records
from instar.api.quarantine import retry_records
from instar.api.stream_reports import report_stream
from instar.api.writing import is_spark_frame
from instar.compat import load_version
from instar.errors import UsageError
from instar.parts import conform, open_stream
from instar.schema import Schema, arrow_schema, as_schema
from instar.schema.arrow import schema_from_arrow
from instar.stream import Version, as_kind, as_micros, as_version
from instar.stream.batches import SINK_PREFIX
from instar.stream.jobs import archive_tables, close_day, copy_in_process, repartition_tables
from instar.stream.merge import loosen
from instar.stream.period import show_time
from instar.stream.protobuf import add_protobuf
from instar.stream.reading import (
    Span,
    find_cut,
    hold_tables,
    load_states,
    plan_tables,
    read_tables,
    stream_reader,
)
from instar.stream.stamp import load_stamp
from instar.stream.writing import write_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import date, datetime

    from pyspark.sql import DataFrame, SparkSession

    from instar.api.protobuf import ProtobufCommit
    from instar.api.quarantine import QuarantineRetry
    from instar.api.writing import Data
    from instar.compat import Judgement
    from instar.schema import SchemaLike
    from instar.stream import Kind, StreamCommit, StreamHandle
    from instar.stream.catalog import VersionRecord
    from instar.stream.jobs import Copying

__all__ = ["Stream", "StreamSnapshot", "StreamTable"]


class StreamTable(NamedTuple):
    """One table of a stream, as it was at the time of the call."""

    name: str
    """The name of the table in the store."""
    kind: str
    """What the table is for: hourly, regular, repartitioned, eod or archive."""
    start: date | datetime | None
    """Where its time begins; None for the table `unplaced`."""
    version: Version
    """The version that it is stamped with."""
    versions: tuple[Version, ...]
    """The versions that were written to it."""
    rows: int
    """How many rows it holds."""


class Stream:
    """One stream. Every call answers for the present."""

    def __init__(self, handle: StreamHandle) -> None:
        self._handle = handle

    @property
    def name(self) -> str:
        """The name of the stream."""
        return self._handle.name

    @property
    def max_version(self) -> Version:
        """The highest version that was written or declared. It only grows."""
        return self._handle.load().max_version

    @property
    def versions(self) -> dict[Version, Schema]:
        """Every version that is known, with its own schema, from the lowest to the highest."""
        known = self._handle.load().versions
        return {version: known[version].schema for version in sorted(known)}

    @property
    def schema(self) -> Schema:
        """The schema that all tables come to have. The highest version that has a column defines it."""
        return self._handle.load().schema

    @property
    def kinds(self) -> dict[str, str]:
        """The kinds of tables, with the period of each."""
        return {kind.value: str(period) for kind, period in self._handle.known().layout.periods.items()}

    @property
    def table_count(self) -> int:
        """How many tables the stream knows, without looking at them."""
        return len(self._handle.known().tables)

    def evolve(self, schema: SchemaLike, version: str) -> Version:
        """Declare a version, and return the highest one that is known.

        A version has one schema forever: the same again changes nothing, another raises
        `VersionConflictError`. Columns are matched by name; to rename one, give an instar `Schema`, which is
        matched by its ids. No row of any version may be lost: a change to a type that is not wider raises
        `IncompatibleSchemaError`. Versions may come in any order.
        """
        given = as_schema(schema)
        return self._handle.add_version(version, given, by_id=isinstance(schema, Schema)).max_version

    def write(self, data: Data, version: str | None = None, token: str | None = None) -> StreamCommit:
        """Add rows to the tables of their event time: regular ones, and hourly ones if the stream has them.

        Without a version, rows have the highest one. An unknown version is declared with the schema of the
        data; its columns may be null unless the stream has them as not null. Older versions may be written at
        any time. All tables get their rows, or none; with a token, calling again does nothing and returns the
        result of the first call.
        """
        if is_spark_frame(data):
            from instar.spark import incoming_schema, write_stream_frame  # noqa: PLC0415 -- only then

            record = self._version(version, incoming_schema(data.schema))
            write = partial(write_stream_frame, self._handle, record, data, token)
        else:
            stream = open_stream(data, self._handle.known().schema)
            record = self._version(version, stream.schema)
            write = partial(write_batches, self._handle, record, conform(stream, record.schema), token)
        return report_stream(self._handle, "write", write, data=data)

    def evolve_protobuf(
        self,
        source: str | Path,
        version: str,
        *,
        message: str | None = None,
        includes: Sequence[str | Path] = (),
    ) -> Version:
        """Declare a version whose records are protobuf, and return the highest one that is known.

        `source` is a `.proto` file, or descriptors that `protoc -o` made; `includes` are the folders that it
        imports from. `message` names the message of a record, if the file has more than one. Columns belong
        to field numbers, so a renamed field is a renamed column.
        """
        from instar.compat.protobuf.compile import load_encoding  # noqa: PLC0415 -- an extra

        folders = [Path(folder) for folder in includes]
        encoding = load_encoding(Path(source), includes=folders, message=message)
        return add_protobuf(self._handle, version, encoding).max_version

    def check(
        self,
        new: str | Path,
        *,
        message: str | None = None,
        includes: Sequence[str | Path] = (),
        format: str | None = None,  # noqa: A002 -- the word of the command
    ) -> dict[Version, Judgement]:
        """Judge a new version of the schema against every version that has rows in some table.

        `new` is a file as for `instar check`, or DDL text. If there are no tables, it is judged against every
        known version. Nothing is declared.
        """
        folders = [Path(folder) for folder in includes]
        version = load_version(str(new), includes=folders, message=message, format_=format)
        alive = {version for table in self.tables() for version in table.versions}
        catalog = self._handle.known()
        return judge_alive(catalog, alive or catalog.versions, version)

    def write_protobuf(
        self,
        records: Data,
        version: str,
        *,
        column: str = "value",
        token: str | None = None,
        unknown: str = "keep",
    ) -> ProtobufCommit:
        """Add serialised records of one version, decoded on Spark's executors or in process.

        `records` is a Spark DataFrame or Arrow data with a binary column, or a sequence of bytes. A record
        that cannot be decoded goes to the table `<stream>-quarantine` with the reason. A record with fields
        that the version does not know becomes a row, and goes to that table too; `unknown="count"` only
        counts such records. Declare the version with `evolve_protobuf` first. With a token, calling again
        does nothing.
        """
        return write_records(
            self, self._handle, records, version, column=column, token=token, unknown=unknown
        )

    def retry_quarantine(
        self, version: str | None = None, *, decode_as: str | None = None
    ) -> QuarantineRetry:
        """Decode records in quarantine again: those that can be decoded now become rows, and leave it.

        `version` chooses the records that were written as this version; without it, all are tried.
        `decode_as` is the version to decode them by, if they came under a wrong one; without it, each is
        decoded by its own. Records that still fail stay, with the new reason. Records that are rows already
        are not touched. If a call is killed, the next one finishes it, and no row is doubled. The records
        pass through the memory of this process.
        """
        return retry_records(self, self._handle, version, decode_as)

    def tables(self, kind: str | None = None) -> list[StreamTable]:
        """Return the tables of one kind or of all, the oldest first, as they are now."""
        catalog = self._handle.load()
        kinds = list(catalog.layout.periods) if kind is None else [as_kind(kind)]
        for each in kinds:
            catalog.layout.period(each)
        found = []
        for record, state in load_states(self._handle, catalog.tables_of(kinds)):
            stamp = load_stamp(state, catalog)
            period = catalog.layout.period(record.kind_of)
            start = None if record.start is None else show_time(record.start, period)
            found.append(
                StreamTable(record.name, record.kind, start, stamp.version, stamp.versions, state.totals.rows)
            )
        return found

    def snapshot(
        self,
        kind: str = "regular",
        start: str | date | datetime | None = None,
        end: str | date | datetime | None = None,
        *,
        schema: Schema | str | None = None,
        columns: Sequence[str] | None = None,
    ) -> StreamSnapshot:
        """Return the rows of a range of tables as of now, under one schema.

        The range is of event times, and excludes `end`. Rows in the table `unplaced` are included only if
        there is no range. `schema` is a version, whose own schema is used, or a `Schema`; by default it is
        the stream's latest. If it no longer fits a table, `ReaderFencedError` is raised.
        """
        return StreamSnapshot(self._handle, as_kind(kind), _span(start, end), schema, columns)

    def read(
        self,
        spark: SparkSession,
        kind: str = "regular",
        start: str | date | datetime | None = None,
        end: str | date | datetime | None = None,
    ) -> DataFrame:
        """Return a range of tables as one DataFrame: `snapshot(kind, start, end).to_spark(spark)`."""
        return self.snapshot(kind, start, end).to_spark(spark)

    def sink(self, version: str | None = None) -> Callable[[DataFrame, int], None]:
        """Return a function for `df.writeStream.foreachBatch`: each micro-batch is written exactly once.

        A batch is recognized by the id of its query, which the checkpoint keeps, by the version and by its
        number, forever. All tables that it touches get its rows, or none. A batch may be split, with one sink
        for each version.
        """

        def write(batch: DataFrame, number: int) -> None:
            from instar.spark import query_id  # noqa: PLC0415 -- only who needs Spark loads it

            token = f"{SINK_PREFIX}{query_id(batch)}/{version or 'latest'}/{number}"
            self.write(batch, version, token=token)

        return write

    def sink_protobuf(
        self, version: str, *, column: str = "value", unknown: str = "keep"
    ) -> Callable[[DataFrame, int], None]:
        """Return a function for `df.writeStream.foreachBatch`, for a stream of serialised records.

        Each micro-batch is written exactly once, rows and quarantine, as `write_protobuf` does with a token.
        """

        def write(batch: DataFrame, number: int) -> None:
            from instar.spark import query_id  # noqa: PLC0415 -- only who needs Spark loads it

            token = f"{SINK_PREFIX}{query_id(batch)}/protobuf/{version}/{number}"
            self.write_protobuf(batch, version, column=column, token=token, unknown=unknown)

        return write

    def repartition(self, spark: SparkSession | None = None, *, by: str) -> StreamCommit:
        """Copy what is new in regular tables to the repartitioned tables of another time column.

        Call it as often as you like: late rows reach their day, and no row is copied twice, even if the job
        is killed. Without Spark, rows pass through the memory of this process, as for the other jobs.
        """
        copy = partial(repartition_tables, self._handle, by, _copying(spark))
        return report_stream(self._handle, "repartition", copy)

    def archive(
        self, spark: SparkSession | None = None, *, before: str | date | datetime, drop: bool = False
    ) -> StreamCommit:
        """Copy what is new in the regular tables that end by a time to archive tables.

        With `drop`, a table is dropped when all its rows are in the archive, and also in the repartitioned
        and end-of-day tables if the stream has such. The result names the tables in `dropped` and `kept`.
        """
        copy = partial(archive_tables, self._handle, as_micros(before), _copying(spark), drop_days=drop)
        return report_stream(self._handle, "archive", copy)

    def close_day(self, spark: SparkSession | None, day: str | date | datetime) -> StreamCommit:
        """Copy what is new in the regular tables of a day to its end-of-day table."""
        copy = partial(close_day, self._handle, as_micros(day), _copying(spark))
        return report_stream(self._handle, "close_day", copy)

    def _version(self, version: str | None, incoming: pa.Schema) -> VersionRecord:
        """Return the version to write under; a new one is declared."""
        handle = self._handle
        if version is None:
            catalog = handle.load()
            return catalog.versions[catalog.max_version]
        wanted = as_version(version)
        found = handle.find_version(wanted)
        if found is None:
            brought = loosen(schema_from_arrow(incoming), handle.known().schema)
            catalog = handle.add_version(wanted, brought)
            found = catalog.versions[wanted]
        return found

    def __repr__(self) -> str:
        return f"Stream({self.name!r})"


class StreamSnapshot:
    """The rows of a range of tables, under one schema. No vacuum deletes them until it is closed."""

    def __init__(
        self,
        handle: StreamHandle,
        kind: Kind,
        span: Span,
        schema: Schema | str | None,
        columns: Sequence[str] | None,
    ) -> None:
        self._handle = handle
        self._held = hold_tables(handle, kind, span)
        catalog = self._held.catalog
        self._schema = stream_reader(catalog, schema, columns)
        self._plans = plan_tables(handle, self._held, self._schema)
        self._cut = find_cut(catalog, kind, span)

    @property
    def schema(self) -> Schema:
        """The schema of the rows."""
        return self._schema

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that are read."""
        return tuple(table.record.name for table in self._held.tables)

    def to_arrow(self) -> pa.Table:
        """Return the rows as Arrow, without a JVM."""
        return pa.Table.from_batches(self.to_batches(), schema=arrow_schema(self._schema))

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """Return the rows as one DataFrame, read by Spark's own Parquet reader.

        Each query of it opens only the parts (Parquet files) that its filters need, over all tables.
        """
        from instar.spark import range_frame  # noqa: PLC0415 -- only who needs Spark loads it

        services, fields = self._handle.services, self._schema.fields
        return range_frame(spark, services, self._held, self._plans, fields, self._cut)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows batch by batch, table by table from the oldest to the newest."""
        yield from read_tables(self._handle.services, self._plans, self._schema, self._cut)

    def close(self) -> None:
        """Release its lease: a vacuum may then delete what only this snapshot needs."""
        self._held.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"StreamSnapshot({self._handle.name!r}, {len(self.tables)} tables)"


def _copying(spark: SparkSession | None) -> Copying:
    if spark is None:
        return copy_in_process
    from instar.spark import copy_on_spark  # noqa: PLC0415 -- only who needs Spark loads it

    return partial(copy_on_spark, spark)


def _span(start: str | date | datetime | None, end: str | date | datetime | None) -> Span:
    span = Span(None if start is None else as_micros(start), None if end is None else as_micros(end))
    if span.start is not None and span.end is not None and span.start > span.end:
        raise UsageError(f"the range ends before it starts: {start} is after {end}")
    return span
