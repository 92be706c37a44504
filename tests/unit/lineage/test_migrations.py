"""The scripts create the tables that the models describe."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text

from instar.errors import FormatTooNewError, UsageError
from instar.lineage import open_database
from instar.lineage.database import lock
from instar.lineage.models import Base

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from instar.lineage import Database


def test_scripts_and_models_agree(database: Database) -> None:
    """A database that was upgraded has exactly the tables, columns and indexes of the models."""
    with database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_every_foreign_key_has_an_index(database: Database) -> None:
    """Whatever refers to a row is found without reading a whole table."""
    found = inspect(database.engine)
    for name in Base.metadata.tables:
        leading = {next(iter(index["column_names"])) for index in found.get_indexes(name)}
        leading |= set(found.get_pk_constraint(name)["constrained_columns"][:1])
        leading |= {next(iter(unique["column_names"])) for unique in found.get_unique_constraints(name)}
        for key in found.get_foreign_keys(name):
            assert key["constrained_columns"][0] in leading, (name, key)


def test_a_database_of_a_newer_instar_is_refused(database: Database, database_url: str) -> None:
    """Nobody writes into tables that it does not understand."""
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 99"))
    with pytest.raises(FormatTooNewError, match="format 99"):
        open_database(database_url)


def test_many_locks_are_one(database: Database) -> None:
    """PostgreSQL has room for a few thousand locks: who needs more of them keeps everybody away with one."""

    def held(connection: Connection, count: int) -> dict[str, int]:
        lock(connection, [uuid4() for _ in range(count)])
        mine = "SELECT mode, count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        return {row[0]: row[1] for row in connection.execute(text(f"{mine} GROUP BY mode"))}

    if database.is_sqlite:
        pytest.skip("SQLite has one writer at a time")
    assert database.write(lambda connection: held(connection, 3)) == {"ShareLock": 1, "ExclusiveLock": 3}
    assert database.write(lambda connection: held(connection, 20_000)) == {"ExclusiveLock": 1}


def test_sqlite_is_read_while_it_is_written(database: Database) -> None:
    """An embedded database keeps a write-ahead log, and what was acknowledged is on disk."""
    if not database.is_sqlite:
        pytest.skip("of SQLite")
    with database.reading() as connection:
        found = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in
                 ("journal_mode", "synchronous", "foreign_keys")]  # fmt: skip
    assert found == ["wal", 2, 1]


@pytest.mark.parametrize("url", ["mysql://x/y", "lineage.db", "sqlite://", "sqlite:///:memory:"])
def test_only_databases_that_can_be_used_are_opened(url: str) -> None:
    """A database that instar does not know, or that would forget everything, is refused with an example."""
    with pytest.raises(UsageError, match=r"sqlite:///lineage\.db"):
        open_database(url)
