"""A service that is killed at random moments loses no event that it has acknowledged."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from testbed.lineage import dataset, run_event
from tests.lineage import database_url
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["database_url", "postgres"]


@contextmanager
def served(url: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `instar serve` in a process of its own, and yield it with its URL."""
    command = [sys.executable, "-m", "instar", "serve", "--port", "0", "--db", url, "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        yield process, json.loads("".join(lines))["url"]
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def send_until_it_dies(url: str, start: int, acknowledged: list[int]) -> None:
    """Send events one after another, and note those that were acknowledged."""
    with httpx.Client(base_url=url, timeout=30) as client:
        for number in range(start, start + 10_000):
            event = run_event("COMPLETE", number % 3600, number + 1, outputs=[dataset("x", "a int")])
            try:
                if client.post("/api/v1/lineage", json=event).status_code == 201:
                    acknowledged.append(number)
            except httpx.HTTPError:
                return


def test_no_acknowledged_event_is_lost(database_url: str) -> None:
    """After a SIGKILL, each event that was acknowledged is there as a whole."""
    acknowledged: list[int] = []
    for attempt in range(2):
        with served(database_url) as (process, url):
            clients = [
                threading.Thread(
                    target=send_until_it_dies, args=(url, 20_000 * (4 * attempt + n), acknowledged)
                )
                for n in range(4)
            ]
            for thread in clients:
                thread.start()
            deadline, wanted = time.monotonic() + 60, len(acknowledged) + 8
            while len(acknowledged) < wanted and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(random.Random(attempt).random() / 4)
            os.kill(process.pid, signal.SIGKILL)
            for thread in clients:
                thread.join()
    with served(database_url) as (process, url), httpx.Client(base_url=f"{url}/api/v1", timeout=60) as client:
        stored: list[dict[str, Any]] = []
        while True:
            page = client.get("/events/lineage", params={"limit": 1000, "offset": len(stored)}).json()
            stored += page["events"]
            if not page["events"]:
                break
        runs = {event["run"]["runId"] for event in stored}
        lost = [n for n in acknowledged if run_event("COMPLETE", 0, n + 1)["run"]["runId"] not in runs]
        assert len(acknowledged) >= 16
        assert lost == []
        versions = client.get("/namespaces/db/datasets/x/versions").json()
        assert versions["totalCount"] == len(stored), "an event is stored with all that it means"


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_service_that_is_told_to_stop_answers_first(tmp_path: Path, stop: signal.Signals) -> None:
    """Requests under way are answered, and then the process ends."""
    with served(f"sqlite:///{tmp_path}/lineage.db") as (process, url):
        assert httpx.get(f"{url}/healthz", timeout=60).status_code == 200
        body = json.dumps(run_event("COMPLETE", 1, outputs=[dataset("x", "a int")])).encode()
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
        connection.putrequest("POST", "/api/v1/lineage")
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body[:10])  # the service waits for the rest
        time.sleep(0.5)
        process.send_signal(stop)
        time.sleep(0.5)
        connection.send(body[10:])
        assert connection.getresponse().status == 201
        connection.close()
        assert process.wait(60) in {0, -stop, 128 + stop}
