"""Object stores: what is known about a request after each way in which it can go wrong."""

from __future__ import annotations

import http.server
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest
from obstore.exceptions import GenericError

from instar.errors import NotFoundError, StorageDeniedError, StorageError, StorageTimeoutError, UsageError
from instar.storage import ObjectBlob, open_blob

if TYPE_CHECKING:
    from collections.abc import Iterator

DROP = 0  # hang up without an answer


@dataclass
class Script:
    """What the server answers, in turn, and what it was asked; once through, it answers 200."""

    answers: list[tuple[str, int]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    endpoint: str = ""
    body: bytes = b""
    """What it says when it refuses a GET."""

    def open(self, **more: str) -> ObjectBlob:
        """Return blobs on this server."""
        options = {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            **more,
        }
        return ObjectBlob.open("s3://bucket/prefix", options)


@pytest.fixture
def script() -> Iterator[Script]:
    """Serve a script over HTTP."""
    script = Script()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            script.requests.append(self.command)
            status = 200
            if script.answers and script.answers[0][0] == self.command:
                status = script.answers.pop(0)[1]
            if status == DROP:
                self.close_connection = True
                return
            self.send_response(status)
            body = script.body if status >= 400 and self.command == "GET" else b""
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", '"1"')
            self.send_header("Last-Modified", "Sun, 15 Nov 2026 12:00:00 GMT")
            self.end_headers()
            self.wfile.write(body)

        do_PUT = do_GET = do_HEAD = do_POST = do_DELETE = answer  # noqa: N815 - the names of the base class

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    script.endpoint = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield script
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("status", [DROP, 500, 502, 503, 408])
def test_a_creation_without_a_clear_answer_is_unknown_and_not_repeated(script: Script, status: int) -> None:
    """The first request may have landed, and then a second would be told that somebody else was first."""
    script.answers = [("PUT", status), ("PUT", 412)]
    with pytest.raises(StorageTimeoutError):
        script.open().put_if_absent("a", b"1")
    assert script.requests == ["PUT"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429])
def test_a_creation_that_was_refused_did_not_happen(script: Script, status: int) -> None:
    """The server read the request and said no."""
    script.answers = [("PUT", status)]
    with pytest.raises(StorageError) as raised:
        script.open().put_if_absent("a", b"1")
    assert type(raised.value) is (StorageDeniedError if status in {401, 403} else StorageError)
    assert script.requests == ["PUT"]


def test_a_creation_that_reaches_nobody_did_not_happen() -> None:
    """Nobody listens, so nobody wrote."""
    blob = Script(endpoint="http://127.0.0.1:1").open()
    with pytest.raises(StorageError) as raised:
        blob.put_if_absent("a", b"1")
    assert type(raised.value) is StorageError


def test_plain_http_has_to_be_allowed() -> None:
    """Nothing is sent, and the error says which setting allows it."""
    blob = Script(endpoint="http://127.0.0.1:1").open(AWS_ALLOW_HTTP="false")
    for call in (lambda: blob.find("a"), lambda: blob.put("a", b"1"), lambda: blob.put_if_absent("a", b"1")):
        with pytest.raises(StorageError, match="set AWS_ALLOW_HTTP=true") as raised:
            call()
        assert type(raised.value) is StorageError


def test_missing_credentials_are_named(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a machine without any is asked for them, the error says which to give."""
    refused = GenericError("Error performing PUT http://169.254.169.254/latest/api/token in 4ms - HTTP error")
    monkeypatch.setattr("obstore.get", Mock(side_effect=refused))
    with pytest.raises(StorageError, match="Give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        script.open().find("a")


def test_a_missing_bucket_is_not_a_missing_object(script: Script) -> None:
    """It is an error, and no empty place: instar creates objects, and no buckets."""
    script.body = b"<?xml?><Error><Code>NoSuchBucket</Code><Message>The bucket is not there</Message></Error>"
    script.answers = [("GET", 404)]
    with pytest.raises(StorageError, match=r"The bucket is not there\. Create the bucket, or check its name"):
        script.open().find("a")
    script.body = b"<?xml?><Error><Code>NoSuchKey</Code><Message>The key is not there</Message></Error>"
    script.answers = [("GET", 404)]
    assert script.open().find("a") is None


def test_a_server_that_does_not_answer_in_time_leaves_it_unknown() -> None:
    """It accepts the connection and then says nothing."""
    import socket  # noqa: PLC0415 - only here

    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
        blob = Script(endpoint=endpoint).open(timeout="300ms")
        with pytest.raises(StorageTimeoutError):
            blob.put_if_absent("a", b"1")


def test_what_exists_is_taken(script: Script) -> None:
    """412 is S3's word for it, and an object is there."""
    script.answers = [("PUT", 412)]
    assert script.open().put_if_absent("a", b"1") is False


def test_a_conflict_is_not_an_object(script: Script) -> None:
    """409 says that another request was in the way; the key may still be free, and then it is tried again."""
    script.answers = [("PUT", 409), ("HEAD", 404), ("PUT", 409), ("HEAD", 404), ("PUT", 200)]
    assert script.open().put_if_absent("a", b"1") is True
    script.answers = [("PUT", 409), ("HEAD", 200)]
    assert script.open().put_if_absent("a", b"1") is False
    script.answers = [("PUT", 409), ("HEAD", 404)] * 9
    with pytest.raises(StorageError, match="getting in the way") as raised:
        script.open().put_if_absent("a", b"1")
    assert type(raised.value) is StorageError


def test_reads_and_plain_puts_are_repeated(script: Script) -> None:
    """Doing them twice is the same as doing them once."""
    script.answers = [("GET", 503), ("GET", DROP)]
    assert script.open().find("a") == b""
    script.answers = [("PUT", 503), ("PUT", DROP)]
    script.open().put("a", b"1")
    assert script.requests == ["GET"] * 3 + ["PUT"] * 3


def test_a_put_that_was_repeated_in_vain_is_unknown(script: Script) -> None:
    """The last request was refused, but the first may have landed."""
    script.answers = [("PUT", 500), ("PUT", 400)]
    with pytest.raises(StorageTimeoutError):
        script.open().put("a", b"1")


def test_messages_are_for_people(script: Script) -> None:
    """They name the object and the reason, without pages of debugging output."""
    script.answers = [("PUT", 403)]
    with pytest.raises(StorageError) as raised:
        script.open().put_if_absent("a", b"1")
    assert "s3://bucket/prefix/a" in str(raised.value)
    assert "403" in str(raised.value)
    assert "Debug" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_settings_come_from_the_environment_and_from_options(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named as the ecosystem names them; options win."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", script.endpoint)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    open_blob("s3://bucket").put("a", b"")
    assert script.requests == ["PUT"]
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    open_blob("s3://bucket", {"AWS_ENDPOINT_URL": script.endpoint, "timeout": "5s"}).put("a", b"")
    assert script.requests == ["PUT", "PUT"]


@pytest.mark.parametrize(
    ("url", "options"),
    [("s3://bucket", {"AWS_NONSENSE": "1"}), ("s3://", {}), ("az://", {}), ("gs://", {})],
)
def test_what_cannot_be_opened_is_the_callers_mistake(url: str, options: dict[str, str]) -> None:
    """Opening sends nothing, so what fails is the URL or an option."""
    with pytest.raises(UsageError, match="cannot open"):
        open_blob(url, options)


def test_memory_is_shared_by_name() -> None:
    """And by nobody without one."""
    first, second = open_blob("memory://shared"), open_blob("memory://shared")
    first.put("a", b"1")
    assert second.find("a") == b"1"
    assert open_blob("memory://other").find("a") is None
    assert open_blob("memory://").find("a") is None
    with pytest.raises(NotFoundError, match="memory://shared/b"):
        first.get("b")
