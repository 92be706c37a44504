"""`Table`: one table, through a handle that always answers for the present."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING

from instar.api.display import table_html
from instar.api.listen import Listen
from instar.api.merge import Merge
from instar.api.snapshot import Snapshot
from instar.api.upkeep import TableUpkeep
from instar.api.writing import overwrite_data, report_commit, upsert_data, write_data
from instar.arguments import checked_methods
from instar.errors import UsageError
from instar.schema import Schema, SchemaUpdate, as_schema
from instar.schema.matching import match_by_name
from instar.state.commands import configure, evolve
from instar.state.comments import comment
from instar.table.log.archive import read_archive
from instar.table.log.history import CommitList, describe_entry, schema_of
from instar.table.read.moments import find_time
from instar.table.write.adopt import adopt_files
from instar.table.write.clone import clone_table
from instar.table.write.evolving import Evolution
from instar.table.write.restore import restore_rows
from instar.table.write.retract import delete_local
from instar.table.write.rows import WriteOptions
from instar.table.write.update import update_local

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from instar.api.writing import Commit, Data
    from instar.schema import SchemaLike
    from instar.state import ConfigValue, Step, TableState
    from instar.table import Committed
    from instar.table.log.history import CommitInfo
    from instar.table.read.moments import Moment
    from instar.table.read.report import ScanReport
    from instar.table.write.adopt import AdoptionReport

__all__ = ["Table"]


@checked_methods
class Table(TableUpkeep):
    """One table. Every call answers for the present; a snapshot stays as it is."""

    @property
    def name(self) -> str:
        """The table's name."""
        return self._log.name

    @property
    def state(self) -> TableState:
        """The durable state, as of now: what everything else here is answered from."""
        return self._log.load()

    @property
    def schema(self) -> Schema:
        """The latest schema."""
        return self.state.history.latest

    @property
    def schemas(self) -> tuple[Schema, ...]:
        """Every schema that the table has had; its position is its id."""
        return self.state.history.schemas

    @property
    def upper(self) -> int:
        """All times before this are complete: no update will be added to them."""
        return self.state.upper

    @property
    def since(self) -> int:
        """Times before this may have been merged together, and cannot be read any more."""
        return self.state.since

    def append(
        self,
        data: Data,
        token: str | None = None,
        *,
        evolve: bool = False,
        former_names: bool = False,
        dropped: str = "refuse",
        schema: int | None = None,
        expected_upper: int | None = None,
    ) -> Commit:
        """Add rows: a Spark, pandas or Polars DataFrame, or anything else that speaks the Arrow C stream.

        A list of dicts, a pyarrow dataset and an iterator of batches are accepted too. Dicts inside of
        rows are structs, or maps where the table has maps.

        Columns match by name; case does not matter. Missing ones are null, and numbers widen. Data that does
        not fit raises `DataMismatchError` with the column, the row and the reason, and nothing is committed.
        A key is not checked: several rows may have the same key, until an upsert replaces them all.

        With a `token`, calling again with the same one does nothing and returns the result of the first call.
        It is text of at most 256 bytes, and remembered until 1,000 commits with other tokens have followed.

        With `evolve`, missing columns and struct members are added in the same commit, at the end and
        nullable at every level, in the narrowest type that holds the data's. Columns that are too narrow are
        widened, whole numbers only if a value needs it. Without `evolve`, such data does not fit. A former
        name of another column raises `FormerNameError`, because the data may mean that column;
        `former_names=True` makes it a new one. A type that no column can have, such as VARIANT or a collated
        string, raises `UnsupportedTypeError`.

        `schema` writes under an older schema of the history, by its id. Values in columns that were dropped
        since raise `WriterFencedError`, because they could not be read; `dropped="discard"` leaves them out.

        With `expected_upper`, nothing is written if another write has moved the table's `upper` (see there)
        since: `UpperMismatchError` has the new one.

        An append without rows is a commit too: listeners learn that the time up to then is complete.
        """
        options = WriteOptions(
            token, evolve, dropped, schema, expected_upper=expected_upper, former_names=former_names
        )
        return write_data(self._services, self._log, data, options)

    def apply(
        self,
        changes: Data,
        token: str | None = None,
        *,
        evolve: bool = False,
        former_names: bool = False,
        expected_upper: int | None = None,
    ) -> Commit:
        """Add and retract rows: `_diff` is +1 for a row to add and -1 for one to retract.

        The data has the columns of the table and `_diff`, any whole number: how often the row is added.
        Without it, rows are added once. `_ts`, if there is one, is the time of each update, not before
        `upper` and not after 2^62. Nothing checks whether a row exists: if one is retracted more often than
        it was added, reading raises `NegativeCountError`. The other arguments are those of `append`.
        """
        options = WriteOptions(
            token, evolve, updates=True, expected_upper=expected_upper, former_names=former_names
        )
        return write_data(self._services, self._log, changes, options)

    def adopt(
        self,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        evolve: bool = False,
        former_names: bool = False,
        tell: Callable[[int, int], None] | None = None,
    ) -> AdoptionReport:
        """Make existing Parquet files part of the table without copying them.

        `paths` are files and directories, or URLs of an object store. Columns are matched by name, and a
        value in a path, such as `day=2026-11-15`, is a column too. Files are read where they are, never
        moved, and deleted only by `purge(…, adopted="delete")`. Files that were adopted before are skipped,
        even if a compaction has rewritten their rows.

        With `evolve`, missing columns are added and too narrow ones are widened in the same commit; otherwise
        they raise `DataMismatchError`, and nothing is adopted. `former_names` is that of `append`. `tell`
        gets how many files are done, and how many there are. If a file is changed or removed later, reading
        it raises `AdoptedFileError`.
        """
        chosen = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        return adopt_files(
            self._services, self._log, chosen, evolve=evolve, former_names=former_names, tell=tell
        )

    def delete(self, where: str, spark: SparkSession | None = None) -> Commit:
        """Delete the rows for which a Spark SQL condition is true: all that exist now, or none.

        Only the columns of the condition are read, and only of parts (Parquet files) for which it may be
        true; the positions of the rows are recorded. The rows can still be read as of earlier times.

        Without `spark`, no JVM is needed, and the condition means what it means to Spark in UTC and ANSI
        mode. If it cannot be computed for a row, `UsageError` is raised. With a session, Spark evaluates it,
        with the session's settings.

        Rows that others append at the same time stay. If others change the same parts, the rows to delete are
        found again, up to five times; then `ConflictError` is raised. If there is no row to delete, nothing
        is written, and `Commit.rows` is 0.
        """
        if spark is None:
            return self._report("delete", lambda: delete_local(self._services, self._log, where))
        from instar.spark import delete_rows  # noqa: PLC0415 -- only who needs Spark loads it

        return self._report("delete", lambda: delete_rows(spark, self._services, self._log, where))

    def update(
        self,
        set: Mapping[str, str],  # noqa: A002 -- as in SQL, and as users of Delta Lake know it
        where: str | None = None,
        spark: SparkSession | None = None,
    ) -> Commit:
        """Update the rows for which a condition is true: `set` has expressions in Spark SQL, by column.

        `t.update(set={"amount": "0"}, where="amount < 0")`. An expression sees the row as it was. Without
        `where`, all rows are updated. A number is cast to the type of its column, as SQL does: digits that
        do not fit are rounded or cut off, and a number that is too large raises an error. Values of other
        types have to fit as in an append.

        `spark` is as for `delete`: if an expression cannot be computed for a row without Spark, `UsageError`
        is raised. `Commit.rows` counts each row twice, the old and the new one.
        """
        if spark is None:
            return self._report("update", lambda: update_local(self._services, self._log, set, where))
        from instar.spark import update_rows  # noqa: PLC0415 -- only who needs Spark loads it

        return self._report("update", lambda: update_rows(spark, self._services, self._log, set, where))

    def merge(self, data: Data, on: Sequence[str]) -> Merge:
        """Begin to merge data into the table: add clauses, then `execute()`.

        Two rows match if they are equal in the columns `on`. The data is what `append` takes.

        `t.merge(data, on=["id"]).when_matched_update().when_not_matched_insert().execute()`
        """
        return Merge(self._services, self._log, data, on)

    def upsert(self, data: Data, *, evolve: bool = False, former_names: bool = False) -> Commit:
        """Add rows to a table with a key, and replace rows that have the same key.

        A row of the data is a whole row: columns that it leaves out become null, those of the key too. A null
        in a key equals another null. Two rows of one key in the data raise `UsageError`, and so does a table
        without a key. If others write at the same time, it is computed again, as for `delete`.
        `evolve` and `former_names` are those of `append`, but columns of the key are not widened.
        `Commit.rows` counts retracted rows too.
        """
        evolution = Evolution(former_names) if evolve else None
        return upsert_data(self._services, self._log, data, evolution)

    def overwrite(self, data: Data, where: str | None = None) -> Commit:
        """Replace the rows for which a condition is true, or all rows, in one commit.

        The data is what `append` takes. It need not meet the condition. Without `where`, old rows are not
        read. Rows that others append at the same time stay; old rows can be read as of earlier times. If the
        data is a Spark frame, its session evaluates the condition; otherwise it is as for `delete` without a
        session. If others change the same parts, it is computed again.
        """
        return overwrite_data(self._services, self._log, data, where)

    def restore(self, as_of: Moment | None = None, *, version: int | None = None) -> Commit:
        """Restore the rows as of a time, or after a commit, in a new commit.

        `as_of` and `version` are those of `snapshot`. Nothing is forgotten: earlier times can still be read,
        and a restore can be undone by another. The schema stays as it is. Newer rows are retracted without
        being read. If others write at the same time, it is computed again, as for `delete`. `Commit.rows`
        counts retracted rows and rows that are added again.
        """
        if as_of is None and version is None:
            raise UsageError("restore needs to know what to go back to: give as_of or version")

        def time_in(state: TableState) -> int:
            time = find_time(self._services, self._log, state, as_of, version)
            return state.upper - 1 if time is None else time

        return self._report("restore", lambda: restore_rows(self._services, self._log, time_in))

    def snapshot(
        self,
        as_of: Moment | None = None,
        schema: Schema | int | None = None,
        columns: Sequence[str] | None = None,
        skipping: str | None = None,
        version: int | None = None,
    ) -> Snapshot:
        """Return the rows as of a time, under the latest schema or another, all columns or only some.

        `as_of` is a time from `since`, the earliest that can be read, up to but not including `upper`. By
        default it is the last complete time. It is a number of milliseconds since 1970, a `datetime` or text
        in ISO 8601, in UTC if it has no zone. These two may also be later than the last commit, but not in
        the future. A time before the table was created raises `UsageError`. Or give `version`, the number of
        a commit from `history()` or `Commit.seqno`: the rows after that commit.

        `schema` is an id of the history or a `Schema`; if a column that is read no longer fits it,
        `ReaderFencedError` is raised here. `columns` are names of top-level columns. `skipping` is "on",
        "off" or "audit", and overrides the settings of the session, the table and the store.
        """
        return Snapshot(
            self._services,
            self._log,
            as_of=as_of,
            schema=schema,
            columns=columns,
            skipping=skipping,
            version=version,
        )

    def explain(self, where: str, *, parts: bool = False) -> ScanReport:
        """Report which parts a Spark SQL condition needs now, and with `parts` why each is read or skipped.

        No data file is opened.
        """
        with self.snapshot() as snapshot:
            return snapshot.explain(where, parts=parts)

    def read(self, spark: SparkSession) -> DataFrame:
        """Return the rows as of now as a Spark DataFrame: `snapshot().to_spark(spark)`."""
        return self.snapshot().to_spark(spark)

    def head(
        self, rows: int = 10, columns: Sequence[str] | None = None, *, where: str | None = None
    ) -> pa.Table:
        """Return a few rows as Arrow: `snapshot().head()`."""
        with self.snapshot() as snapshot:
            return snapshot.head(rows, columns, where=where)

    def count(self, where: str | None = None) -> int:
        """Return how many rows there are now, or for how many a condition is true: `snapshot().count()`."""
        with self.snapshot() as snapshot:
            return snapshot.count(where)

    def lookup(self, key: object, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows that have a key now, as Arrow, without a JVM: `snapshot().lookup()`.

        `t.lookup(7)` or, by any columns, `t.lookup({"country": "de", "id": 7})`.
        """
        with self.snapshot() as snapshot:
            return snapshot.lookup(key, columns)

    def to_arrow(self, where: str | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows as of now as a pyarrow Table: `snapshot().to_arrow()`."""
        with self.snapshot() as snapshot:
            return snapshot.to_arrow(where, columns)

    def to_batches(
        self, where: str | None = None, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows as of now batch by batch: `snapshot().to_batches()`."""
        snapshot = self.snapshot()
        return _until_read(snapshot, snapshot.to_batches(where, columns))

    def to_pandas(self, where: str | None = None, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the rows as of now as a pandas DataFrame: `snapshot().to_pandas()`."""
        with self.snapshot() as snapshot:
            return snapshot.to_pandas(where, columns)

    def to_polars(self, where: str | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Return the rows as of now as a Polars DataFrame: `snapshot().to_polars()`."""
        with self.snapshot() as snapshot:
            return snapshot.to_polars(where, columns)

    def to_duckdb(
        self,
        connection: duckdb.DuckDBPyConnection | None = None,
        where: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> duckdb.DuckDBPyRelation:
        """Return the rows as of now as a relation of DuckDB: `snapshot().to_duckdb()`."""
        return self.snapshot().to_duckdb(connection, where, columns)

    def scan(self) -> pl.LazyFrame:
        """Return the rows as of now as a Polars LazyFrame: `snapshot().scan()`."""
        return self.snapshot().scan()

    def follow(self, spark: SparkSession) -> DataFrame:
        """Return a DataFrame that follows the table: each new query reads the current rows.

        Its schema is the current one. Spark plans a frame once: the same action on it again gives the rows of
        the first time, and a new query from it, such as `frame.where(…)`, reads the current rows. If a column
        that it reads no longer fits, it raises `ReaderFencedError`; if the table holds retractions, this
        applies to every column, because all of them decide which rows are equal.
        """
        from instar.spark import read_table  # noqa: PLC0415 -- only who needs Spark loads it

        return read_table(spark, self._services, self._log)

    def listen(
        self,
        since: int | None = None,
        *,
        schema: Schema | int | None = None,
        columns: Sequence[str] | None = None,
        timeout: float | None = None,
    ) -> Listen:
        """Iterate over the updates after a time, until `timeout` seconds pass without one (None: never).

        Without `since`, it begins with what comes after this call. `schema` and `columns` are those of
        `snapshot`; if the schema no longer fits, the next step raises `ReaderFencedError`.
        """
        return Listen(self._services, self._log, since=since, schema=schema, columns=columns, timeout=timeout)

    def evolve(self) -> SchemaUpdate:
        """Begin a change of schema: add steps, then `commit()`.

        The steps apply to the current schema. If somebody else has changed it before the commit,
        `SchemaMismatchError` is raised.
        """
        history = self.state.history
        return SchemaUpdate(history, lambda schema: self._evolve(history.latest_id, schema), self.name)

    def compare_and_evolve_schema(self, expected_id: int | None, schema: SchemaLike) -> int:
        """Change the schema if `expected_id` is still the latest, and return the new id.

        A `Schema` is matched by its field ids, every other form by name. Giving the latest schema again
        changes nothing. After a lost reply the commit is looked up, so a retry finds its own success. If
        another id is the latest, `SchemaMismatchError` says which; if the schema breaks a rule,
        `IncompatibleSchemaError` has every violation.
        """
        return self._evolve(expected_id, schema)

    def configure(self, **options: ConfigValue | Sequence[str] | None) -> None:
        """Set options of the table; None removes one.

        The options are below, under "Table options"; another name or value raises `UsageError`.
        """
        self._log.commit(lambda state: configure(self._log.check_exists(state), options))

    def comment(self, text: str | None, column: str | None = None) -> None:
        """Comment on the table, or on a column or member by its path; None removes the comment.

        A comment changes nothing else, and stays with a column that is renamed.
        """
        self._log.commit(lambda state: comment(self._log.check_exists(state), {column: text}))

    @property
    def comments(self) -> dict[str | None, str]:
        """The comments on columns, by their paths, and under None on the table."""
        return self.state.comments

    def history(self, limit: int | None = None) -> list[CommitInfo]:
        """Return who committed what, and when, newest first. A vacuum cuts the log, but not this history.

        With a `limit`, at most that many are read and returned.
        """
        if limit is not None and limit < 1:
            raise UsageError(f"limit={limit} commits: ask for one or more, or leave it out for all of them")
        state, own = self._log.refresh(), self._log.table_id
        start = 0
        if limit is not None and state is not None and state.table_id == own:
            start = max(0, state.seqno + 1 - limit)
        entries = [entry for entry in self._log.entries(start) if entry.commit.table_id == own]
        found = [describe_entry(entry) for entry in reversed(entries)][:limit]
        if own is not None and (limit is None or len(found) < limit):
            oldest = found[-1].seqno if found else start
            archived = read_archive(self._services, own, oldest) if oldest else ()
            found += islice(archived, None if limit is None else limit - len(found))
        return CommitList(found)

    def clone(self, name: str) -> Table:
        """Make another table with the same rows and the same history, and return it.

        No file is copied: the clone reads the same files, and later writes to one table do not change the
        other. A vacuum of this table keeps what the clone needs, even after this table was dropped. Only
        metadata is written. If a table has the name already, `TableExistsError` is raised.
        """
        return Table(self._services, clone_table(self._services, self._log, name))

    def _report(self, operation: str, write: Callable[[], Committed]) -> Commit:
        return report_commit(self._services, self._log, operation, write)

    def _evolve(self, expected_id: int | None, schema: SchemaLike) -> int:
        def decide(state: TableState | None) -> tuple[Step, ...]:
            current = self._log.check_exists(state)
            return evolve(current, expected_id, self._resolve(current, schema))

        state, entry = self._log.commit(decide)
        # The state may be newer than the commit; without a commit, it is the one that was decided on.
        found = None if entry is None else schema_of(entry.commit.steps)
        return state.history.latest_id if found is None else found

    def _resolve(self, state: TableState, schema: SchemaLike) -> Schema:
        if isinstance(schema, Schema):
            return schema
        ids = iter(range(state.history.next_field_id, 2**31))
        return Schema(match_by_name(state.history.latest.fields, as_schema(schema).fields, ids))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Give the current rows to any reader of Arrow streams: `snapshot()` does the same."""
        return self.snapshot().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"Table({self.name!r})"

    def _repr_html_(self) -> str:
        return table_html(self.state, self.count())


def _until_read(snapshot: Snapshot, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    with snapshot:
        yield from batches
