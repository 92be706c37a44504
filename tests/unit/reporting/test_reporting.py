"""instar reports its writes through the OpenLineage client, and never waits for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import instar
from instar.errors import InstarError
from instar.lineage import decode_event, ingest_event, open_database
from instar.lineage.queries.neighbours import neighbours
from instar.reporting import RunInput, reading_from, sender
from instar.reporting.run import Notice, is_configured
from tests.openlineage_spec import check_event

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class _Endpoint:
    """A server on loopback that keeps what it is sent."""

    def __init__(self) -> None:
        events: list[dict[str, Any]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                events.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(201)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.events = events
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture(autouse=True)
def _own_sender(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sender, "_senders", [])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith("OPENLINEAGE")]:
        monkeypatch.delenv(name)


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Endpoint]:
    """Serve an endpoint, and configure it as everyone does. What it is sent must be as specified."""
    found = _Endpoint()
    monkeypatch.setenv("OPENLINEAGE_URL", found.url)
    yield found
    found.server.shutdown()
    found.server.server_close()
    for event in found.events:
        check_event(event)


def _count(outcome: str) -> float:
    return float(sender.EVENTS.labels(outcome)._value.get())


def test_a_commit_is_a_run_with_schema_statistics_and_version(endpoint: _Endpoint, tmp_path: Path) -> None:
    """An append starts and completes a run whose output has the schema, the rows and the version."""
    with instar.open(tmp_path / "lake") as store:
        table = store.create_table("events", "user string not null, place struct<city: string>")
        with reading_from([RunInput("file", "/in.csv", same_columns=True)]):
            commit = table.append(pa.table({"user": ["a", "b"]}))
        location = store.location
    assert sender.flush(30)
    start, complete = endpoint.events
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert complete["job"]["name"] == "events.append"
    (output,) = complete["outputs"]
    assert (output["namespace"], output["name"]) == (location, "events")
    fields = output["facets"]["schema"]["fields"]
    assert [(field["name"], field["type"]) for field in fields] == [("user", "string"), ("place", "struct")]
    assert fields[1]["fields"][0]["name"] == "city"
    assert output["facets"]["version"]["datasetVersion"] == str(commit.seqno)
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 2
    made = output["facets"]["columnLineage"]["fields"]["user"]["inputFields"]
    assert [(one["namespace"], one["name"], one["field"]) for one in made] == [("file", "/in.csv", "user")]
    with open_database(f"sqlite:///{tmp_path}/lineage.db") as database:
        for event in endpoint.events:
            ingest_event(database, decode_event(event), received_at=0)
        with database.reading() as connection:
            found = neighbours(connection, "events", 3)
    assert [step["dataset"] for step in found["fedBy"]] == ["dataset:file:/in.csv"]
    assert found["feeds"] == []


def test_a_write_that_fails_is_a_run_that_failed(endpoint: _Endpoint, tmp_path: Path) -> None:
    """What was refused is reported with the reason, and raises as it would without reporting."""
    with instar.open(tmp_path / "lake") as store:
        table = store.create_table("events", "n int")
        with pytest.raises(InstarError):
            table.append(pa.table({"n": ["no number"]}))
    assert sender.flush(30)
    assert endpoint.events[-1]["eventType"] == "FAIL"
    assert "DataMismatchError" in endpoint.events[-1]["run"]["facets"]["errorMessage"]["message"]


def test_an_endpoint_that_does_not_answer_costs_a_writer_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A write returns before a dead endpoint has been given up, and what is not sent is counted."""
    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:9")
    failed, dropped = _count("failed"), _count("dropped")
    with instar.open(tmp_path / "lake") as store:
        table = store.create_table("events", "n int")
        for number in range(3):
            table.append(pa.table({"n": [number]}))
        assert table.count() == 3
    assert sender.flush(60)
    assert _count("failed") == failed + 1  # after that, it is left alone for a while
    assert _count("dropped") == dropped + 5


def test_a_full_queue_drops_events_and_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most so many events wait, however slow the endpoint is."""
    gate = threading.Event()
    monkeypatch.setattr(sender.Sender, "_deliver", lambda *_: gate.wait())
    slow = sender.Sender(capacity=2)
    before = _count("dropped")
    for _ in range(10):
        slow.send(Notice("START", "", "", ""))
        time.sleep(0.001)
    assert _count("dropped") - before in {7, 8}
    gate.set()
    assert slow.flush(10)


def test_the_file_of_the_client_configures_reporting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the client would find, instar finds: a URL, a file that is named, or one in the usual places."""
    assert not is_configured()
    (tmp_path / "openlineage.yml").write_text("transport:\n  type: console\n")
    assert is_configured()
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    assert not is_configured()


def test_nothing_is_loaded_or_started_without_a_configuration(tmp_path: Path) -> None:
    """Without an endpoint, a write imports no client and starts no thread."""
    script = """
import sys, threading, instar, pyarrow as pa
with instar.open("lake") as store:
    store.create_table("t", "n int").append(pa.table({"n": [1]}))
loaded = [name for name in sys.modules if name.startswith(("openlineage", "instar.reporting.sender"))]
assert not loaded, loaded
assert not [thread for thread in threading.enumerate() if thread.name == "instar-lineage"]
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path)
