"""The pages as an ASGI application: lists with search, a dataset, a job, and the graph around either.

Everything is asked through `instar.lineage.queries`. Templates escape every value, and the policy in the
headers lets a browser load nothing that does not come from here.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote

import anyio.to_thread
import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import Response

from instar.errors import InstarError, NotFoundError, UsageError, disposition
from instar.lineage.queries.alerts import list_alerts
from instar.lineage.queries.catalog import search
from instar.lineage.queries.datasets import list_versions, show_dataset
from instar.lineage.queries.graph import Window, graph_of_node
from instar.lineage.queries.jobs import show_job
from instar.lineage.queries.names import GraphNode, load_dataset, load_job
from instar.lineage.queries.rows import Page
from instar.lineage.queries.runs import list_runs
from instar.lineage.queries.schemas import diff_schema_versions, list_schema_versions
from instar.service.pages.figures import (
    columns_around,
    latest_states,
    run_bars,
    schema_steps,
    show_duration,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection
    from starlette.types import Receive, Scope, Send

    from instar.lineage import Database

__all__ = ["Site"]

_PAGE: Final = 50
_RECENT: Final = 25
_SCHEMAS: Final = 100
_MAX_NODES: Final = 400
_DEPTHS: Final = (2, 4, 8, 20)
_KINDS: Final = {"": None, "datasets": "DATASET", "jobs": "JOB"}
_PROMISES: Final = {"backward": "every schema can read what was written", "full": "no reader is fenced"}
_SORTS: Final = {"name": "NAME", "latest": "UPDATE_AT"}
_STATIC: Final = {
    "style.css": "text/css",
    "graph.js": "text/javascript",
    "page.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

Query = dict[str, str]


class Site:
    """All pages over one database."""

    def __init__(self, database: Database, *, needs_token: bool = False) -> None:
        self.database = database
        self.needs_token = needs_token
        self.templates = Environment(
            loader=PackageLoader("instar.service.pages"), autoescape=True, undefined=StrictUndefined
        )
        self.templates.globals["link"] = _link
        self.templates.filters["moment"] = _moment
        self.templates.filters["duration"] = show_duration
        self.pages: dict[str, Callable[[Connection, Query], Response]] = {
            "/": self._home,
            "/dataset": self._dataset,
            "/job": self._job,
            "/graph.json": self._graph,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, which has been allowed to pass."""
        response = await anyio.to_thread.run_sync(self._answer, scope)
        await response(scope, receive, send)

    def _answer(self, scope: Scope) -> Response:
        path = scope["path"]
        try:
            if scope["method"] not in {"GET", "HEAD"}:
                raise UsageError("pages can only be read")
            if path.startswith("/static/"):
                return _static(path.removeprefix("/static/"))
            if path not in self.pages:
                raise NotFoundError("there is nothing at this address")
            given = parse_qs(scope["query_string"].decode("latin-1"), errors="replace", max_num_fields=20)
            query = {name: values[-1].replace("\0", "") for name, values in given.items()}
            with self.database.reading() as connection:
                return self.pages[path](connection, query)
        except InstarError as error:
            status = disposition(error).http_status
            return self._render("problem.html", status, title="Not here", message=str(error))
        except ValueError as error:
            return self._render("problem.html", 400, title="Not here", message=str(error))

    def sign_in(self, wanted: str, problem: str | None, status: int) -> Response:
        """Return the form to sign in with, which leads to the page that was wanted."""
        return self._render(
            "sign_in.html", status, title="Sign in", wanted=wanted, problem=problem, signed=False
        )

    def _render(self, template: str, status: int = 200, **values: Any) -> Response:  # noqa: ANN401 -- of pages
        values = {"query": {"q": "", "kind": "", "sort": "name"}, "signed": self.needs_token, **values}
        text = self.templates.get_template(template).render(**values)
        return Response(text, status, _HEADERS, media_type="text/html; charset=utf-8")

    # Pages

    def _home(self, connection: Connection, query: Query) -> Response:
        kind = query.get("kind", "")
        if kind not in _KINDS:
            raise UsageError("kind is datasets or jobs")
        sort = query.get("sort", "name")
        if sort not in _SORTS:
            raise UsageError("sort is name or latest")
        at = _number(query.get("page"), 1)
        text = query.get("q", "")
        page = Page(_PAGE, (at - 1) * _PAGE)
        found = search(connection, text, page, kind=_KINDS[kind], sort=_SORTS[sort])
        states = latest_states(connection, found["results"])
        for number, one in enumerate(found["results"]):
            one["state"] = states.get(number)
        counts = {
            other: found["totalCount"]
            if other == kind
            else search(connection, text, Page(0), kind=_KINDS[other])["totalCount"]
            for other in _KINDS
        }
        return self._render(
            "home.html",
            title="Lineage",
            found=found,
            query={"q": text, "kind": kind, "sort": sort},
            counts=counts,
            at=at,
            last=max(1, -(-found["totalCount"] // _PAGE)),
        )

    def _dataset(self, connection: Connection, query: Query) -> Response:
        root = load_dataset(connection, query.get("ns", ""), query.get("name", ""))
        dataset = show_dataset(connection, root)
        schemas = list_schema_versions(connection, root, Page(_SCHEMAS))
        ids = [schema["version"] for schema in schemas["schemaVersions"]]
        old, new = query.get("old"), query.get("new")
        if old is None and new is None and len(ids) > 1:
            old, new = ids[1], ids[0]
        diff = diff_schema_versions(connection, root, old, new) if old and new else None
        return self._render(
            "dataset.html",
            title=dataset["name"],
            dataset=dataset,
            schemas=schemas,
            steps=schema_steps(schemas["schemaVersions"]),
            chosen=(old, new),
            diff=diff,
            fenced=sorted({one["path"] for one in diff["changes"] if one["fencesReaders"]}) if diff else [],
            promise=_PROMISES.get(dataset["compatibility"], ""),
            versions=list_versions(connection, root, Page(_RECENT)),
            columns=columns_around(connection, root, dataset),
            alerts=list_alerts(connection, Page(1), root),
            node=_node_id("dataset", dataset),
            near=_near(connection, GraphNode("dataset", root), dataset),
            depths=_DEPTHS,
        )

    def _job(self, connection: Connection, query: Query) -> Response:
        uuid = load_job(connection, query.get("ns", ""), query.get("name", ""))
        job = show_job(connection, uuid)
        runs = list_runs(connection, uuid, Page(_RECENT))
        return self._render(
            "job.html",
            title=job["name"],
            job=job,
            runs=runs,
            bars=run_bars(runs["runs"]),
            node=_node_id("job", job),
            near=_near(connection, GraphNode("job", uuid), job),
            depths=_DEPTHS,
        )

    def _graph(self, connection: Connection, query: Query) -> Response:
        depth = min(_number(query.get("depth"), 2), _DEPTHS[-1])
        names = query.get("ns", ""), query.get("name", "")
        node = (
            GraphNode("job", load_job(connection, *names))
            if query.get("kind") == "job"
            else GraphNode("dataset", load_dataset(connection, *names))
        )
        graph = graph_of_node(connection, node, depth, Window())["graph"]
        nodes = [
            {
                "id": node["id"],
                "kind": node["type"].lower(),
                "name": node["data"]["name"],
                "namespace": node["data"]["namespace"],
                "state": (node["data"].get("latestRun") or {}).get("state"),
                "href": _link(node["type"].lower(), node["data"]["namespace"], node["data"]["name"]),
            }
            for node in graph
        ]
        edges = [[edge["origin"], edge["destination"]] for node in graph for edge in node["outEdges"]]
        shown = {"nodes": nodes, "edges": edges, "tooMany": len(nodes) > _MAX_NODES}
        if shown["tooMany"]:
            shown["nodes"], shown["edges"] = [], []
        shown["count"] = len(nodes)
        return Response(msgspec.json.encode(shown), headers=_HEADERS, media_type="application/json")


def _node_id(kind: str, shown: dict[str, Any]) -> str:
    return f"{kind}:{shown['namespace']}:{shown['name']}"


def _near(
    connection: Connection, node: GraphNode, shown: dict[str, Any]
) -> dict[str, list[tuple[str, str, str]]]:
    """Return what is one step before and after a node, for those without JavaScript."""
    graph = graph_of_node(connection, node, 1, Window())["graph"]
    here = _node_id(node.kind, shown)
    after = {edge["destination"] for one in graph if one["id"] == here for edge in one["outEdges"]}
    found: dict[str, list[tuple[str, str, str]]] = {"before": [], "after": []}
    for other in graph:
        entry = (other["type"].lower(), other["data"]["namespace"], other["data"]["name"])
        if here in {edge["destination"] for edge in other["outEdges"]}:
            found["before"].append(entry)
        if other["id"] in after:
            found["after"].append(entry)
    return found


def _static(name: str) -> Response:
    if name not in _STATIC:
        raise NotFoundError("there is nothing at this address")
    content = files("instar.service.pages").joinpath("static", name).read_bytes()
    headers = {**_HEADERS, "Cache-Control": "max-age=3600"}
    return Response(content, headers=headers, media_type=_STATIC[name])


def _link(kind: str, namespace: str, name: str) -> str:
    """Return the address of the page of a dataset or a job."""
    return f"/{kind}?ns={quote(namespace, safe='')}&name={quote(name, safe='')}"


def _moment(text: str | None) -> str:
    return "" if text is None else text[:19].replace("T", " ")


def _number(text: str | None, otherwise: int) -> int:
    if text is None:
        return otherwise
    if not text.isdecimal() or not 0 < int(text) < 10**9:
        raise UsageError(f"{text!r} is not a number that can be asked for")
    return int(text)
