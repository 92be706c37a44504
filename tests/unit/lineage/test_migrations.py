"""The scripts create the tables that the models describe."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text

from instar.errors import FormatTooNewError, UsageError
from instar.lineage import open_database
from instar.lineage.models import Base

if TYPE_CHECKING:
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


@pytest.mark.parametrize("url", ["mysql://x/y", "lineage.db", "sqlite://", "sqlite:///:memory:"])
def test_only_databases_that_can_be_used_are_opened(url: str) -> None:
    """A database that instar does not know, or that would forget everything, is refused with an example."""
    with pytest.raises(UsageError, match=r"sqlite:///lineage\.db"):
        open_database(url)
