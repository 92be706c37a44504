"""openlineage-python, the client that producers have, works unchanged: sync, async, gzip and with retries."""

from __future__ import annotations

import json
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import pytest
from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import (
    DatasetEvent,
    InputDataset,
    Job,
    JobEvent,
    OutputDataset,
    Run,
    RunEvent,
    RunState,
    StaticDataset,
)
from openlineage.client.facet_v2 import column_lineage_dataset, schema_dataset
from openlineage.client.transport import get_default_factory

from tests.lineage import recorded_events
from tests.openlineage_spec import check_event, sample_facets

if TYPE_CHECKING:
    from testbed.service import Client

PRODUCER = "https://example.com/producer"


def client(url: str, **options: object) -> OpenLineageClient:
    """Return a client with a transport of this kind."""
    config: dict[str, Any] = {"type": "http", "url": url, "timeout": 60, **options}
    return OpenLineageClient(transport=get_default_factory().create(config))


def run_event(time: str, state: RunState, run: Run, job: Job, **io: Any) -> RunEvent:  # noqa: ANN401 -- attrs
    """Return an event of a run."""
    return RunEvent(eventTime=time, producer=PRODUCER, eventType=state, run=run, job=job, **io)


def events(run_id: str) -> list[RunEvent]:
    """Return the events of a run."""
    schema = schema_dataset.SchemaDatasetFacet(
        fields=[
            schema_dataset.SchemaDatasetFacetFields("a", "int"),
            schema_dataset.SchemaDatasetFacetFields(
                "s", "struct", fields=[schema_dataset.SchemaDatasetFacetFields("b", "string")]
            ),
        ]
    )
    columns = column_lineage_dataset.ColumnLineageDatasetFacet(
        fields={
            "a": column_lineage_dataset.Fields(
                inputFields=[column_lineage_dataset.InputField(namespace="db", name="in", field="x")]
            )
        }
    )
    output = OutputDataset("db", "out", facets={"schema": schema, "columnLineage": columns})
    job, run = Job("jobs", "etl"), Run(run_id)
    return [
        run_event("2026-01-01T00:00:00Z", RunState.START, run, job, inputs=[InputDataset("db", "in")]),
        run_event("2026-01-01T00:01:00Z", RunState.COMPLETE, run, job, outputs=[output]),
    ]


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_events_of_the_sync_client(service: Client, compression: str | None) -> None:
    """Each kind of event arrives, plain or compressed, with nested fields."""
    run_id = str(uuid.uuid4())
    sender = client(service.url, compression=compression)
    for event in events(run_id):
        sender.emit(event)
    at = "2026-01-01T00:02:00Z"
    sender.emit(DatasetEvent(dataset=StaticDataset("db", "static"), eventTime=at, producer=PRODUCER))
    sender.emit(JobEvent(job=Job("jobs", "static"), eventTime=at, producer=PRODUCER))
    run = service.ask(f"/jobs/runs/{run_id}")
    assert (run["state"], run["durationMs"]) == ("COMPLETED", 60_000)
    shown = service.ask("/namespaces/db/datasets/out")
    assert [(one["name"], one["type"]) for one in shown["fields"]] == [("a", "int"), ("s", "struct")]
    assert shown["fields"][1]["fields"][0]["name"] == "b"
    assert shown["columnLineage"][0]["inputFields"][0]["field"] == "x"
    assert service.ask("/namespaces/db/datasets")["totalCount"] == 3
    assert service.ask("/namespaces/jobs/jobs")["totalCount"] == 2


def test_events_of_the_async_client(service: Client) -> None:
    """Events of many runs at once all arrive."""
    runs = [str(uuid.uuid4()) for _ in range(8)]
    sender = client(service.url, type="async_http")
    for run_id in runs:
        for event in events(run_id):
            sender.emit(event)
    assert sender.close(timeout=60)
    for run_id in runs:
        assert service.ask(f"/jobs/runs/{run_id}")["state"] == "COMPLETED"
    assert service.ask("/namespaces/db/datasets/out/versions")["totalCount"] == 8
    assert service.ask("/namespaces/db/datasets/out/schema-versions")["totalCount"] == 1


class _LosingReplies(BaseHTTPRequestHandler):
    """Hands every request on, and loses the first reply to each: the client sends it again."""

    target = ""
    seen: set[bytes]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        status = httpx.post(self.target + self.path, content=body, timeout=60).status_code
        first = body not in self.seen
        self.seen.add(body)
        self.send_response(502 if first else status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_lost_reply_and_a_retry_store_an_event_once(service: Client) -> None:
    """The client sends again what it got no answer to, and that changes nothing."""
    handler = type("Handler", (_LosingReplies,), {"target": service.url, "seen": set()})
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        sender = client(f"http://127.0.0.1:{proxy.server_port}", retry={"total": 2, "backoff_factor": 0})
        for event in events(str(uuid.uuid4())):
            sender.emit(event)
    finally:
        proxy.shutdown()
        proxy.server_close()
    assert service.ask("/events/lineage")["totalCount"] == 2
    assert service.ask("/namespaces/db/datasets/out/versions")["totalCount"] == 1


def test_a_bad_event_is_refused_at_once(service: Client) -> None:
    """What can never be stored is answered with 4xx, which clients do not send again."""
    response = service.post("/api/v1/lineage", json={"eventTime": "yesterday"})
    assert response.status_code == 422
    start = time.monotonic()
    bad = run_event("2026-01-01T00:00:00Z", RunState.START, Run(str(uuid.uuid4())), Job("", "x"))
    with pytest.raises(Exception, match="422"):
        client(service.url).emit(bad)
    assert time.monotonic() - start < 5


def test_events_of_real_producers(service: Client) -> None:
    """Whatever Airflow and Spark sent is stored, listed as it was sent, and can be asked for."""
    sent = recorded_events()
    service.tell(*sent)
    listed = service.ask("/events/lineage", limit=1000)
    assert listed["totalCount"] == len(sent)
    assert sorted(json.dumps(one, sort_keys=True) for one in listed["events"]) == sorted(
        json.dumps(one, sort_keys=True) for one in sent
    )
    for space in service.ask("/namespaces")["namespaces"]:
        quoted = f"/namespaces/{quote(space['name'], safe='')}"
        assert service.ask(f"{quoted}/datasets")["totalCount"] >= 0
        for job in service.ask(f"{quoted}/jobs")["jobs"]:
            assert job["latestRun"] is None or job["latestRun"]["state"] in {"RUNNING", "COMPLETED"}


def test_every_facet_of_the_specification_is_kept(service: Client) -> None:
    """Each facet that OpenLineage defines is stored, and shown as it was sent with what it belongs to."""
    sent: dict[str, dict[str, Any]] = {}
    for owner, name, sample in sample_facets():
        sent.setdefault(owner, {})[name] = sample
    event = {
        "eventType": "COMPLETE",
        "eventTime": "2026-01-01T00:00:00Z",
        "producer": PRODUCER,
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": str(uuid.UUID(int=1)), "facets": sent["run"]},
        "job": {"namespace": "jobs", "name": "etl", "facets": sent["job"]},
        "inputs": [{"namespace": "db", "name": "in", "facets": {}, "inputFacets": sent["input"]}],
        "outputs": [
            {"namespace": "db", "name": "out", "facets": sent["dataset"], "outputFacets": sent["output"]}
        ],
    }
    assert check_event(event) == sum(map(len, sent.values()))
    service.tell(event)
    run = service.ask(f"/jobs/runs/{uuid.UUID(int=1)}")
    assert run["facets"] == sent["run"]
    assert service.ask("/namespaces/jobs/jobs/etl")["facets"] == sent["job"]
    assert service.ask("/namespaces/db/datasets/out")["facets"] == sent["dataset"]
    assert run["inputDatasetVersions"][0]["facets"] == sent["input"]
    (version,) = service.ask("/namespaces/db/datasets/out/versions")["versions"]
    assert version["facets"] == sent["dataset"] | sent["output"]
