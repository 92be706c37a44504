"""Whatever is sent is answered with 2xx or 4xx, in one shape, and everything stays readable."""

from __future__ import annotations

import json
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from testbed.lineage import dataset, run_event
from testbed.service import running
from tests.lineage import database_url
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from testbed.service import Client

__all__ = ["database_url", "postgres"]

ODD = ["\0", "\uffff", "\u202e", "%s{}'\""]
LISTS = (
    "/namespaces", "/namespaces/db/datasets", "/namespaces/jobs/jobs", "/jobs", "/search?q=x",
    "/events/lineage", "/sources", "/tags", "/alerts", "/namespaces/db/datasets/x",
    "/namespaces/db/datasets/x/versions", "/namespaces/db/datasets/x/schema-versions",
    "/namespaces/jobs/jobs/job/runs", "/namespaces/jobs/jobs/job/versions", "/lineage?nodeId=dataset:db:x",
    "/column-lineage?nodeId=dataset:db:x&withDownstream=true",
)  # fmt: skip


@contextmanager
def attacking(url: str) -> Iterator[Client]:
    """Serve with pages, and show in the end that everything can still be read."""
    with running(url, pages=True) as client:
        client.tell(run_event("COMPLETE", 1, 99, inputs=[dataset("y")], outputs=[dataset("x", "a int")]))
        yield client
        for path in LISTS:
            assert client.get(f"/api/v1{path}").status_code == 200, path
        for page in ("/", "/dataset?ns=db&name=x", "/job?ns=jobs&name=job", "/graph.json?ns=db&name=x"):
            assert client.get(page).status_code == 200, page


@pytest.fixture
def attacked(database_url: str) -> Iterator[Client]:
    """Attack a service on each kind of database."""
    with attacking(database_url) as client:
        yield client


@pytest.fixture(scope="module")
def attacked_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Attack one service again and again."""
    with attacking(f"sqlite:///{tmp_path_factory.mktemp('attacks')}/lineage.db") as client:
        yield client


def check(response: httpx.Response, what: object) -> None:
    """Check that an answer is no 5xx, and that an error has the shape that all have."""
    assert response.status_code < 500, (what, response.text)
    if response.status_code >= 400:
        assert response.json().keys() == {"code", "message", "error"}, (what, response.text)
        assert response.json()["code"] == response.status_code


def test_odd_characters_anywhere_in_an_event(attacked: Client) -> None:
    """A zero character is refused in names and kept out of PostgreSQL; all others are only text."""
    for odd in ODD:
        facets: list[dict[str, Any]] = [
            {"schema": {"fields": [{"name": f"a{odd}", "type": odd, "description": odd}]}},
            {"documentation": {"description": odd}, f"x{odd}": {odd: odd}},
            {"dataSource": {"name": odd, "uri": odd}, "lifecycleStateChange": {"lifecycleStateChange": odd}},
            {"symlinks": {"identifiers": [{"namespace": odd, "name": f"n{odd}", "type": odd}]}},
            {"columnLineage": {"fields": {f"c{odd}": {"transformationType": odd, "inputFields": [
                {"namespace": "n", "name": "m", "field": odd, "transformations": [{"type": odd}]}]}}}},
        ]  # fmt: skip
        for some in facets:
            one = {"namespace": "db", "name": "x", "facets": some, "outputFacets": some}
            event = run_event("COMPLETE", 5, 5, outputs=[one])
            check(attacked.post("/api/v1/lineage", json=event), (odd, some))
        for change in (
            {"producer": odd}, {"schemaURL": odd}, {"eventTime": odd}, {"eventType": odd},
            {"job": {"namespace": f"n{odd}", "name": f"j{odd}", "facets": {"sql": {"query": odd}}}},
            {"run": {"runId": f"r{odd}", "facets": {"parent": {"job": {"namespace": odd, "name": odd}}}}},
        ):  # fmt: skip
            check(attacked.post("/api/v1/lineage", json={**run_event("COMPLETE", 5, 6), **change}), change)


def test_wrong_types_anywhere_in_an_event(attacked_sqlite: Client) -> None:
    """A facet that is not what its name promises is refused, or kept and shown as it is."""
    for wrong in (None, 3, [3], {"a": 3}, ""):
        for facet in (
            "schema",
            "documentation",
            "dataSource",
            "lifecycleStateChange",
            "columnLineage",
            "symlinks",
        ):
            for inner in (
                "fields",
                "description",
                "name",
                "uri",
                "lifecycleStateChange",
                "identifiers",
                "_deleted",
            ):
                one = {"namespace": "db", "name": "x", "facets": {facet: {inner: wrong}}}
                event = run_event("COMPLETE", 6, 7, outputs=[one])
                check(attacked_sqlite.post("/api/v1/lineage", json=event), (facet, inner, wrong))
        for where in ("run", "job", "inputs", "outputs", "eventTime", "schemaURL"):
            event = {**run_event("COMPLETE", 6, 8), where: wrong}
            check(attacked_sqlite.post("/api/v1/lineage", json=event), (where, wrong))
        job_facets = {name: {"processingType": wrong, "url": wrong, "description": wrong}
                      for name in ("jobType", "sourceCodeLocation", "documentation")}  # fmt: skip
        run_facets = {
            "nominalTime": {"nominalStartTime": wrong},
            "parent": {"run": wrong},
            "errorMessage": {},
        }
        event = run_event("COMPLETE", 6, 9, facets=run_facets, job_facets=job_facets)
        check(attacked_sqlite.post("/api/v1/lineage", json=event), wrong)
        for path in ("namespaces/n", "sources/s", "tags/t", "namespaces/db/datasets/x/compatibility",
                     "namespaces/db/datasets/z", "namespaces/jobs/jobs/z"):  # fmt: skip
            body = {"ownerName": wrong, "type": wrong, "connectionUrl": wrong, "description": wrong,
                    "compatibility": wrong, "webhookUrl": wrong, "physicalName": wrong}  # fmt: skip
            for sent in (body, wrong):
                check(attacked_sqlite.put(f"/api/v1/{path}", content=json.dumps(sent)), (path, sent))


@pytest.mark.parametrize(
    "time",
    [
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59.999999Z",
        "9999-12-31T23:59:59-14:00",
    ],
)
def test_times_at_the_end_of_the_calendar_are_refused(attacked_sqlite: Client, time: str) -> None:
    """A time that cannot be shown in another zone, or a moment before, would spoil every list that has it."""
    event = {**run_event("COMPLETE", 1, 2, inputs=[dataset("new")]), "eventTime": time}
    assert attacked_sqlite.post("/api/v1/lineage", json=event).status_code == 422
    for mark in ("start", "complete"):
        run = f"/api/v1/jobs/runs/00000000-0000-0000-0000-000000000063/{mark}"
        check(attacked_sqlite.post(run, params={"at": time}), time)


def test_large_and_deep_events_end(attacked_sqlite: Client) -> None:
    """Thousands of columns are stored, and what would keep all others waiting is refused."""
    fields = ",".join(f"c{number} int" for number in range(3000))
    attacked_sqlite.tell(run_event("COMPLETE", 7, 10, outputs=[dataset("wide", fields)]))
    deep: dict[str, Any] = {"name": "a"}
    for _ in range(100):
        deep = {"name": "a", "type": "struct", "fields": [deep]}
    attacked_sqlite.tell(run_event("COMPLETE", 7, 11, outputs=[dataset("deep", schema={"fields": [deep]})]))
    many = [{"namespace": "db", "name": f"d{number}"} for number in range(5001)]
    refused = attacked_sqlite.post("/api/v1/lineage", json=run_event("COMPLETE", 7, 12, outputs=many))
    assert (refused.status_code, "5001 datasets" in refused.text) == (422, True)
    twice = [dataset("x", "a int, a string, A"), dataset("x", "b int"), dataset("x")]
    attacked_sqlite.tell(run_event("COMPLETE", 7, 13, inputs=twice, outputs=twice))


def test_odd_queries_and_paths(attacked: Client) -> None:
    """Numbers out of range, zero characters, bad escapes and names of any length are 4xx or find nothing."""
    queries = (
        "limit=-1", "limit=99999999999999999999", "offset=9223372036854775807", "offset=9007199254740992",
        "limit=1.5", "limit=%00", "depth=-1", "depth=99999999999999999", "nodeId=%00", "nodeId=%ff",
        "nodeId=dataset::", "nodeId=datasetField:" + "a:" * 2000, "q=%25_%5c", "q=%00", "sort=x", "before=x",
        "after=2026-01-01", "before=9999-12-31T23:59:59Z", "runId=%00", "runId=x", "withDownstream=maybe",
        "asOf=0001-01-01T00:00:00Z", "lastRunStates=X", "namespace=%00", "&".join(["limit=1"] * 2000),
        "page=99999999999999999999",
    )  # fmt: skip
    for query in queries:
        for path in (*(path.partition("?")[0] for path in LISTS[3:6] + LISTS[11:15]), "/runlineage/upstream"):
            check(attacked.get(f"/api/v1{path}?{query}"), (path, query))
        for page in ("/", "/dataset", "/job", "/graph.json"):
            response = attacked.get(f"{page}?{query}&ns=db&name=x&old=%00&new=x")
            assert response.status_code < 500, (page, query)
    for name in ("%00", "%ff", "x" * 3000, "a%0d%0ab", "%zz"):
        for path in (
            "namespaces/{}",
            "namespaces/db/datasets/{}/versions/{}",
            "jobs/runs/{}",
            "tags/{}",
            "{}",
        ):
            for method in ("GET", "PUT", "POST", "PATCH"):
                target = f"/api/v1/{path.replace('{}', name)}"
                check(attacked.request(method, target, content=b"{}"), (method, target[:60]))


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET /api/v1/namespaces/\xff\xfe HTTP/1.1\r\nHost: 127.0.0.1",
        b"GET /api/v1/lineage?nodeId=\xc3\xa9 HTTP/1.1\r\nHost: 127.0.0.1",
        b"GET http://elsewhere/api/v1/namespaces HTTP/1.1\r\nHost: 127.0.0.1",
        b"GET /api/v1/namespaces HTTP/1.1\r\nHost: [::1",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://[::1",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: \xff=\xfe; ;;=",
        b"POST /api/v1/lineage HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1",
        b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0",
    ],
)
def test_requests_that_no_client_would_send(attacked_sqlite: Client, request_line: bytes) -> None:
    """Bytes that are no proper request are answered, and not with 5xx."""
    address = "127.0.0.1", int(attacked_sqlite.url.rpartition(":")[2])
    with socket.create_connection(address) as connection:
        connection.sendall(request_line + b"\r\nConnection: close\r\n\r\n")
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    assert int(answer.split(b" ", 2)[1]) < 500, answer
