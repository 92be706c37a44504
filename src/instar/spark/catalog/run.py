"""`store.sql`: a statement over the tables of a store, by their names alone.

Statements that Spark does not hand to catalogs are ours to run; all others are Spark's, with the store as the
current catalog while they are analysed.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

from instar.errors import TableNotFoundError, UsageError
from instar.schema.paths import quote_name
from instar.spark.catalog.explaining import explain_change
from instar.spark.catalog.install import CATALOG, find_catalog, make_catalog
from instar.spark.catalog.parameters import check_arguments
from instar.spark.catalog.statements import (
    DeleteStatement,
    ExplainStatement,
    HistoryStatement,
    MergeStatement,
    UpdateStatement,
    check_elsewhere,
    parse_statement,
)
from instar.spark.native.gateway import gateway_of
from instar.spark.native.views import without_views
from instar.table.write.merge import When

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from instar.spark.catalog.contract import CatalogStore, StoredTable
    from instar.spark.catalog.parameters import Arguments
    from instar.spark.catalog.statements import RowStatement, SameColumns, Statement

__all__ = ["run_sql", "use_catalog"]

_HISTORY: Final = "version long, timestamp timestamp, by string, operation string, schema int, commit string"
_locks: WeakKeyDictionary[SparkSession, threading.RLock] = WeakKeyDictionary()


def run_sql(spark: SparkSession, store: CatalogStore, text: str, args: Arguments | None = None) -> DataFrame:
    """Run one statement over the tables of a store; `args` are the values of its parameters."""
    check_arguments(args)
    statement = parse_statement(text, args, escapes=lambda: _escapes(spark))
    table = None if statement is None else _find(spark, store, statement.table)
    if statement is not None and table is not None:
        return _run(spark, store, statement, table)
    if isinstance(statement, HistoryStatement) or (
        isinstance(statement, ExplainStatement) and _is_own(spark, store, statement.table)
    ):
        store.table(statement.table[-1])  # which says that there is none
    check_elsewhere(text)
    if not _has_jvm(spark):
        raise UsageError(
            "a client of Spark Connect runs UPDATE, DELETE and DESCRIBE HISTORY with store.sql, and reads "
            "and writes with the format 'instar': all else needs a session with a JVM of its own"
        )
    with (
        _current(spark, store, keep=text.lstrip().upper().startswith("USE")),
        without_views(spark, lambda name: name.lower() in text.lower() and _has(store, name)),
    ):
        return spark.sql(text) if args is None else spark.sql(text, args)


def _escapes(spark: SparkSession) -> bool:
    """Whether a backslash in a text escapes what follows, as it does unless a session says otherwise."""
    return not _has_jvm(spark) or spark.conf.get("spark.sql.parser.escapedStringLiterals") != "true"


def use_catalog(spark: SparkSession, store: CatalogStore) -> str:
    """Make the store the current catalog of a session, under a name that is free, and return it."""
    name = find_catalog(spark, store)
    if name is None:
        manager = gateway_of(spark).session.sessionState().catalogManager()
        free = (f"{CATALOG}_{number}" for number in range(2, 1000))
        name = CATALOG
        while manager.isCatalogRegistered(name):
            name = next(free)
        if not make_catalog(spark, store, name):
            raise UsageError("instar cannot be a catalog of this Spark: `instar doctor` says why")
    spark.catalog.setCurrentCatalog(name)
    return name


@contextmanager
def _current(spark: SparkSession, store: CatalogStore, *, keep: bool = False) -> Iterator[None]:
    """Let the store be the current catalog; after that, what was it before, unless that is to change."""
    with _locks.setdefault(spark, threading.RLock()):
        manager = gateway_of(spark).session.sessionState().catalogManager()
        catalog, namespace = manager.currentCatalog().name(), manager.currentNamespace()
        use_catalog(spark, store)
        try:
            yield
        except BaseException:
            keep = False
            raise
        finally:
            if not keep:
                manager.setCurrentCatalog(catalog)
                manager.setCurrentNamespace(namespace)


def _has_jvm(spark: SparkSession) -> bool:
    return getattr(spark, "_sc", None) is not None


def _find(spark: SparkSession, store: CatalogStore, name: tuple[str, ...]) -> StoredTable | None:
    """Return the table that a statement means, if it is one of the store."""
    if not _is_own(spark, store, name):
        return None
    try:
        return store.table(name[-1])
    except TableNotFoundError:
        return None


def _is_own(spark: SparkSession, store: CatalogStore, name: tuple[str, ...]) -> bool:
    """Whether a name can only be that of a table of the store."""
    own = find_catalog(spark, store) if _has_jvm(spark) else None
    return len(name) == 1 or [part.lower() for part in name[:-1]] == [(own or CATALOG).lower()]


def _has(store: CatalogStore, name: str) -> bool:
    try:
        store.table(name)
    except TableNotFoundError:
        return False
    return True


def _run(spark: SparkSession, store: CatalogStore, statement: Statement, table: StoredTable) -> DataFrame:
    """Run a statement of ours, and return what came of it."""
    session = spark if _has_jvm(spark) else None
    if isinstance(statement, HistoryStatement):
        found = table.history(statement.limit)
        lines = [(it.seqno, it.at, it.by, it.what, it.schema_id, it.commit_id) for it in found]
        return spark.createDataFrame(lines, _HISTORY)
    if isinstance(statement, ExplainStatement):
        return spark.createDataFrame([(explain_change(statement.statement, table),)], "plan string")
    with nullcontext() if session is None else _current(spark, store):
        commit = _change(session, statement, table)
    return spark.sql(f"SELECT {commit.seqno}L AS version, {commit.rows}L AS updates")


def _change(
    spark: SparkSession | None,
    statement: RowStatement,
    table: StoredTable,
) -> Any:  # noqa: ANN401 -- a commit
    """Change rows; without a session that has a JVM, in this process."""
    match statement:
        case UpdateStatement(values=values, where=where):
            return table.update(values, where, spark)
        case DeleteStatement(where=None):
            return table.delete("true")
        case DeleteStatement(where=where):
            return table.delete(str(where), spark)
        case MergeStatement() if spark is None:
            raise UsageError("a client of Spark Connect cannot merge with SQL: use table.merge with its rows")
        case MergeStatement():
            source = spark.sql(f"SELECT * FROM {statement.source}")  # noqa: S608 -- a part of the statement
            return _merge(table, source, statement)


def _merge(table: StoredTable, source: DataFrame, statement: MergeStatement) -> Any:  # noqa: ANN401 -- a commit
    for same in statement.on:
        source = _named(table, source, same)
    merge = table.merge(source, [same.target for same in statement.on])
    for clause in statement.clauses:
        match clause.when:
            case When.MATCHED_UPDATE:
                merge = merge.when_matched_update(clause.values, condition=clause.condition)
            case When.MATCHED_DELETE:
                merge = merge.when_matched_delete(clause.condition)
            case When.NOT_MATCHED_INSERT:
                merge = merge.when_not_matched_insert(clause.values, condition=clause.condition)
            case When.NOT_MATCHED_BY_SOURCE_DELETE:
                merge = merge.when_not_matched_by_source_delete(clause.condition)
    return merge.execute()


def _named(table: StoredTable, source: DataFrame, same: SameColumns) -> DataFrame:
    """Return the source with a column of a match under the name that the table has for it."""
    field = table.schema.load_column(same.target)
    names = {name.lower(): name for name in source.columns}
    given = source.select(F.col(same.source).alias("given"))
    # For `=`, a null is equal to nothing; for us, null is null.
    differs = not same.nulls and field.nullable and given.schema[0].nullable
    if differs and not given.where("given IS NULL").isEmpty():
        raise UsageError(
            f"cannot merge on `{same.target} = {same.source}`: rows of the source are null there, which `=` "
            "matches with nothing. Write <=> to match nulls, or leave these rows out"
        )
    if same.source.lower() == quote_name(field.name).lower():
        return source
    if field.name.lower() in names:
        raise UsageError(
            f"cannot merge on `{same.target} = {same.source}`: the source also has a column `{field.name}`. "
            "Leave it out, or give it another name"
        )
    return source.withColumn(field.name, F.col(same.source))
