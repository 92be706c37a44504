"""Webhooks: where an alert goes, where it never goes, and what happens if nobody takes it."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from instar.errors import InvalidEventError
from instar.lineage import open_database
from instar.lineage.edits import put_policy
from instar.lineage.queries.alerts import list_alerts
from instar.lineage.queries.rows import Page
from instar.service import webhooks
from instar.service.background import Background
from instar.service.webhooks import check_webhook, deliver
from testbed.lineage import dataset, run_event
from tests.lineage import send

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def _receiver(answer: bytes, *, drips: bool = False) -> Iterator[tuple[str, list[str]]]:
    """Answer every request with these bytes; say where, and who has asked."""
    asked: list[str] = []
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers["content-length"]))
            self.wfile.write(answer)
            while drips and not over.wait(0.02):
                self.wfile.write(b"x")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        over.set()
        server.shutdown()
        server.server_close()


def test_redirects_are_not_followed() -> None:
    """A webhook that sends us elsewhere has not taken the alert, and elsewhere hears nothing."""
    with _receiver(b"HTTP/1.0 204 No Content\r\n\r\n") as (inside, heard):
        moved = f"HTTP/1.0 302 Found\r\nLocation: {inside}/secret\r\n\r\n".encode()
        with _receiver(moved) as (outside, asked):
            problem = deliver(f"{outside}/hook", {}, allow_local=True)
    assert problem == "the webhook answered with status 302"
    assert (asked, heard) == (["/hook"], [])


def _entry(address: str) -> list[Any]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80))]


def test_a_name_that_changes_its_meaning_is_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that led outside when it was given, and leads into this machine now, gets nothing."""
    answers = [_entry("192.0.2.7"), _entry("127.0.0.1")]
    monkeypatch.setattr(webhooks, "_is_local", lambda address: address.startswith("127."))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answers.pop(0))
    check_webhook("http://rebound.example/", allow_local=False)
    problem = deliver("http://rebound.example/", {}, allow_local=False)
    assert problem is not None
    assert "127.0.0.1" in problem


def test_the_address_that_was_checked_is_the_one_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is looked up once for each delivery, so nobody can answer differently in between."""
    asked: list[Any] = []

    def connect(address: Any, *_: object) -> None:  # noqa: ANN401 -- a host and a port
        asked.append(address)
        raise OSError("nobody is there")

    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: _entry("8.8.8.8"))
    monkeypatch.setattr(socket, "create_connection", connect)
    assert deliver("http://once.example/", {}, allow_local=False) == "nobody is there"
    assert asked == [("8.8.8.8", 80)]


def test_an_answer_that_never_ends_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who answers letter by letter does not keep other alerts waiting."""
    monkeypatch.setattr(webhooks, "_DEADLINE", 0.1)
    with _receiver(b"HTTP/1.0 200 ", drips=True) as (url, _):
        assert deliver(url, {}, allow_local=True) == "the webhook did not answer within 0.1 seconds"


def test_schemes_and_hosts_are_checked_without_asking_anybody() -> None:
    """What is no address of the web is refused with the reason."""
    for url in ("gopher://example.com", "http://exa mple", "http://[::1", "http://x:99999/"):
        with pytest.raises(InvalidEventError):
            check_webhook(url, allow_local=True)


def test_a_webhook_that_is_down_is_tried_again_later_and_not_for_ever(tmp_path: Path) -> None:
    """Attempts are further and further apart; after the fifth the alert says that it was not delivered."""
    now = [0.0]
    with (
        open_database(f"sqlite:///{tmp_path}/lineage.db") as database,
        _receiver(b"HTTP/1.0 503 Later\r\n\r\n") as (url, asked),
    ):
        send(database, run_event("COMPLETE", 1, 1, outputs=[dataset("x", "a int")]))
        put_policy(database, "db", "x", {"compatibility": "full", "webhookUrl": url})
        send(database, run_event("COMPLETE", 2, 2, outputs=[dataset("x", "b int")]))
        background = Background(database, allow_local_webhooks=True, clock=lambda: now[0])
        counts = []
        for _ in range(6):
            for _ in range(3):
                background.deliver_once()
            counts.append(len(asked))
            now[0] += 1000
        assert counts == [1, 2, 3, 4, 5, 5]
        with database.reading() as connection:
            (alert,) = list_alerts(connection, Page())["alerts"]
    assert (alert["delivery"], alert["attempts"]) == ("failed", 5)
    assert "503" in alert["problem"]
