"""Tags of datasets, fields and jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import delete

from instar.errors import EntityNotFoundError
from instar.lineage.database import add_missing, insert
from instar.lineage.edits.bodies import TagBody, check_tag, read_body
from instar.lineage.models import DatasetFieldTagRow, DatasetTagRow, JobTagRow, TagRow
from instar.lineage.queries.datasets import show_dataset
from instar.lineage.queries.names import load_dataset, load_job

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from instar.lineage.database import Database
    from instar.lineage.queries.rows import Json

__all__ = ["add_tags", "put_tag", "tag_dataset", "tag_field", "tag_job"]


def put_tag(database: Database, name: str, body: object) -> Json:
    """Create a tag, or describe it."""
    given, tag = read_body(body if body is not None else {}, TagBody), check_tag(name)

    def work(connection: Connection) -> None:
        statement = insert(connection.dialect.name, TagRow).values(name=tag, description=given.description)
        connection.execute(
            statement.on_conflict_do_update(index_elements=["name"], set_={"description": given.description})
        )

    database.write(work)
    return {"name": tag, "description": given.description}


def tag_dataset(database: Database, namespace: str, name: str, tag: str, *, remove: bool = False) -> None:
    """Give a dataset a tag, or take it away."""

    def work(connection: Connection) -> None:
        key = {"dataset_uuid": load_dataset(connection, namespace, name)}
        _change_tag(connection, DatasetTagRow, key, check_tag(tag), remove=remove)

    database.write(work)


def tag_field(
    database: Database, namespace: str, name: str, field: str, tag: str, *, remove: bool = False
) -> None:
    """Give a field of a dataset a tag, or take it away."""

    def work(connection: Connection) -> None:
        root = load_dataset(connection, namespace, name)
        if field not in {one["name"] for one in show_dataset(connection, root)["fields"]}:
            raise EntityNotFoundError("field", field)
        key = {"dataset_uuid": root, "field_name": field}
        _change_tag(connection, DatasetFieldTagRow, key, check_tag(tag), remove=remove)

    database.write(work)


def tag_job(database: Database, namespace: str, name: str, tag: str, *, remove: bool = False) -> None:
    """Give a job a tag, or take it away."""

    def work(connection: Connection) -> None:
        key = {"job_uuid": load_job(connection, namespace, name)}
        _change_tag(connection, JobTagRow, key, check_tag(tag), remove=remove)

    database.write(work)


def _change_tag(connection: Connection, row: Any, key: dict[str, Any], tag: str, *, remove: bool) -> None:  # noqa: ANN401 -- a table
    if not remove:
        add_tags(connection, row, key, [tag])
        return
    wanted = [getattr(row, name) == value for name, value in key.items()]
    connection.execute(delete(row).where(*wanted, row.tag_name == tag))


def add_tags(connection: Connection, row: Any, key: dict[str, Any], tags: Iterable[str]) -> None:  # noqa: ANN401 -- a table
    """Add tags to what has this key; tags that nobody has used before are made."""
    names = sorted(set(tags))
    add_missing(connection, TagRow, [{"name": name} for name in names])
    add_missing(connection, row, [{**key, "tag_name": name} for name in names])
