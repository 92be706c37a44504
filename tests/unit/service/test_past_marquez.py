"""What Marquez does not have: history and diff of schemas, policies with alerts, lineage as of a time."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

from instar.service.app import ServiceOptions
from testbed.lineage import dataset, run_event
from testbed.service import running

if TYPE_CHECKING:
    from testbed.service import Client

X = "/namespaces/db/datasets/x"


def test_the_history_of_a_schema_and_the_diff_of_any_two(service: Client) -> None:
    """Each content is there once, the newest first, and a diff says what changed and who is fenced."""
    schemas = ["a int, b string", "a bigint, b string, c date", "a bigint, c date", "a int, b string"]
    for run, fields in enumerate(schemas, start=1):
        service.tell(run_event("COMPLETE", run, run, outputs=[dataset("x", fields)]))
    history = service.ask(f"{X}/schema-versions")
    assert history["totalCount"] == 3
    new, middle, old = history["schemaVersions"]
    assert [field["name"] for field in new["fields"]] == ["a", "c"]
    assert old["createdAt"] == "2026-01-01T00:00:01.000Z"
    assert service.ask(f"{X}/schema-versions/{old['version']}") == old
    diff = service.ask(f"{X}/schema-versions/{old['version']}/diff/{middle['version']}")
    assert diff["compatible"] is True
    assert {(one["path"], one["kind"], one["fencesReaders"]) for one in diff["changes"]} == {
        ("a", "widened", True),
        ("c", "added", False),
    }
    back = service.ask(f"{X}/schema-versions/{middle['version']}/diff/{old['version']}")
    assert back["compatible"] is False
    assert ("a", "narrowed", "bigint", "int") in {
        (one["path"], one["kind"], one["old"], one["new"]) for one in back["changes"]
    }
    missing = service.get(f"/api/v1{X}/schema-versions/{old['version']}/diff/x")
    assert missing.status_code == 404


def test_types_that_nobody_knows_are_compared_as_they_are_written(service: Client) -> None:
    """A type that instar does not know is the same or another one; lengths of text do not matter."""
    for run, fields in enumerate(["g geometry, t varchar(10)", "g geography, t text"], start=1):
        service.tell(run_event("COMPLETE", run, run, outputs=[dataset("x", fields)]))
    new, old = service.ask(f"{X}/schema-versions")["schemaVersions"]
    diff = service.ask(f"{X}/schema-versions/{old['version']}/diff/{new['version']}")
    assert [(one["path"], one["old"], one["new"], one["permitted"]) for one in diff["changes"]] == [
        ("g", "geometry", "geography", False)
    ]


def test_schemas_that_no_table_could_have_are_compared_too(service: Client) -> None:
    """Names that differ in case, or cannot be printed, and endless nesting never make an event fail."""
    deep: dict[str, Any] = {"name": "a", "type": "int"}
    for _ in range(120):
        deep = {"name": "a", "type": "struct", "fields": [deep]}
    odd = [{"name": "a", "type": "int"}, {"name": "A", "type": "int"}, {"name": "b\u202e", "type": "int"}]
    service.tell(run_event("COMPLETE", 1, 1, outputs=[dataset("x", schema={"fields": odd})]))
    policy = {"compatibility": "full"}
    assert service.put("/api/v1/namespaces/db/datasets/x/compatibility", json=policy).status_code == 200
    service.tell(run_event("COMPLETE", 2, 2, outputs=[dataset("x", schema={"fields": odd[:2]})]))
    service.tell(run_event("COMPLETE", 3, 3, outputs=[dataset("x", schema={"fields": [deep, odd[1]]})]))
    third, second, first = (
        one["version"] for one in service.ask("/namespaces/db/datasets/x/schema-versions")["schemaVersions"]
    )
    base = "/namespaces/db/datasets/x/schema-versions"
    (change,) = service.ask(f"{base}/{first}/diff/{second}")["changes"]
    assert (change["path"], change["kind"]) == ("`b\\u202e`", "deleted")
    (change,) = service.ask(f"{base}/{second}/diff/{third}")["changes"]
    assert (change["path"], change["permitted"]) == ("a", False)
    assert service.ask("/namespaces/db/datasets/x/alerts")["totalCount"] == 2


def test_a_policy_that_is_broken_raises_an_alert(service: Client) -> None:
    """Backward allows what the rules permit, full allows nothing that fences a reader; none allows all."""
    service.tell(run_event("COMPLETE", 1, 1, outputs=[dataset("x", "a int, b int")]))
    put = f"/api/v1{X}/compatibility"
    assert service.put(put, json={"compatibility": "sideways"}).status_code == 422
    assert service.put(put, json={"compatibility": "backward"}).status_code == 200
    service.tell(run_event("COMPLETE", 2, 2, outputs=[dataset("x", "a int")]))
    assert service.ask(f"{X}/alerts")["totalCount"] == 0
    service.tell(run_event("COMPLETE", 3, 3, outputs=[dataset("x", "a string")]))
    alert = service.ask(f"{X}/alerts")["alerts"][0]
    assert (alert["policy"], alert["changes"][0]["kind"]) == ("backward", "type changed")
    assert service.put(put, json={"compatibility": "full"}).status_code == 200
    service.tell(run_event("COMPLETE", 4, 4, outputs=[dataset("x", "a string, b int")]))
    assert service.ask("/alerts")["totalCount"] == 1
    service.tell(run_event("COMPLETE", 5, 5, outputs=[dataset("x", "a string")]))
    assert service.ask("/alerts")["totalCount"] == 2
    service.tell(run_event("COMPLETE", 5, 5, outputs=[dataset("x", "a string")]))
    assert service.ask("/alerts")["totalCount"] == 2, "an event that is sent again alarms nobody again"


class _Receiver(BaseHTTPRequestHandler):
    received: list[bytes]
    arrived: threading.Event

    def do_POST(self) -> None:
        self.received.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(204)
        self.end_headers()
        self.arrived.set()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_alerts_are_delivered_to_a_webhook(database_url: str) -> None:
    """An alert arrives at the URL of its dataset, once."""
    state: dict[str, Any] = {"received": [], "arrived": threading.Event()}
    receiver = HTTPServer(("127.0.0.1", 0), type("Receiver", (_Receiver,), state))
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    try:
        with running(database_url, ServiceOptions(allow_local_webhooks=True)) as client:
            client.tell(run_event("COMPLETE", 1, 1, outputs=[dataset("x", "a int")]))
            policy = {"compatibility": "full", "webhookUrl": f"http://127.0.0.1:{receiver.server_port}/hook"}
            assert client.put(f"/api/v1{X}/compatibility", json=policy).status_code == 200
            client.tell(run_event("COMPLETE", 2, 2, outputs=[dataset("x", "b int")]))
            assert state["arrived"].wait(30)
    finally:
        receiver.shutdown()
        receiver.server_close()
    assert len(state["received"]) == 1
    assert b'"policy":"full"' in state["received"][0]


def test_a_webhook_never_leads_into_the_machine_itself(service: Client) -> None:
    """Loopback, link-local and other schemes are refused, in whatever way they are written."""
    service.tell(run_event("COMPLETE", 1, 1, outputs=[dataset("x", "a int")]))
    for url in (
        "http://127.0.0.1:5000/", "http://localhost/", "http://[::1]/", "http://169.254.169.254/latest",
        "http://0.0.0.0/", "http://[::ffff:127.0.0.1]/", "http://2130706433/", "file:///etc/passwd",
        "ftp://example.com", "http://", "nonsense", "http://[fe80::1]/", "http://[::ffff:7f00:1]/",
        "http://[64:ff9b::7f00:1]/", "http://[64:ff9b:1::a9fe:a9fe]/", "http://[2002:7f00:1::]/",
        "http://[2001:0:7f00:1::]/", "http://[::127.0.0.1]/", "http://0x7f.1/", "http://0177.0.0.1/",
        "http://127.1/", "http://user:word@127.0.0.1/", "http://[::]/", "http://[ff02::1]/",
        "http://[fec0::1]/",
    ):  # fmt: skip
        policy = {"compatibility": "full", "webhookUrl": url}
        response = service.put(f"/api/v1{X}/compatibility", json=policy)
        assert response.status_code == 422, url


def test_lineage_as_of_a_time(service: Client) -> None:
    """A graph can be asked for as it was known at a time, and without what was not seen for long."""
    service.tell(
        run_event("COMPLETE", 10, 1, inputs=[dataset("x")], outputs=[dataset("y")]),
        run_event("COMPLETE", 20, 2, inputs=[dataset("z")], outputs=[dataset("y")]),
    )

    def nodes(**query: str) -> set[str]:
        graph = service.ask("/lineage", nodeId="job:jobs:job", **query)["graph"]
        return {node["id"] for node in graph} - {"job:jobs:job"}

    assert nodes() == {"dataset:db:x", "dataset:db:y", "dataset:db:z"}
    assert nodes(asOf="2026-01-01T00:00:15Z") == {"dataset:db:x", "dataset:db:y"}
    assert nodes(since="2026-01-01T00:00:15Z") == {"dataset:db:y", "dataset:db:z"}


def test_the_graph_goes_as_deep_as_asked(service: Client) -> None:
    """A chain of jobs is followed in both directions, one step for each edge."""
    for step in range(6):
        service.tell(
            run_event(
                "COMPLETE",
                step,
                step + 1,
                job=f"j{step}",
                inputs=[dataset(f"d{step}")],
                outputs=[dataset(f"d{step + 1}")],
            )
        )
    for depth, expected in ((0, 1), (1, 3), (2, 5), (20, 13)):
        assert len(service.ask("/lineage", nodeId="dataset:db:d3", depth=depth)["graph"]) == expected
    node = service.ask("/lineage", nodeId="dataset:db:d3", depth=1)["graph"][0]
    assert node["inEdges"] == [{"origin": "job:jobs:j2", "destination": "dataset:db:d3"}]
    runs = service.ask("/runlineage/upstream", runId="00000000-0000-0000-0000-000000000006", depth=2)["runs"]
    assert [run["job"]["name"] for run in runs] == ["j5", "j4", "j3"]
    assert service.get("/api/v1/lineage", params={"nodeId": "dataset:db:no"}).status_code == 404
    assert service.get("/api/v1/lineage", params={"nodeId": "nonsense"}).status_code == 400


def test_a_run_says_which_version_it_read(service: Client) -> None:
    """A reader read what was current when it began, not what is current now nor what it wrote itself."""
    service.tell(
        run_event("COMPLETE", 1, 1, outputs=[dataset("x", "a int")]),
        run_event("COMPLETE", 5, 2, outputs=[dataset("x", "a int, b int")]),
        run_event("COMPLETE", 3, 3, job="late", inputs=[dataset("x")]),
        run_event("COMPLETE", 6, 4, job="loop", inputs=[dataset("x")], outputs=[dataset("x", "a int")]),
    )
    third, second, first = (one["version"] for one in service.ask(f"{X}/versions")["versions"])
    read = {
        job: service.ask(f"/namespaces/jobs/jobs/{job}/runs")["runs"][0]["inputDatasetVersions"][0]
        for job in ("late", "loop")
    }
    assert read["late"]["datasetVersionId"]["version"] == first
    assert read["loop"]["datasetVersionId"]["version"] == second
    assert service.ask(X)["currentVersion"] == third
