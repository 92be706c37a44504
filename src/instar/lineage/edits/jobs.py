"""Jobs and their runs, as older clients create, start and end them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from sqlalchemy import select, update

from instar.errors import InvalidEventError, UsageError
from instar.lineage.edits.bodies import JobBody, RunBody, read_body
from instar.lineage.edits.sending import job_of_run, send, signed
from instar.lineage.ids import run_uuid
from instar.lineage.models import JobRow, RunRow
from instar.lineage.queries.names import load_job, load_namespace, load_run

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from instar.lineage.database import Database
    from instar.lineage.queries.rows import Json

__all__ = ["create_run", "delete_job", "mark_run", "put_job"]

_TYPES: Final = {"BATCH": "BATCH", "STREAM": "STREAMING", "SERVICE": "SERVICE"}
_MARKS: Final = {"start": "START", "complete": "COMPLETE", "fail": "FAIL", "abort": "ABORT"}


def put_job(database: Database, namespace: str, name: str, body: object, *, now: int) -> None:
    """Create a job, or change what is known about it."""
    given = read_body(body, JobBody)
    if given.type not in _TYPES:
        raise InvalidEventError(f"the type of a job must be one of {', '.join(_TYPES)}, not {given.type!r}")
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
        "job": {"namespace": namespace, "name": name, "facets": signed(facets)},
        "inputs": [{"namespace": one.namespace, "name": one.name} for one in given.inputs or []],
        "outputs": [{"namespace": one.namespace, "name": one.name} for one in given.outputs or []],
    }
    if given.run_id is None:
        send(database, event, "JobEvent", now)
    else:
        send(database, {**event, "run": {"runId": given.run_id}}, "RunEvent", now)


def create_run(database: Database, namespace: str, job: str, body: object, *, now: int) -> str:
    """Create a run that has not started, and return its id."""
    given = read_body(body if body is not None else {}, RunBody)
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
        "run": {"runId": run_id, "facets": signed(facets)},
        "job": {"namespace": namespace, "name": job},
    }
    send(database, event, "RunEvent", now)
    return run_id


def mark_run(database: Database, run_id: str, mark: str, *, at: int, now: int) -> None:
    """Start, complete, fail or abort a run at a time."""
    with database.reading() as connection:
        job = job_of_run(connection, run_id)
        uuid = str(load_run(connection, run_id))
    event = {"eventType": _MARKS[mark], "run": {"runId": uuid}, "job": job}
    send(database, event, "RunEvent", at, now=now)


def delete_job(database: Database, namespace: str, name: str) -> None:
    """Hide a job until the next event that names it."""

    def work(connection: Connection) -> None:
        uuid = load_job(connection, namespace, name)
        connection.execute(update(JobRow).where(JobRow.uuid == uuid).values(is_hidden=True))

    database.write(work)
