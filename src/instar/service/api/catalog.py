"""Namespaces, sources, tags, search, events and alerts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.errors import UsageError
from instar.lineage import edits
from instar.lineage.events import EventKind
from instar.lineage.queries import catalog
from instar.lineage.queries.alerts import list_alerts
from instar.lineage.queries.stats import count_events, count_things, intervals
from instar.service.parameters import OFFSET, PAGE, Parameter, page_of
from instar.service.routing import ApiCall, Endpoint, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CATALOG"]


def get_namespaces(call: ApiCall) -> Reply:
    """List the namespaces."""
    with call.database.reading() as connection:
        return Reply(catalog.list_namespaces(connection, page_of(call.query)))


def get_namespace(call: ApiCall) -> Reply:
    """Show a namespace."""
    with call.database.reading() as connection:
        return Reply(catalog.show_namespace(connection, call["namespace"]))


def put_namespace(call: ApiCall) -> Reply:
    """Create or change a namespace."""
    edits.put_namespace(call.database, call["namespace"], call.body, now=call.now)
    return get_namespace(call)


def delete_namespace(call: ApiCall) -> Reply:
    """Hide a namespace and what is in it."""
    shown = get_namespace(call)
    edits.delete_namespace(call.database, call["namespace"])
    return shown


def get_sources(call: ApiCall) -> Reply:
    """List the sources."""
    with call.database.reading() as connection:
        return Reply(catalog.list_sources(connection, page_of(call.query)))


def get_source(call: ApiCall) -> Reply:
    """Show a source."""
    with call.database.reading() as connection:
        return Reply(catalog.show_source(connection, call["source"]))


def put_source(call: ApiCall) -> Reply:
    """Create or change a source."""
    edits.put_source(call.database, call["source"], call.body, now=call.now)
    return get_source(call)


def get_tags(call: ApiCall) -> Reply:
    """List the tags."""
    with call.database.reading() as connection:
        return Reply(catalog.list_tags(connection, page_of(call.query)))


def put_tag(call: ApiCall) -> Reply:
    """Create or describe a tag."""
    return Reply(edits.put_tag(call.database, call["tag"], call.body))


def get_search(call: ApiCall) -> Reply:
    """Search names."""
    query = call.query
    if not query["q"]:
        raise UsageError("say what to search for: q is empty")
    with call.database.reading() as connection:
        return Reply(
            catalog.search(
                connection, query["q"], page_of(query), kind=query["filter"], sort=query["sort"],
                namespace=query["namespace"], before=query["before"], after=query["after"],
            )
        )  # fmt: skip


def get_run_events(call: ApiCall) -> Reply:
    """List events of runs as they were received."""
    return get_events(call, EventKind.RUN)


def get_stats(what: str) -> Callable[[ApiCall], Reply]:
    """Return a handler that counts events, or what there is."""

    def handler(call: ApiCall) -> Reply:
        spans = intervals(call.now, call.query["period"], call.query["timezone"])
        with call.database.reading() as connection:
            if what == "lineage-events":
                return Reply(count_events(connection, spans))
            return Reply(count_things(connection, what, spans))

    return handler


def get_events(call: ApiCall, kind: EventKind | None = None) -> Reply:
    """List events as they were received."""
    query = call.query
    with call.database.reading() as connection:
        return Reply(
            catalog.list_events(
                connection, page_of(query), before=query["before"], after=query["after"],
                descending=query["sortDirection"] == "DESC", namespace=call.path.get("namespace"), kind=kind,
            )
        )  # fmt: skip


def get_alerts(call: ApiCall) -> Reply:
    """List alerts of all datasets."""
    with call.database.reading() as connection:
        return Reply(list_alerts(connection, page_of(call.query)))


_V1 = "/api/v1"
_NAMESPACE = f"{_V1}/namespaces/{{namespace}}"
_SOURCE = f"{_V1}/sources/{{source}}"
_TIMES = (
    Parameter("before", "time", "Only what is older than this."),
    Parameter("after", "time", "Only what is not older than this."),
)
_SEARCH = (
    Parameter("q", description="A part of the name.", required=True),
    Parameter("filter", choices=("DATASET", "JOB"), description="Only one kind."),
    Parameter("sort", choices=("NAME", "UPDATE_AT"), default="NAME"),
    Parameter("limit", "integer", "How many to return at most.", 10, most=1000),
    OFFSET,
    Parameter("namespace", description="Only of this namespace."),
    *_TIMES,
)
_STATS = (
    Parameter(
        "period", choices=("DAY", "WEEK"), description="Hours of a day or days of a week.", required=True
    ),
    Parameter("timezone", description="Where a day begins at midnight.", default="UTC"),
)
_EVENTS = (*PAGE, *_TIMES, Parameter("sortDirection", choices=("DESC", "ASC"), default="DESC"))

CATALOG = [
    Endpoint("GET", f"{_V1}/namespaces", get_namespaces, "List the namespaces.", PAGE),
    Endpoint("GET", _NAMESPACE, get_namespace, "Show a namespace."),
    Endpoint(
        "PUT", _NAMESPACE, put_namespace, "Create or change a namespace.", body="Namespace", writes=True
    ),
    Endpoint("DELETE", _NAMESPACE, delete_namespace, "Hide a namespace.", writes=True),
    Endpoint("GET", f"{_V1}/sources", get_sources, "List the sources.", PAGE),
    Endpoint("GET", _SOURCE, get_source, "Show a source."),
    Endpoint("PUT", _SOURCE, put_source, "Create or change a source.", body="Source", writes=True),
    Endpoint("GET", f"{_V1}/tags", get_tags, "List the tags.", PAGE),
    Endpoint("PUT", f"{_V1}/tags/{{tag}}", put_tag, "Create or describe a tag.", body="Tag", writes=True),
    Endpoint("GET", f"{_V1}/search", get_search, "Search datasets and jobs by name.", _SEARCH),
    Endpoint("GET", f"{_V1}/events/lineage", get_run_events, "List the events of runs.", _EVENTS),
    Endpoint("GET", f"{_V1}/events", get_events, "List events as they were received.", _EVENTS),
    Endpoint("GET", f"{_V1}/events/{{namespace...}}", get_events, "List the events of a namespace.", _EVENTS),
    Endpoint("GET", f"{_V1}/alerts", get_alerts, "List alerts about schemas.", PAGE),
    *[
        Endpoint("GET", f"{_V1}/stats/{what}", get_stats(what), f"Count {words} by the hour or day.", _STATS)
        for what, words in (
            ("lineage-events", "events"), ("jobs", "jobs"), ("datasets", "datasets"), ("sources", "sources"),
        )
    ],
]  # fmt: skip
