"""`Snapshot`: the rows of a table as of one time, which do not change when the table changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import pyarrow as pa

from instar.amounts import format_time
from instar.api.display import snapshot_html
from instar.api.libraries import check_library
from instar.arguments import checked_methods
from instar.errors import UsageError
from instar.schema import Schema, arrow_schema
from instar.state.options import check_options
from instar.table import load_parts
from instar.table.read.audit import resolve_policy
from instar.table.read.counting import count_matching, count_rows
from instar.table.read.filter import Filter
from instar.table.read.lookup import lookup_rows
from instar.table.read.moments import check_existed, find_time
from instar.table.read.reading import read_filtered, read_snapshot
from instar.table.read.report import report_scan
from instar.table.read.snapshot import plan_snapshot, resolve_reader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    import duckdb
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession

    from instar.table import Services, TableLog
    from instar.table.log.pin import Pin
    from instar.table.read.audit import Policy
    from instar.table.read.moments import Moment
    from instar.table.read.report import ScanReport

__all__ = ["Snapshot"]


@checked_methods
class Snapshot:
    """The rows as of one time, under one schema. No vacuum deletes them until it is closed.

    In a `with` statement it is closed at the end. Without one, `close` does it, or the end of its last use.

    `where` is always a condition in Spark SQL over the columns of its schema, chosen or not. It means what it
    means to Spark in UTC and ANSI mode.
    """

    def __init__(
        self,
        services: Services,
        log: TableLog,
        *,
        as_of: Moment | None = None,
        schema: Schema | int | None = None,
        columns: Sequence[str] | None = None,
        skipping: str | None = None,
        version: int | None = None,
    ) -> None:
        self._services = services
        self._query = check_options({"skipping": skipping})
        self._is_shared = False
        pin = log.pinned()
        self._pin: Pin | None = pin
        try:
            reader = resolve_reader(pin.state, schema, columns)
            time = find_time(services, log, pin.state, as_of, version)
            self._plan = plan = plan_snapshot(services.chunks, pin.state, reader, time)
            if as_of is not None and time is not None and not plan.scan and not plan.merge:
                check_existed(services, log, pin.state, as_of, time)
        except BaseException:
            pin.release()  # a kept error keeps its frames, and would keep the lease
            raise

    @property
    def schema(self) -> Schema:
        """The schema of the rows: the reader's schema, with only the chosen columns."""
        return self._plan.reader.schema

    @property
    def as_of(self) -> int:
        """The time of the rows."""
        return self._plan.as_of

    @property
    def seqno(self) -> int:
        """The version of the table that is read."""
        return self._plan.state.seqno

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """Return the rows as a DataFrame, read by Spark's own Parquet reader.

        Each query of it opens only the parts (Parquet files) that its filters need. It needs a session with
        its own JVM; a client of Spark Connect reads with `spark.read.format("instar")`. Spark opens the files
        itself. For a store at a URL it needs a file system for that scheme; without one, Python workers read
        the rows, which is slower, and a warning says so.
        """
        if not hasattr(spark, "createDataFrame"):
            raise UsageError(
                f"reading on Spark needs a SparkSession, not {type(spark).__name__}: give one, or read with "
                "to_arrow(), to_pandas() or to_polars()"
            )
        from instar.spark import read_snapshot  # noqa: PLC0415 -- only who needs Spark loads it

        pin, self._is_shared = self._open_pin(), True
        return read_snapshot(spark, self._services, self._plan, pin, self._query)

    def to_arrow(self, where: str | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows, or those that a Spark SQL condition is true for, as Arrow, without a JVM.

        Only parts that may have such rows are read. If a condition cannot be computed without Spark, or fails
        on a row, `UsageError` is raised. `columns` chooses among those of the snapshot; the condition may use
        others.
        """
        shown = self.schema if columns is None else self.schema.select(columns)
        return pa.Table.from_batches(self.to_batches(where, columns), schema=arrow_schema(shown))

    def to_batches(
        self, where: str | None = None, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows batch by batch, as `to_arrow` returns them, without holding them all.

        Parts are opened while you iterate, a few of them ahead. Rows that have to be added up, because of
        retractions, are held in memory together.
        """
        return self._batches(where, columns, ahead=True)

    def _batches(
        self, where: str | None, columns: Sequence[str] | None, *, ahead: bool
    ) -> Iterator[pa.RecordBatch]:
        self._open_pin()
        plan = self._plan
        if columns is not None:
            plan = plan._replace(reader=plan.reader._replace(schema=self.schema.select(columns)))
        if where is None:
            return self._hold(read_snapshot(self._services, plan, ahead=ahead))
        condition, policy = self._filter(where), self._policy()
        return self._hold(read_filtered(self._services, plan, condition, policy, ahead=ahead))

    def head(
        self, rows: int = 10, columns: Sequence[str] | None = None, *, where: str | None = None
    ) -> pa.Table:
        """Return a few of the rows, in no particular order, as Arrow. As few parts as possible are opened."""
        found: list[pa.RecordBatch] = []
        for batch in self._batches(where, columns, ahead=False):
            found.append(batch.slice(0, rows - sum(one.num_rows for one in found)))
            if sum(one.num_rows for one in found) >= rows:
                break
        shown = self.schema if columns is None else self.schema.select(columns)
        return pa.Table.from_batches(found, schema=arrow_schema(shown))

    def count(self, where: str | None = None) -> int:
        """Return how many rows there are, or for how many of them a Spark SQL condition is true.

        Parts are opened only if statistics do not decide: if the condition may be true for some of their rows
        and not for others, or if rows were retracted by value.
        """
        self._open_pin()
        if where is None:
            return count_rows(self._services, self._plan)
        return count_matching(self._services, self._plan, self._filter(where), self._policy())

    def lookup(self, key: object, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows that have a key, as Arrow, without a JVM: none, one, or several.

        `key` is a dict of columns and their values, `{"id": 7}`: any columns, of the table's key or not, and
        members of structs by path. Otherwise it is the value of the table's key, or a tuple of values if the
        key has several columns. Text is converted to a number, a date or a time if the column needs one. Null
        equals null, and NaN equals NaN.

        Statistics tell which parts may have such rows: if parts are sorted and do not overlap, one is opened.
        `columns` chooses among those of the snapshot.
        """
        self._open_pin()
        plan = self._plan
        shown = self.schema if columns is None else self.schema.select(columns)
        plan = plan._replace(reader=plan.reader._replace(schema=shown))
        batches = self._hold(lookup_rows(self._services, plan, key))
        return pa.Table.from_batches(batches, schema=arrow_schema(shown))

    def to_pandas(self, where: str | None = None, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame; the arguments are those of `to_arrow`."""
        check_library("pandas")
        return self.to_arrow(where, columns).to_pandas()

    def to_polars(self, where: str | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Return the rows as a Polars DataFrame; the arguments are those of `to_arrow`."""
        check_library("polars")
        import polars as pl  # noqa: PLC0415 -- only who has Polars asks for its frames

        return pl.DataFrame(self.to_arrow(where, columns))

    def to_duckdb(
        self,
        connection: duckdb.DuckDBPyConnection | None = None,
        where: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> duckdb.DuckDBPyRelation:
        """Return the rows as a relation of DuckDB, of a connection or of its default one.

        Nothing is read yet: a query on it reads the columns and opens the parts that it needs. With `where`
        or `columns`, those rows are read at once, as by `to_arrow`.
        """
        check_library("duckdb")
        import duckdb  # noqa: PLC0415 -- only who has DuckDB asks for its relations

        from instar.api.dataset import SnapshotDataset  # noqa: PLC0415 -- slow

        at_once = where is not None or columns is not None
        rows = self.to_arrow(where, columns) if at_once else SnapshotDataset(self)
        return (connection or duckdb.default_connection()).from_arrow(rows)

    def scan(self) -> pl.LazyFrame:
        """Return the rows as a Polars LazyFrame: its query reads the columns and opens the parts it needs."""
        check_library("polars")
        from instar.api.lazy import lazy_frame  # noqa: PLC0415 -- only who has Polars asks for its frames

        return lazy_frame(self)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Give the rows to any reader of Arrow streams, batch by batch."""
        reader = pa.RecordBatchReader.from_batches(arrow_schema(self.schema), self.to_batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _hold(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Keep the snapshot as long as somebody reads from it, and so the files that it needs."""
        return self._read(self._open_pin(), batches)

    def _read(self, pin: Pin, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with pin.reading():
            yield from batches

    def explain(self, where: str, *, parts: bool = False) -> ScanReport:
        """Report which parts are read for a Spark SQL condition, and with `parts` for each of them why.

        If skipping is `off` or `audit`, all of them are read.
        """
        self._open_pin()
        chunks, plan = self._services.chunks, self._plan
        considered = load_parts(chunks, plan.state).keep(plan.scan.mask | plan.merge.mask)
        condition, mode = self._filter(where).condition, self._policy().mode
        return report_scan(chunks, plan.state, considered, condition, mode, parts=parts)

    def close(self) -> None:
        """Release the files, so that a vacuum may delete them. The snapshot cannot be read any more.

        A Spark DataFrame that was made from it still works, and holds the files itself.
        """
        pin, self._pin = self._pin, None
        if pin is not None and not self._is_shared:
            pin.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open_pin(self) -> Pin:
        if self._pin is None:
            raise UsageError(
                f"this snapshot of `{self._plan.state.name}` was closed: take another with table.snapshot()"
            )
        return self._pin

    def _policy(self) -> Policy:
        return resolve_policy(self._query, self._plan.state.options, self._services.defaults)

    def _filter(self, where: str) -> Filter:
        found = Filter.parse(where, self._plan.reader.whole, self._services.clock())
        self._services.asked.note(self._plan.state, where)
        return found

    def _repr_html_(self) -> str:
        return snapshot_html(self._plan.state.name, self.as_of, self.count(), self.head())

    def __repr__(self) -> str:
        return f"Snapshot({self._plan.state.name!r}, as_of={format_time(self.as_of)!r})"
