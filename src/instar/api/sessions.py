"""Calls for a Spark session: `instar.register`, for the tables of a store, and `instar.scan_reports`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from instar.api.store import Store
    from instar.table.read.report import ScanReport

__all__ = ["register", "scan_reports"]

_MOST_VIEWS: Final = 200
"""A store with more tables than this gets no views: each costs requests, and the catalog has all tables."""


def register(spark: SparkSession, store: Store, name: str = "instar", *, prefix: str = "") -> list[str]:
    """Register a store: as a catalog of SQL, each table as a temporary view, and the format `instar`.

    Returns the names of the views. In the catalog, tables are `instar.events` and instar.`billing/events`.
    Queries read the current rows and schema, or others with `VERSION AS OF` and `TIMESTAMP AS OF`. Statements
    create, alter, drop and write tables under the same rules as all other calls; docs/sql.md lists them.
    `name` is the name of the catalog. It is for this session only: register a session from `newSession()` as
    well.

    A view follows its table: each query reads the current rows, under the current schema. A frame is planned
    once: the same action on it again gives the rows of the first time. If a column that a query reads has
    changed in a way that does not fit the view, it raises `ReaderFencedError`; if the table holds
    retractions, this applies to every column, because all of them decide which rows are equal. A view keeps
    the columns, and their names, that its table had when it was registered. Register again after a rename or
    for new tables. A view of the same name is replaced, in this session only; no setting of the session is
    changed. Names with `/` are quoted in SQL: select * from `billing/events`. Tables whose names differ only
    in case get no view, and a warning says so, unless the session distinguishes case.

    With a `prefix`, only tables whose names begin with it become views. If there are more than 200, there are
    no views, because each table would have to be opened; a warning says so. The catalog has all tables, and
    opens those that a query names.

    A client of Spark Connect has no views, because they need the JVM. If the store has tables, the format is
    registered and then `UsageError` is raised. `instar.spark.register_source(spark)` only registers the
    format.
    """
    from instar.spark import make_catalog, make_views, register_source  # noqa: PLC0415 -- only then

    register_source(spark)
    make_catalog(spark, store, name)
    tables = store.find_tables(prefix, limit=_MOST_VIEWS + 1)
    if len(tables) > _MOST_VIEWS:
        warnings.warn(
            f"{store.location} has more than {_MOST_VIEWS} tables, so there are no views of them: query them "
            f"as {name}.`table`, or choose some with instar.register(spark, store, prefix='…')",
            stacklevel=2,
        )
        return []
    return make_views(spark, {table.name: table.follow for table in tables})


def scan_reports(frame: DataFrame) -> list[ScanReport]:
    """Plan a DataFrame without running it, and report on each scan of an instar table in it.

    The filters are those that Spark's optimizer has pushed down to each scan. A table that holds retractions
    by value may have two scans: a separate one for parts whose rows have to be added up. Over files, parts
    with retracted rows have one too. A subquery runs once, and is reported once.
    """
    from instar.spark import reports_of  # noqa: PLC0415 -- only who needs Spark loads it

    return reports_of(frame)
