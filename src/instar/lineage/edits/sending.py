"""Edits as events, so there is one way into the database and one rule for all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from instar.lineage.events import decode_event
from instar.lineage.ingest import ingest_event
from instar.lineage.queries.names import load_run
from instar.lineage.queries.rows import Json, format_time
from instar.lineage.queries.runs import show_run

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from instar.lineage.database import Database

__all__ = ["job_of_run", "send", "signed"]

_PRODUCER: Final = "urn:x-instar:lineage"


def send(database: Database, event: Json, kind: str, at: int, *, now: int | None = None) -> None:
    """Store an edit as an event that happened at a time."""
    whole = {
        **event,
        "eventTime": format_time(at),
        "producer": _PRODUCER,
        "schemaURL": f"https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/{kind}",
    }
    ingest_event(database, decode_event(whole), received_at=at if now is None else now)


def signed(facets: dict[str, Any]) -> dict[str, Any]:
    """Say of facets that they come from here."""
    return {name: {"_producer": _PRODUCER, **facet} for name, facet in facets.items()}


def job_of_run(connection: Connection, run_id: str) -> Json:
    """Return the job of a run as events name it."""
    job = show_run(connection, load_run(connection, run_id))["job"]
    return {"namespace": job["namespace"], "name": job["name"]}
