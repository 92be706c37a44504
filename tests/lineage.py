"""What tests of lineage share: databases of both kinds, events, and a way to compare whole databases.

Import the fixtures `database_url` and `database` where they are needed, with `postgres` of `tests.servers`.
"""

from __future__ import annotations

import json
import random
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from sqlalchemy import select

from instar.lineage import Database, decode_event, ingest_event, open_database
from instar.lineage.models import Base

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.servers import PostgresServer

DATA = Path(__file__).parent / "data" / "openlineage"
BACKENDS = ["sqlite", "postgresql"]


def new_postgres_url(server: PostgresServer) -> str:
    """Return the URL of an empty database."""
    name = f"t{uuid.uuid4().hex}"
    base = server.url().partition("&schema=")[0]
    with psycopg.connect(base, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return base.replace("/postgres?", f"/{name}?")


@pytest.fixture(params=BACKENDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty database, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/lineage.db"
    return new_postgres_url(request.getfixturevalue("postgres"))


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """Open an empty database, of each kind in turn."""
    with open_database(database_url) as opened:
        yield opened


def send(database: Database, *events: dict[str, Any]) -> None:
    """Store events in this order."""
    for event in events:
        ingest_event(database, decode_event(event), received_at=0)


def dump(database: Database) -> dict[str, list[Any]]:
    """Return everything in a database, in an order of its own."""
    with database.reading() as connection:
        return {
            table.name: sorted(repr(tuple(row)) for row in connection.execute(select(table)))
            for table in Base.metadata.sorted_tables
        }


def recorded_events() -> list[dict[str, Any]]:
    """Return the events that real producers emitted."""
    return [json.loads(path.read_text()) for path in sorted((DATA / "events").rglob("*.json"))]


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


def random_events(seed: int, count: int = 30) -> list[dict[str, Any]]:
    """Return events in which everything that depends on order happens: few names, few times, all facets."""
    chance = random.Random(seed)
    schemas = [None, "a int", "a int, b string", "a bigint, b string", "b string, c", "a int, d date"]
    names = ["x", "y", "z", "other|x"]

    def some(role: str) -> list[dict[str, Any]]:
        return [one(name, role) for name in chance.sample(names, chance.choice([0, 1, 1, 2]))]

    def one(name: str, role: str) -> dict[str, Any]:
        facets: dict[str, Any] = {}
        if chance.random() < 0.3:
            facets["documentation"] = {"description": chance.choice("pqr")}
        if chance.random() < 0.1:
            facets["symlinks"] = {
                "identifiers": [{"namespace": "db", "name": chance.choice("xyz"), "type": "T"}]
            }
        if chance.random() < 0.2:
            facets["dataSource"] = {"name": "s", "uri": chance.choice(["s3://a", "s3://b"])}
        if role == "output" and chance.random() < 0.3:
            made = {"inputFields": [{"namespace": "db", "name": chance.choice("xyz"), "field": "a"}]}
            facets["columnLineage"] = {"fields": {"a": made}}
        return dataset(name, chance.choice(schemas), **facets)

    def event() -> dict[str, Any]:
        at = chance.randrange(20)
        kind = chance.choice(["START", "RUNNING", "COMPLETE", "COMPLETE", "COMPLETE", "FAIL", None])
        run = chance.randrange(1, 9)
        if chance.random() < 0.1:
            time = f"2026-01-01T00:00:{at:02}Z"
            return {"eventTime": time, "dataset": one(chance.choice(names), "output")}
        streaming = {"jobType": {"processingType": "STREAMING"}} if chance.random() < 0.1 else {}
        parent = {"parent": {"job": {"namespace": "jobs", "name": "top"}}} if chance.random() < 0.2 else {}
        return run_event(
            kind, at, run, job=f"job{run % 3}", inputs=some("input"), outputs=some("output"),
            facets=parent, job_facets=streaming,
        )  # fmt: skip

    events = [event() for _ in range(count)]
    if chance.random() < 0.5:  # a job without a run
        events.append({"eventTime": "2026-01-01T00:00:05Z", "job": {"namespace": "jobs", "name": "static"},
                       "inputs": some("input"), "outputs": some("output")})  # fmt: skip
    return events
