"""Jobs and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from instar.lineage import edits
from instar.lineage.queries.jobs import list_job_versions, list_jobs, show_job, show_job_version
from instar.lineage.queries.names import load_job, load_namespace, load_run
from instar.lineage.queries.rows import facets_of
from instar.lineage.queries.runs import list_runs, show_run
from instar.service.parameters import PAGE, Parameter, page_of
from instar.service.routing import ApiCall, Endpoint, Reply

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from sqlalchemy import Connection

__all__ = ["JOBS"]


def _ask(call: ApiCall, question: Callable[[Connection, UUID], Any]) -> Reply:
    """Ask something about the job that the path names."""
    with call.database.reading() as connection:
        return Reply(question(connection, load_job(connection, call["namespace"], call["job"])))


def get_jobs(call: ApiCall) -> Reply:
    """List the jobs of a namespace, or of all."""
    with call.database.reading() as connection:
        namespace = load_namespace(connection, call["namespace"]) if "namespace" in call.path else None
        states = call.query["lastRunStates"]
        return Reply(list_jobs(connection, namespace, page_of(call.query), states))


def get_job(call: ApiCall) -> Reply:
    """Show a job."""
    return _ask(call, show_job)


def put_job(call: ApiCall) -> Reply:
    """Create or change a job."""
    edits.put_job(call.database, call["namespace"], call["job"], call.body, now=call.now)
    return get_job(call)


def delete_job(call: ApiCall) -> Reply:
    """Hide a job."""
    shown = get_job(call)
    edits.delete_job(call.database, call["namespace"], call["job"])
    return shown


def get_job_versions(call: ApiCall) -> Reply:
    """List the versions of a job."""
    return _ask(call, lambda connection, job: list_job_versions(connection, job, page_of(call.query)))


def get_job_version(call: ApiCall) -> Reply:
    """Show a version of a job."""
    return _ask(call, lambda connection, job: show_job_version(connection, job, call["version"]))


def change_tag(*, remove: bool) -> Callable[[ApiCall], Reply]:
    """Return a handler that gives a job a tag, or takes it away."""

    def handler(call: ApiCall) -> Reply:
        edits.tag_job(call.database, call["namespace"], call["job"], call["tag"], remove=remove)
        return get_job(call)

    return handler


def get_runs(call: ApiCall) -> Reply:
    """List the runs of a job."""
    return _ask(call, lambda connection, job: list_runs(connection, job, page_of(call.query)))


def post_run(call: ApiCall) -> Reply:
    """Create a run of a job."""
    run_id = edits.create_run(call.database, call["namespace"], call["job"], call.body, now=call.now)
    with call.database.reading() as connection:
        shown = show_run(connection, load_run(connection, run_id))
    return Reply(shown, 201, {"Location": f"/api/v1/jobs/runs/{shown['id']}"})


def get_run(call: ApiCall) -> Reply:
    """Show a run."""
    with call.database.reading() as connection:
        return Reply(show_run(connection, load_run(connection, call["run"])))


def get_run_facets(call: ApiCall) -> Reply:
    """Show the facets of a run, or of its job."""
    with call.database.reading() as connection:
        run = load_run(connection, call["run"])
        if call.query["type"] == "JOB":
            job = show_run(connection, run)["job"]
            facets = show_job(connection, load_job(connection, job["namespace"], job["name"]))["facets"]
        else:
            facets = facets_of(connection, [run], "run").get(run, {})
    return Reply({"runId": str(run), "facets": facets})


def mark(how: str) -> Callable[[ApiCall], Reply]:
    """Return a handler that starts, completes, fails or aborts a run."""

    def handler(call: ApiCall) -> Reply:
        at = call.query["at"] if call.query["at"] is not None else call.now
        edits.mark_run(call.database, call["run"], how, at=at, now=call.now)
        return get_run(call)

    return handler


_ALL = "/api/v1/namespaces/{namespace}/jobs"
_ONE = f"{_ALL}/{{job}}"
_RUN = "/api/v1/jobs/runs/{run}"
_STATES = Parameter(
    "lastRunStates", "text", "Only jobs whose last run is in one of these states.", repeated=True,
    choices=("NEW", "RUNNING", "COMPLETED", "FAILED", "ABORTED"),
)  # fmt: skip
_AT = (Parameter("at", "time", "When it happened; now, if not said."),)

JOBS = [
    Endpoint("GET", "/api/v1/jobs", get_jobs, "List the jobs of all namespaces.", (*PAGE, _STATES)),
    Endpoint("GET", _ALL, get_jobs, "List the jobs of a namespace.", (*PAGE, _STATES)),
    Endpoint("GET", _ONE, get_job, "Show a job."),
    Endpoint("PUT", _ONE, put_job, "Create or change a job.", body="Job", writes=True),
    Endpoint("DELETE", _ONE, delete_job, "Hide a job until the next event.", writes=True),
    Endpoint("GET", f"{_ONE}/versions", get_job_versions, "List the versions of a job.", PAGE),
    Endpoint("GET", f"{_ONE}/versions/{{version}}", get_job_version, "Show a version of a job."),
    Endpoint("POST", f"{_ONE}/tags/{{tag}}", change_tag(remove=False), "Tag a job.", writes=True),
    Endpoint("DELETE", f"{_ONE}/tags/{{tag}}", change_tag(remove=True), "Untag a job.", writes=True),
    Endpoint("GET", f"{_ONE}/runs", get_runs, "List the runs of a job.", PAGE),
    Endpoint("POST", f"{_ONE}/runs", post_run, "Create a run.", body="Run", writes=True, status=201),
    Endpoint("GET", _RUN, get_run, "Show a run."),
    Endpoint("GET", f"{_RUN}/facets", get_run_facets, "Show the facets of a run or of its job.",
             (Parameter("type", choices=("RUN", "JOB"), default="RUN"),)),
    *[
        Endpoint("POST", f"{_RUN}/{how}", mark(how), f"Say that a run has {done}.", _AT, writes=True)
        for how, done in (
            ("start", "started"), ("complete", "completed"), ("fail", "failed"), ("abort", "been aborted"),
        )
    ],
]  # fmt: skip
