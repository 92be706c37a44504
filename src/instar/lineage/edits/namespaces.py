"""Namespaces and sources, as people describe them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import update

from instar.lineage.database import insert
from instar.lineage.edits.bodies import NamespaceBody, SourceBody, check_name, read_body
from instar.lineage.ids import namespace_id, source_id
from instar.lineage.models import DatasetRow, JobRow, NamespaceRow, SourceRow
from instar.lineage.queries.names import load_namespace

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from instar.lineage.database import Database

__all__ = ["delete_namespace", "put_namespace", "put_source"]


def put_namespace(database: Database, name: str, body: object, *, now: int) -> None:
    """Create a namespace, or change its owner and description."""
    given = read_body(body, NamespaceBody)
    values = {"owner_name": given.owner_name, "description": given.description, "updated_at": now}
    row = {"uuid": namespace_id(name), "name": check_name(name), "created_at": now, "is_hidden": False}

    def work(connection: Connection) -> None:
        statement = insert(connection.dialect.name, NamespaceRow).values(**row, **values)
        connection.execute(
            statement.on_conflict_do_update(index_elements=["uuid"], set_={**values, "is_hidden": False})
        )

    database.write(work)


def put_source(database: Database, name: str, body: object, *, now: int) -> None:
    """Create a source, or change where it is; the next event that says otherwise wins again."""
    given = read_body(body, SourceBody)
    values = {
        "type": given.type,
        "connection_url": given.connection_url,
        "description": given.description,
        "updated_at": now,
        "stamp": f"{now + (1 << 62):016x}4",
    }

    def work(connection: Connection) -> None:
        row = {"uuid": source_id(name), "name": check_name(name), "created_at": now}
        statement = insert(connection.dialect.name, SourceRow).values(**row, **values)
        connection.execute(statement.on_conflict_do_update(index_elements=["uuid"], set_=values))

    database.write(work)


def delete_namespace(database: Database, name: str) -> None:
    """Hide a namespace, its datasets and its jobs, each until the next event that names it."""

    def work(connection: Connection) -> None:
        uuid = load_namespace(connection, name)
        connection.execute(update(NamespaceRow).where(NamespaceRow.uuid == uuid).values(is_hidden=True))
        for row in (DatasetRow, JobRow):
            connection.execute(update(row).where(row.namespace_uuid == uuid).values(is_hidden=True))

    database.write(work)
