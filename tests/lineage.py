"""What tests of lineage share: databases of both kinds, many events, and a way to compare whole databases.

Import the fixtures `database_url` and `database` where they are needed, with `postgres` of `tests.servers`.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import select

from instar.lineage import Database, decode_event, ingest_event, open_database
from instar.lineage.models import Base
from testbed.lineage import dataset, new_postgres_url, run_event

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = Path(__file__).parent / "data" / "openlineage"
BACKENDS = ["sqlite", "postgresql"]


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
