"""Bring the tables of a database up to date, with the Alembic scripts in `migrations`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from instar.errors import FormatTooNewError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from instar.lineage.database import Database

__all__ = ["upgrade"]

_UPGRADE_LOCK = 0x696E7374  # one process at a time creates tables


def upgrade(database: Database) -> None:
    """Run the scripts that have not been run; refuse a database that a newer instar has upgraded."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    scripts = ScriptDirectory.from_config(config)

    def run(connection: Connection) -> None:
        if not database.is_sqlite:
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_UPGRADE_LOCK})"))
        current = MigrationContext.configure(connection).get_current_revision()
        known = [script.revision for script in scripts.walk_revisions()]
        if current is not None and current not in known:
            raise FormatTooNewError("the lineage database", found=int(current), supported=len(known))
        if current != scripts.get_current_head():
            config.attributes["connection"] = connection
            command.upgrade(config, "head")

    database.write(run)
