"""What people and older clients write: namespaces, sources, datasets, jobs, runs, tags, policies, deletions.

Datasets, jobs and runs are written as events, so there is one way into the database and one rule for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import uuid4

import msgspec
from msgspec import Meta, Struct
from sqlalchemy import delete, select, update

from instar.errors import EntityNotFoundError, InvalidEventError, UsageError
from instar.lineage.database import add_missing, insert
from instar.lineage.events import MAX_NAME, decode_event
from instar.lineage.ids import dataset_id, namespace_id, run_uuid, source_id
from instar.lineage.ingest import ingest_event
from instar.lineage.ingest.names import DEFAULT_SOURCE
from instar.lineage.models import (
    DatasetFieldTagRow,
    DatasetRow,
    DatasetTagRow,
    JobRow,
    JobTagRow,
    NamespaceRow,
    RunRow,
    SourceRow,
    TagRow,
)
from instar.lineage.queries.datasets import show_dataset
from instar.lineage.queries.names import load_dataset, load_job, load_namespace, load_run
from instar.lineage.queries.rows import Json, format_time
from instar.lineage.queries.runs import show_run
from instar.lineage.verdicts import POLICIES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from instar.lineage.database import Database

__all__ = [
    "create_run",
    "delete_dataset",
    "delete_job",
    "delete_namespace",
    "mark_run",
    "put_dataset",
    "put_job",
    "put_namespace",
    "put_policy",
    "put_source",
    "put_tag",
    "tag_dataset",
    "tag_field",
    "tag_job",
]

Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
TagName = Annotated[str, Meta(min_length=1, max_length=255)]
_PRODUCER: Final = "https://github.com/instar/lineage"
_TYPES: Final = {"BATCH": "BATCH", "STREAM": "STREAMING", "SERVICE": "SERVICE"}
_MARKS: Final = {"start": "START", "complete": "COMPLETE", "fail": "FAIL", "abort": "ABORT"}


class _Namespace(Struct, rename="camel"):
    owner_name: Name
    description: str | None = None


class _Source(Struct, rename="camel"):
    type: Name
    connection_url: str
    description: str | None = None


class _Field(Struct):
    name: Name
    type: str | None = None
    tags: list[TagName] | None = None
    description: str | None = None
    fields: list[dict[str, Any]] | None = None


class _Dataset(Struct, rename="camel"):
    type: str
    physical_name: Name
    source_name: Name
    fields: list[_Field] | None = None
    tags: list[TagName] | None = None
    description: str | None = None
    run_id: Name | None = None
    schema_location: str | None = None


class _DatasetId(Struct):
    namespace: Name
    name: Name


class _Job(Struct, rename="camel"):
    type: str
    inputs: list[_DatasetId] | None = None
    outputs: list[_DatasetId] | None = None
    location: str | None = None
    description: str | None = None
    run_id: Name | None = None
    context: dict[str, Any] | None = None


class _Run(Struct, rename="camel"):
    id: Name | None = None
    nominal_start_time: str | None = None
    nominal_end_time: str | None = None
    args: dict[str, Any] | None = None


class _Tag(Struct):
    description: str | None = None


class _Policy(Struct, rename="camel"):
    compatibility: str
    webhook_url: str | None = None


def _read(body: object, kind: type[Any]) -> Any:  # noqa: ANN401 -- an instance of kind
    try:
        found = msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        raise InvalidEventError(str(error)) from None
    if b"\\u0000" in msgspec.json.encode(found):
        raise InvalidEventError("it contains a zero character")
    return found


def check_name(name: str) -> str:
    """Return a name that came in a path, or raise if it cannot be one."""
    return str(_read({"ownerName": name}, _Namespace).owner_name)


def put_namespace(database: Database, name: str, body: object, *, now: int) -> None:
    """Create a namespace, or change its owner and description."""
    given = _read(body, _Namespace)
    values = {"owner_name": given.owner_name, "description": given.description, "updated_at": now}
    row = {"uuid": namespace_id(name), "name": check_name(name), "created_at": now, "is_hidden": False}

    def work(connection: Connection) -> None:
        statement = insert(connection.dialect.name, NamespaceRow).values(**row, **values)
        connection.execute(
            statement.on_conflict_do_update(index_elements=["uuid"], set_={**values, "is_hidden": False})
        )

    database.write(work)


def put_source(database: Database, name: str, body: object, *, now: int) -> None:
    """Create a source, or change where it is; the next event that says otherwise is right again."""
    given = _read(body, _Source)
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


def put_dataset(database: Database, namespace: str, name: str, body: object, *, now: int) -> None:
    """Create a dataset, or a new version of it if it is not what it was."""
    given = _read(body, _Dataset)
    if given.type not in {"DB_TABLE", "STREAM"}:
        raise InvalidEventError(f"the type of a dataset is DB_TABLE or STREAM, and not {given.type!r}")
    with database.reading() as connection:
        load_namespace(connection, namespace)
        uri = _source_url(connection, given.source_name)
        job = _job_of_run(connection, given.run_id) if given.run_id else None
        known = _find_shown(connection, namespace, name)
    facets = _dataset_facets(given, uri)
    one = {"namespace": namespace, "name": name, "facets": facets}
    if job is not None:
        event = {"run": {"runId": given.run_id}, "job": job, "outputs": [one]}
        _send(database, event, "RunEvent", now)
    elif known is None or _differs(known, given, facets):
        _send(database, {"dataset": one}, "DatasetEvent", now)

    def work(connection: Connection) -> None:
        uuid = dataset_id(namespace, name)
        values = {"type": given.type, "physical_name": given.physical_name}
        connection.execute(update(DatasetRow).where(DatasetRow.uuid == uuid).values(**values))
        _add_tags(connection, DatasetTagRow, {"dataset_uuid": uuid}, given.tags or [])
        for field in given.fields or []:
            key = {"dataset_uuid": uuid, "field_name": field.name}
            _add_tags(connection, DatasetFieldTagRow, key, field.tags or [])

    database.write(work)


def _find_shown(connection: Connection, namespace: str, name: str) -> Json | None:
    try:
        return show_dataset(connection, load_dataset(connection, namespace, name))
    except EntityNotFoundError:
        return None


def _differs(known: Json, given: _Dataset, facets: dict[str, Any]) -> bool:
    old = [(field["name"], field["type"], field["description"]) for field in known["fields"]]
    new = [(field.name, field.type, field.description) for field in given.fields or []]
    described = given.description is None or known["description"] == given.description
    return sorted(old, key=repr) != sorted(new, key=repr) or not described or (
        known["sourceName"] != facets["dataSource"]["name"]
    )  # fmt: skip


def _dataset_facets(given: _Dataset, uri: str) -> dict[str, Any]:
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
    return _signed(facets)


def _signed(facets: dict[str, Any]) -> dict[str, Any]:
    return {name: {"_producer": _PRODUCER, **facet} for name, facet in facets.items()}


def _source_url(connection: Connection, name: str) -> str:
    found = connection.scalar(select(SourceRow.connection_url).where(SourceRow.uuid == source_id(name)))
    if found is None and name != DEFAULT_SOURCE:
        raise EntityNotFoundError("source", name)
    return found or ""


def _job_of_run(connection: Connection, run_id: str) -> Json:
    job = show_run(connection, load_run(connection, run_id))["job"]
    return {"namespace": job["namespace"], "name": job["name"]}


def put_job(database: Database, namespace: str, name: str, body: object, *, now: int) -> None:
    """Create a job, or change what is known about it."""
    given = _read(body, _Job)
    if given.type not in _TYPES:
        raise InvalidEventError(f"the type of a job is one of {', '.join(_TYPES)}, and not {given.type!r}")
    with database.reading() as connection:
        load_namespace(connection, namespace)
        if given.run_id is not None:
            load_run(connection, given.run_id)
    facets: dict[str, Any] = {"jobType": {"processingType": _TYPES[given.type]}}
    if given.location is not None:
        facets["sourceCodeLocation"] = {"type": "url", "url": given.location}
    if given.description is not None:
        facets["documentation"] = {"description": given.description}
    if given.context is not None:
        facets["marquez_context"] = {"context": given.context}
    event: Json = {
        "job": {"namespace": namespace, "name": name, "facets": _signed(facets)},
        "inputs": [{"namespace": one.namespace, "name": one.name} for one in given.inputs or []],
        "outputs": [{"namespace": one.namespace, "name": one.name} for one in given.outputs or []],
    }
    if given.run_id is None:
        _send(database, event, "JobEvent", now)
    else:
        _send(database, {**event, "run": {"runId": given.run_id}}, "RunEvent", now)


def create_run(database: Database, namespace: str, job: str, body: object, *, now: int) -> str:
    """Create a run that has not started, and return its id."""
    given = _read(body if body is not None else {}, _Run)
    with database.reading() as connection:
        load_job(connection, namespace, job)
        run_id = given.id or str(uuid4())
        taken = connection.scalar(select(RunRow.uuid).where(RunRow.uuid == run_uuid(run_id)))
    if taken is not None:
        raise UsageError(f"run {run_id!r} exists already. Choose another id, or leave it out")
    facets: dict[str, Any] = {}
    if given.nominal_start_time is not None:
        times = {"nominalStartTime": given.nominal_start_time, "nominalEndTime": given.nominal_end_time}
        facets["nominalTime"] = {key: value for key, value in times.items() if value is not None}
    if given.args is not None:
        facets["marquez_args"] = {"args": given.args}
    event = {
        "run": {"runId": run_id, "facets": _signed(facets)},
        "job": {"namespace": namespace, "name": job},
    }
    _send(database, event, "RunEvent", now)
    return run_id


def mark_run(database: Database, run_id: str, mark: str, *, at: int, now: int) -> None:
    """Start, complete, fail or abort a run at a time."""
    with database.reading() as connection:
        job = _job_of_run(connection, run_id)
        uuid = str(load_run(connection, run_id))
    event = {"eventType": _MARKS[mark], "run": {"runId": uuid}, "job": job}
    _send(database, event, "RunEvent", at, now=now)


def _send(database: Database, event: Json, kind: str, at: int, *, now: int | None = None) -> None:
    whole = {
        **event,
        "eventTime": format_time(at),
        "producer": _PRODUCER,
        "schemaURL": f"https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/{kind}",
    }
    ingest_event(database, decode_event(whole), received_at=at if now is None else now)


def put_tag(database: Database, name: str, body: object) -> Json:
    """Create a tag, or describe it."""
    given, tag = _read(body if body is not None else {}, _Tag), _tag_name(name)

    def work(connection: Connection) -> None:
        statement = insert(connection.dialect.name, TagRow).values(name=tag, description=given.description)
        connection.execute(
            statement.on_conflict_do_update(index_elements=["name"], set_={"description": given.description})
        )

    database.write(work)
    return {"name": tag, "description": given.description}


def _tag_name(name: str) -> str:
    return str(_read({"name": "x", "tags": [name]}, _Field).tags[0])


def tag_dataset(database: Database, namespace: str, name: str, tag: str, *, remove: bool = False) -> None:
    """Give a dataset a tag, or take it away."""

    def work(connection: Connection) -> None:
        key = {"dataset_uuid": load_dataset(connection, namespace, name)}
        _change_tag(connection, DatasetTagRow, key, _tag_name(tag), remove=remove)

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
        _change_tag(connection, DatasetFieldTagRow, key, _tag_name(tag), remove=remove)

    database.write(work)


def tag_job(database: Database, namespace: str, name: str, tag: str, *, remove: bool = False) -> None:
    """Give a job a tag, or take it away."""

    def work(connection: Connection) -> None:
        key = {"job_uuid": load_job(connection, namespace, name)}
        _change_tag(connection, JobTagRow, key, _tag_name(tag), remove=remove)

    database.write(work)


def _change_tag(connection: Connection, row: Any, key: dict[str, Any], tag: str, *, remove: bool) -> None:  # noqa: ANN401 -- a table
    if not remove:
        _add_tags(connection, row, key, [tag])
        return
    wanted = [getattr(row, name) == value for name, value in key.items()]
    connection.execute(delete(row).where(*wanted, row.tag_name == tag))


def _add_tags(connection: Connection, row: Any, key: dict[str, Any], tags: Iterable[str]) -> None:  # noqa: ANN401 -- a table
    names = sorted(set(tags))
    add_missing(connection, TagRow, [{"name": name} for name in names])
    add_missing(connection, row, [{**key, "tag_name": name} for name in names])


def put_policy(database: Database, namespace: str, name: str, body: object) -> Json:
    """Say how the schema of a dataset may change, and who is told when it changes otherwise."""
    given = _read(body, _Policy)
    if given.compatibility not in POLICIES:
        raise InvalidEventError(f"compatibility is one of {', '.join(POLICIES)}, not {given.compatibility!r}")

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


def delete_job(database: Database, namespace: str, name: str) -> None:
    """Hide a job until the next event that names it."""

    def work(connection: Connection) -> None:
        uuid = load_job(connection, namespace, name)
        connection.execute(update(JobRow).where(JobRow.uuid == uuid).values(is_hidden=True))

    database.write(work)


def delete_namespace(database: Database, name: str) -> None:
    """Hide a namespace, its datasets and its jobs, each until the next event that names it."""

    def work(connection: Connection) -> None:
        uuid = load_namespace(connection, name)
        connection.execute(update(NamespaceRow).where(NamespaceRow.uuid == uuid).values(is_hidden=True))
        for row in (DatasetRow, JobRow):
            connection.execute(update(row).where(row.namespace_uuid == uuid).values(is_hidden=True))

    database.write(work)
