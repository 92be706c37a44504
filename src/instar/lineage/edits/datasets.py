"""Datasets: descriptions by older clients, compatibility policies, and hiding them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select, update

from instar.errors import EntityNotFoundError, InvalidEventError
from instar.lineage.edits.bodies import DatasetBody, PolicyBody, read_body
from instar.lineage.edits.sending import job_of_run, send, signed
from instar.lineage.edits.tags import add_tags
from instar.lineage.ids import dataset_id, source_id
from instar.lineage.ingest.names import DEFAULT_SOURCE
from instar.lineage.models import DatasetFieldTagRow, DatasetRow, DatasetTagRow, SourceRow
from instar.lineage.queries.datasets import show_dataset
from instar.lineage.queries.names import load_dataset, load_namespace
from instar.lineage.verdicts import POLICIES

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from instar.lineage.database import Database
    from instar.lineage.queries.rows import Json

__all__ = ["delete_dataset", "put_dataset", "put_policy"]


def put_dataset(database: Database, namespace: str, name: str, body: object, *, now: int) -> None:
    """Create a dataset, or a new version of it if it is not what it was."""
    given = read_body(body, DatasetBody)
    if given.type not in {"DB_TABLE", "STREAM"}:
        raise InvalidEventError(f"the type of a dataset must be DB_TABLE or STREAM, not {given.type!r}")
    with database.reading() as connection:
        load_namespace(connection, namespace)
        uri = _source_url(connection, given.source_name)
        job = job_of_run(connection, given.run_id) if given.run_id else None
        known = _find_shown(connection, namespace, name)
    facets = _dataset_facets(given, uri)
    one = {"namespace": namespace, "name": name, "facets": facets}
    if job is not None:
        event = {"run": {"runId": given.run_id}, "job": job, "outputs": [one]}
        send(database, event, "RunEvent", now)
    elif known is None or _differs(known, given, facets):
        send(database, {"dataset": one}, "DatasetEvent", now)

    def work(connection: Connection) -> None:
        uuid = dataset_id(namespace, name)
        values = {"type": given.type, "physical_name": given.physical_name}
        connection.execute(update(DatasetRow).where(DatasetRow.uuid == uuid).values(**values))
        add_tags(connection, DatasetTagRow, {"dataset_uuid": uuid}, given.tags or [])
        for field in given.fields or []:
            key = {"dataset_uuid": uuid, "field_name": field.name}
            add_tags(connection, DatasetFieldTagRow, key, field.tags or [])

    database.write(work)


def _find_shown(connection: Connection, namespace: str, name: str) -> Json | None:
    try:
        return show_dataset(connection, load_dataset(connection, namespace, name))
    except EntityNotFoundError:
        return None


def _differs(known: Json, given: DatasetBody, facets: dict[str, Any]) -> bool:
    old = [(field["name"], field["type"], field["description"]) for field in known["fields"]]
    new = [(field.name, field.type, field.description) for field in given.fields or []]
    described = given.description is None or known["description"] == given.description
    return sorted(old, key=repr) != sorted(new, key=repr) or not described or (
        known["sourceName"] != facets["dataSource"]["name"]
    )  # fmt: skip


def _dataset_facets(given: DatasetBody, uri: str) -> dict[str, Any]:
    facets: dict[str, Any] = {"dataSource": {"name": given.source_name, "uri": uri}}
    if given.fields:
        fields = [
            {
                "name": field.name,
                "type": field.type,
                "description": field.description,
                "fields": field.fields or [],
            }
            for field in given.fields
        ]
        facets["schema"] = {"fields": fields}
    if given.description is not None:
        facets["documentation"] = {"description": given.description}
    if given.schema_location is not None:
        facets["marquez_schemaLocation"] = {"schemaLocation": given.schema_location}
    return signed(facets)


def _source_url(connection: Connection, name: str) -> str:
    found = connection.scalar(select(SourceRow.connection_url).where(SourceRow.uuid == source_id(name)))
    if found is None and name != DEFAULT_SOURCE:
        raise EntityNotFoundError("source", name)
    return found or ""


def put_policy(database: Database, namespace: str, name: str, body: object) -> Json:
    """Set how the schema of a dataset may change, and who gets an alert if it changes otherwise."""
    given = read_body(body, PolicyBody)
    if given.compatibility not in POLICIES:
        raise InvalidEventError(
            f"compatibility must be one of {', '.join(POLICIES)}, not {given.compatibility!r}"
        )

    def work(connection: Connection) -> None:
        root = load_dataset(connection, namespace, name)
        values = {"compatibility": given.compatibility, "webhook_url": given.webhook_url}
        connection.execute(update(DatasetRow).where(DatasetRow.uuid == root).values(**values))

    database.write(work)
    return {"compatibility": given.compatibility, "webhookUrl": given.webhook_url}


def delete_dataset(database: Database, namespace: str, name: str) -> Json:
    """Hide a dataset until the next event that names it."""

    def work(connection: Connection) -> Json:
        root = load_dataset(connection, namespace, name)
        shown = show_dataset(connection, root)
        connection.execute(update(DatasetRow).where(DatasetRow.root_uuid == root).values(is_hidden=True))
        return shown

    return database.write(work)
