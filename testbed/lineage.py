"""Databases and events of lineage: empty databases of PostgreSQL, and OpenLineage events in few words."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterable

    from testbed.servers import PostgresServer

__all__ = ["dataset", "new_postgres_url", "run_event"]


def new_postgres_url(server: PostgresServer) -> str:
    """Return the URL of an empty database."""
    name = f"t{uuid.uuid4().hex}"
    base = server.url().partition("&schema=")[0]
    with psycopg.connect(base, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return base.replace("/postgres?", f"/{name}?")


def dataset(name: str, fields: str | None = None, **facets: Any) -> dict[str, Any]:  # noqa: ANN401 -- JSON
    """Return a dataset of an event; `fields` is written as in `a int, b`."""
    if fields is not None:
        parsed = [field.split(maxsplit=1) for field in fields.split(",")]
        facets["schema"] = {"fields": [dict(zip(("name", "type"), words, strict=False)) for words in parsed]}
    namespace, _, short = name.rpartition("|")
    return {"namespace": namespace or "db", "name": short, "facets": facets}


def run_event(
    kind: str | None,
    at: int,
    run: int | str = 1,
    *,
    job: str = "job",
    inputs: Iterable[dict[str, Any]] = (),
    outputs: Iterable[dict[str, Any]] = (),
    facets: dict[str, Any] | None = None,
    job_facets: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return an event of a run, some seconds after the beginning of 2026."""
    event = {
        "eventType": kind,
        "eventTime": f"2026-01-01T{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}Z",
        "producer": "https://example.com/producer",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {
            "runId": run if isinstance(run, str) else str(uuid.UUID(int=run)),
            "facets": facets or {},
        },
        "job": {"namespace": "jobs", "name": job, "facets": job_facets or {}},
        "inputs": list(inputs),
        "outputs": list(outputs),
    }
    return event if kind is not None else {key: value for key, value in event.items() if key != "eventType"}
