"""`Store`: a place that holds tables."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Self

from instar.api.display import store_html
from instar.api.evolver import Evolver
from instar.api.maintenance import Maintenance
from instar.api.stream import Stream
from instar.api.table import Table
from instar.api.upkeep import GRACE_MS, rewriter
from instar.api.writing import create_data
from instar.arguments import checked_methods
from instar.errors import TableNotFoundError, UsageError
from instar.schema import as_schema
from instar.state.options import CLUSTER_BY
from instar.stream import StreamHandle, list_streams
from instar.stream.dropping import drop_leftovers, drop_stream, undrop_stream
from instar.stream.evolver import SHARE
from instar.stream.judging import EveryChange
from instar.stream.vacuum import settling, vacuum_streams
from instar.table import (
    VacuumReport,
    check_clock,
    check_consensus,
    drop_table,
    find_marker,
    find_tables,
    list_tables,
    vacuum_store,
    vacuum_table,
    write_marker,
)
from instar.table.housekeeping.examination import Finding, examine_store
from instar.table.log.tables import (
    UNREADABLE,
    begin_empty,
    define_table,
    log_keys,
    open_log,
    rename_table,
    undrop_table,
)
from instar.table.write.adopt import infer_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType

    from pyspark.sql import DataFrame, SparkSession

    from instar.api.writing import Data
    from instar.errors import InstarError
    from instar.schema import Schema, SchemaLike
    from instar.state import ConfigValue
    from instar.table import Services, StoreMarker

__all__ = ["Store"]


@checked_methods
class Store:
    """Tables by name, in one location. Threads may share it.

    The attribute `location` is the path or URL in full. In a `with` statement it is closed at the end.
    """

    def __init__(self, location: str, services: Services, unwritten: StoreMarker | None = None) -> None:
        self.location = location
        self._services = services
        self._unwritten = unwritten

    def create_table(  # noqa: PLR0913 -- each is something that a table may begin with
        self,
        name: str,
        schema: SchemaLike,
        *,
        order_by: Sequence[str] = (),
        key: Sequence[str] = (),
        cluster_by: Sequence[str] = (),
        options: Mapping[str, ConfigValue | Sequence[str]] | None = None,
        comments: Mapping[str | None, str] | None = None,
        data: Data = None,
        replace: bool = False,
    ) -> Table:
        """Create a table. Its files are sorted by `order_by`; `key` identifies a row for upserts.

        A key is not a constraint: `append` and `apply` do not check whether a key already exists.

        With `cluster_by`, compaction lays rows out so that filters on any of these columns open few files;
        sorting helps only filters on the first column. `Table.configure` can set it later.

        A name is one or more segments of visible characters joined by `/`, such as `billing/events`. Columns
        are given by path, members of structs included (`addr.city`); columns of the key can never be dropped.
        `options` are those of `Table.configure`. `comments` are about columns, by their paths, and under None
        about the table. If a table has this name already, `TableExistsError` is raised.

        With `data`, which is anything that `Table.append` takes, the table begins with rows: the commit that
        creates it has them. If they do not fit, no table is created.

        With `replace`, a table of this name is replaced in the same commit, and cannot be brought back. Its
        handles raise `TableNotFoundError`. Snapshots of it stay readable while they are open, so `data` may
        come from the table itself. If anything fails, the old table stays as it is. A table of a stream
        cannot be replaced.
        """
        self.initialise()
        services = self._services
        given = {**(options or {}), **({CLUSTER_BY: cluster_by} if cluster_by else {})}
        step = define_table(
            services, name, schema, order_by=order_by, key=key, options=given, comments=comments
        )
        if data is None:
            return Table(services, begin_empty(services, name, step, replace=replace))
        return Table(services, create_data(services, name, step, data, replace=replace))

    def infer_schema(self, paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Schema:
        """Return a schema for a table that can adopt all Parquet files at some paths.

        Every column is nullable. If files have different types for a column, it has the widest of them.
        """
        chosen = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        return infer_schema(self._services.blob, chosen)

    def table(self, name: str) -> Table:
        """Open a table, or raise `TableNotFoundError`."""
        services = self._found()
        try:
            return Table(services, open_log(services, name))
        except TableNotFoundError as error:
            if error.dropped or error.renamed:
                raise
            raise TableNotFoundError(name, known=self.tables()) from None

    def tables(self, prefix: str = "") -> list[str]:
        """Return the names of the tables, in order; with a prefix, of those that begin with it."""
        return list_tables(self._found(), prefix)

    def find_tables(
        self,
        prefix: str = "",
        *,
        unreadable: dict[str, InstarError] | None = None,
        limit: int | None = None,
    ) -> list[Table]:
        """Open all tables whose names begin with a prefix, at once, in the order of their names.

        With a `limit`, only that many are opened.

        Their states are read in parallel, so this is much faster than opening them one by one. A table that
        is damaged, or has a newer format, raises its error. If a dict is given as `unreadable`, the error is
        put there under the table's name, and the others are opened.
        """
        services = self._found()
        return [Table(services, log) for log in find_tables(services, prefix, unreadable, limit)]

    def create_stream(
        self,
        name: str,
        schema: SchemaLike,
        version: str = "v0.0.1",
        *,
        time: str,
        kinds: Mapping[str, str] | None = None,
    ) -> Stream:
        """Create a stream: tables by kind and period, which are created when rows are written.

        `time` is the column that decides which table a row belongs to: a timestamp or a date. `kinds` gives
        the period of each kind of table: `30m` are minutes, `1h` an hour, `1d` a day, `1M` a month, `1y` a
        year. Without it, a stream has regular tables of a day and archive tables of a year. If a stream has
        this name already, `StreamExistsError` is raised.
        """
        self.initialise()
        handle = StreamHandle(self._services, name)
        drop_leftovers(handle)
        chosen = {"regular": "1d", "archive": "1y"} if kinds is None else kinds
        handle.create(as_schema(schema), version=version, time=time, kinds=chosen)
        return Stream(handle)

    def stream(self, name: str) -> Stream:
        """Open a stream, or raise `StreamNotFoundError`."""
        handle = StreamHandle(self._found(), name)
        handle.load()
        return Stream(handle)

    def streams(self) -> list[str]:
        """Return the names of the streams, in order."""
        return list_streams(self._found())

    def drop_stream(self, name: str) -> None:
        """End a stream, and drop all its tables. A vacuum deletes their files after the grace period.

        Writers and readers raise `StreamNotFoundError` from then on; open snapshots stay readable. Until the
        vacuum, and as long as no other stream or table has one of the names, `undrop_stream` brings it back.
        The quarantine table is not dropped.
        """
        drop_stream(StreamHandle(self._found(), name))

    def undrop_stream(self, name: str) -> Stream:
        """Bring back a stream that was dropped, with its tables, and return it.

        If a vacuum has removed the files of a table, `StreamNotFoundError` says so, and nothing is brought
        back.
        """
        handle = StreamHandle(self._found(), name)
        undrop_stream(handle)
        return Stream(handle)

    def evolver(self, *streams: str, always: bool = False, share: float = SHARE) -> Evolver:
        """Return an evolver, which brings the tables of these streams, or of all, to the latest version.

        It skips tables if no query over a range of them would notice, by the compatibility check; with
        `always`, it skips none. `share` is the share of the time that it works: it pauses between batches of
        tables, because writers need the same disk. 1 is without a pause.
        """
        return Evolver(self._found(), list(streams) or None, EveryChange() if always else None, share)

    def drop_table(self, name: str) -> None:
        """Drop a table. Its name is free at once; a vacuum deletes its files after the grace period.

        Its handles raise `TableNotFoundError` from then on; open snapshots stay readable. Until the vacuum,
        and as long as no other table has the name, `undrop_table` brings it back.
        """
        drop_table(self._found(), name)

    def undrop_table(self, name: str) -> Table:
        """Bring back a table that was dropped, with its rows and its history, and return it.

        If a vacuum has removed its files, `TableNotFoundError` says so. If another table has the name by now,
        `TableExistsError` is raised: rename that one first.
        """
        services = self._found()
        return Table(services, undrop_table(services, name))

    def rename_table(self, name: str, new_name: str) -> Table:
        """Give a table another name, and return it. Nothing is moved or rewritten.

        Readers and writers that have the table open continue. Another table can have the old name at once. If
        a table has the new name already, `TableExistsError` is raised. Tables of a stream cannot be renamed.
        """
        services = self._found()
        return Table(services, rename_table(services, name, new_name))

    def sql(
        self, spark: SparkSession, text: str, args: dict[str, Any] | list[Any] | None = None
    ) -> DataFrame:
        """Run one statement of SQL over the tables of the store, by their names alone.

        `store.sql(spark, "update events set amount = 0 where amount < 0")`

        It runs all statements of the catalog that `instar.register` adds, and some that Spark does not pass
        to catalogs: `UPDATE`, `MERGE INTO`, `DELETE` with any condition, and `DESCRIBE HISTORY`; see
        docs/sql.md. Statements that change rows return the new version and its number of updates, and
        `EXPLAIN` says what they would touch. `args` are values of parameters, as for `spark.sql`: a dict for
        `:name`, or a list for `?`. While a statement is analysed, the store is the current catalog of the
        session.
        """
        from instar.spark import run_sql  # noqa: PLC0415 -- only who needs Spark loads it

        return run_sql(spark, self, text, args)

    def maintenance(self, *, grace_ms: int = GRACE_MS, spark: SparkSession | None = None) -> Maintenance:
        """Return the maintenance of all tables: `store.maintenance().run_once()`.

        It applies each table's `retention`, compacts where that pays off, and vacuums what is older than the
        grace period. Several processes may run it: one leads, and the others do nothing.
        """
        rewrite, lanes = rewriter(spark)
        return Maintenance(self._found(), grace_ms=grace_ms, rewrite=rewrite, lanes=lanes)

    def vacuum(self, *, grace_ms: int = GRACE_MS, dry_run: bool = False) -> VacuumReport:
        """Vacuum every table, as `Table.vacuum` does, and delete the files of dropped tables.

        A table that cannot be read is skipped; its error is raised after the others have been vacuumed.
        """
        services = self._found()
        self._check_logs(services)
        if not dry_run and self._unwritten is None:
            check_clock(services)
        reports = [vacuum_streams(services, grace_ms=grace_ms, dry_run=dry_run)]
        settle = settling(services)
        unreadable: list[InstarError] = []
        for name in log_keys(services):
            try:
                report = vacuum_table(services, name, grace_ms=grace_ms, dry_run=dry_run, settle=settle)
                reports.append(report)
            except UNREADABLE as error:
                unreadable.append(error)
        if unreadable:
            raise unreadable[0]
        reports.append(vacuum_store(services, grace_ms=grace_ms, dry_run=dry_run))
        return VacuumReport(*(sum(column) for column in zip(*reports, strict=True)))

    def examine(self) -> list[Finding]:
        """Check the store: whether it can be reached and written, and whether its clock is right.

        One object is written below `probes/`, and deleted again.
        """
        return list(examine_store(self._found()))

    def initialise(self) -> bool:
        """Make the location a store; False if it already was one.

        `create_table` does this by itself: call it to have a store without tables.
        """
        if self._unwritten is None:
            return False
        wanted = self._unwritten
        written = write_marker(self._services.blob, self._services.consensus, wanted)
        self._adopt(written)
        return written == wanted

    def _found(self) -> Services:
        """Return the services; if there was no store yet, look whether somebody has made one since."""
        if self._unwritten is not None:
            marker = find_marker(self._services.blob)
            if marker is not None:
                self._adopt(marker)
        return self._services

    def _check_logs(self, services: Services) -> None:
        """Raise if the logs are not where they were: without them, every file would look unused."""
        marker = find_marker(services.blob)
        if marker is not None:
            check_consensus(marker, marker.consensus, services.consensus, self.location)

    def _adopt(self, marker: StoreMarker) -> None:
        """Use the store that exists there, if its logs are where this handle looks for them."""
        if self._unwritten is not None:
            check_consensus(marker, self._unwritten.consensus, self._services.consensus, self.location)
            self._services = self._services.with_prefix(marker.log_prefix)
            self._unwritten = None

    def __getitem__(self, name: str) -> Table:
        """Open a table: `store["events"]` is `store.table("events")`."""
        return self.table(name)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the tables, in order."""
        return iter(self.tables())

    def __contains__(self, name: object) -> bool:
        """Tell whether there is a table of a name."""
        try:
            return isinstance(name, str) and bool(self.table(name))
        except (TableNotFoundError, UsageError):
            return False

    def __len__(self) -> int:
        """Return how many tables there are."""
        return len(self.tables())

    def __bool__(self) -> bool:
        """Return that this is a store, if an empty one."""
        return True

    def close(self) -> None:
        """Release leases and connections."""
        self._services.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Store({self.location!r})"

    def _repr_html_(self) -> str:
        return store_html(self.location, self.tables())
