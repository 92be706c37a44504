"""What tests of reporting share: an endpoint that keeps events, and checks them against the specification.

Import the fixtures `own_sender` and `endpoint` where they are needed.
"""

from __future__ import annotations

import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from instar.reporting import sender
from tests.openlineage_spec import check_event

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Endpoint:
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

    def wait(self, count: int) -> None:
        """Wait until so many events have come, from whichever process."""
        deadline = time.monotonic() + 60
        while len(self.events) < count and time.monotonic() < deadline:
            time.sleep(0.01)

    def completed(self, job: str) -> dict[str, Any]:
        """Return the last event that says that a job has completed."""
        assert sender.flush(30)
        found = [event for event in self.events if event["job"]["name"] == job]
        assert [event["eventType"] for event in found[-2:]] == ["START", "COMPLETE"], self.events
        return found[-1]


@pytest.fixture
def own_sender(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Give a test a sender of its own, and nothing that configures it."""
    monkeypatch.setattr(sender, "_senders", [])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith("OPENLINEAGE")]:
        monkeypatch.delenv(name)


@pytest.fixture
def endpoint(own_sender: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """Serve an endpoint, and configure it as everyone does. What it is sent must be as specified."""
    found = Endpoint()
    monkeypatch.setenv("OPENLINEAGE_URL", found.url)
    yield found
    found.server.shutdown()
    found.server.server_close()
    for event in found.events:
        check_event(event)


def column_sources(event: dict[str, Any]) -> dict[str, set[tuple[str, str, str]]]:
    """Return what the columns of the output are made from: by dataset, column and how."""
    (output,) = event["outputs"]
    fields = output["facets"]["columnLineage"]["fields"]
    return {
        column: {
            (one["name"], one["field"], step["subtype"])
            for one in made["inputFields"]
            for step in one["transformations"]
        }
        for column, made in fields.items()
    }
