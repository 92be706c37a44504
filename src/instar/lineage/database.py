"""Where lineage is kept: SQLite, which needs no server, or PostgreSQL. Connections, transactions and locks.

A transaction that lost against another one is tried again, so what runs in it must do nothing else.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError

from instar.errors import StorageError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from uuid import UUID

    from instar.lineage.models import Base

__all__ = ["Database", "add_missing", "add_one", "insert", "lock", "open_database"]

T = TypeVar("T")

_ATTEMPTS: Final = 12
# Serialization failure, deadlock, and what changed since we looked: a table was dropped (the old layout), or
# a row that nobody referred to was deleted by retention, or is referred to now.
_RETRIED: Final = {"40001", "40P01", "42P01", "23503"}
_BUSY_SECONDS: Final = 60
_MOST_LOCKS: Final = 200
_EVERYTHING: Final = 0x696E737461  # the lock that stands for all others
_LOCK_EVERYTHING: Final = text("SELECT pg_advisory_xact_lock(CAST(:everything AS bigint))")
_LOCK_SOME: Final = text(
    "SELECT pg_advisory_xact_lock_shared(CAST(:everything AS bigint)), "
    "(SELECT count(pg_advisory_xact_lock(k)) FROM unnest(CAST(:keys AS bigint[])) AS k)"
)


class Database:
    """A lineage database that is open."""

    def __init__(self, url: str) -> None:
        self.url = _engine_url(url)
        self.is_sqlite = self.url.startswith("sqlite")
        self.engine = self._engine()
        # SQLite has one writer at a time: waiting here is fair, and asking it again and again is not.
        self._writer = threading.Lock()

    def _engine(self) -> Engine:
        try:
            if not self.is_sqlite:
                return create_engine(self.url, pool_size=16, max_overflow=16, pool_pre_ping=True)
            engine = create_engine(self.url, connect_args={"timeout": _BUSY_SECONDS})
        except (ArgumentError, ImportError) as error:
            raise UsageError(f"cannot open the database: {error}") from error
        event.listen(engine, "connect", _prepare_sqlite)
        return engine

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection that sees one state of the database."""
        with _storage_errors("reading lineage"), self.engine.connect() as connection:
            if not self.is_sqlite:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")  # noqa: PLW2901
            with connection.begin():
                if self.is_sqlite:
                    connection.exec_driver_sql("BEGIN")
                yield connection

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run some work in one transaction, again if another one was in its way; return what it returns."""
        with _storage_errors("writing lineage"):
            for attempt in range(_ATTEMPTS):
                try:
                    return self._write_once(work)
                except DBAPIError as error:
                    if attempt == _ATTEMPTS - 1 or getattr(error.orig, "sqlstate", None) not in _RETRIED:
                        raise
                    time.sleep(0.01 * attempt)
        raise AssertionError  # the last attempt returns or raises

    def _write_once(self, work: Callable[[Connection], T]) -> T:
        if not self.is_sqlite:
            with self.engine.begin() as connection:
                return work(connection)
        with self._writer, self.engine.connect() as connection, connection.begin():
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            return work(connection)


def lock(connection: Connection, keys: Iterable[UUID]) -> None:
    """Keep all others away from these things until the transaction ends, always in the same order.

    PostgreSQL has room for a few thousand locks, for everybody together. A call that needs many takes one
    that keeps everybody away.
    """
    if connection.dialect.name == "sqlite":
        return  # the only writer
    numbers = sorted({int.from_bytes(key.bytes[:8], signed=True) for key in keys})
    if len(numbers) > _MOST_LOCKS:
        connection.execute(_LOCK_EVERYTHING, {"everything": _EVERYTHING})
        return
    connection.execute(_LOCK_SOME, {"everything": _EVERYTHING, "keys": numbers})


def insert(dialect: str, row: type[Base]) -> Any:  # noqa: ANN401 -- two dialects, one interface
    """Return an INSERT that knows ON CONFLICT in a dialect."""
    return (sqlite if dialect == "sqlite" else postgresql).insert(row)


@cache
def _insert_missing(dialect: str, row: type[Base]) -> Any:  # noqa: ANN401 -- see above
    return insert(dialect, row).on_conflict_do_nothing()


def add_missing(connection: Connection, row: type[Base], values: list[dict[str, Any]]) -> None:
    """Insert the rows that are not there yet."""
    if values:
        connection.execute(_insert_missing(connection.dialect.name, row), values)


def add_one(connection: Connection, row: type[Base], value: dict[str, Any]) -> bool:
    """Insert a row, and say whether it was not there yet."""
    statement = _insert_missing(connection.dialect.name, row)
    # Without the option, SQLAlchemy has forgotten the number by the time that it is asked for.
    return connection.execute(statement.execution_options(preserve_rowcount=True), value).rowcount == 1


def open_database(url: str) -> Database:
    """Open a database and bring its tables up to date."""
    from instar.lineage.migrate import upgrade  # noqa: PLC0415 -- Alembic is slow to load

    database = Database(url)
    try:
        with _storage_errors(f"opening {make_url(database.url).render_as_string()}"):
            _check_owner(database)
            upgrade(database)
            _write_both(database)
    except BaseException:
        database.close()
        raise
    return database


def _check_owner(database: Database) -> None:
    """Refuse to create tables among those of Marquez, some of which have the same names."""
    from instar.lineage.old_layout.tables import is_marquez  # noqa: PLC0415 -- it imports this module

    with database.reading() as connection:
        if is_marquez(connection):
            raise UsageError(
                "this database belongs to Marquez: name one of its own for instar, and let Marquez's clients "
                "send their events to it"
            )


def _write_both(database: Database) -> None:
    """Let a database that still has the old layout be written in both."""
    from instar.lineage.old_layout.both import OLD_LAYOUT_OPTION  # noqa: PLC0415 -- it imports this module
    from instar.lineage.old_layout.tables import has_old_table  # noqa: PLC0415

    with database.reading() as connection:
        if not has_old_table(connection):
            return
    database.engine = database.engine.execution_options(**{OLD_LAYOUT_OPTION: True})


def _engine_url(url: str) -> str:
    """Name the driver, and make the directory of a file."""
    scheme, separator, rest = url.partition("://")
    if separator and scheme in {"postgresql", "postgres"}:
        return f"postgresql+psycopg://{rest}"
    if separator and scheme in {"sqlite", "postgresql+psycopg"}:
        path = rest.removeprefix("/")
        if scheme == "sqlite" and path and path != ":memory:":
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        if scheme == "sqlite" and path in {"", ":memory:"}:
            raise UsageError(
                "lineage that is only in memory is lost: name a file, as in sqlite:///lineage.db"
            )
        return url
    raise UsageError(
        f"{url!r} is not a database for lineage: write sqlite:///lineage.db, or "
        "postgresql://user@host/database"
    )


def _prepare_sqlite(connection: Any, _: object) -> None:  # noqa: ANN401 -- the driver's own class
    connection.isolation_level = None  # transactions begin where we say so
    for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "cache_size = -65536"):
        connection.execute(f"PRAGMA {setting}")
    # SQLite itself knows the small letters of ASCII alone.
    connection.create_function("lower", 1, _lower, deterministic=True)


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


@contextmanager
def _storage_errors(operation: str) -> Iterator[None]:
    """Raise what is not our fault as a `StorageError`."""
    try:
        yield
    except OperationalError as error:
        raise StorageError(operation, str(error.orig).strip()) from error
