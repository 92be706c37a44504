"""A proxy before an S3 server: it counts what is asked for, and spoils chosen answers as networks do.

It runs on threads of this process, so that whoever starts it can look at the requests of others.
"""

from __future__ import annotations

import re
import socket
import struct
import threading
from dataclasses import dataclass
from enum import Enum
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

__all__ = ["Fault", "Request", "S3Proxy"]

_KEY: Final = re.compile(r"Credential=([^/]+)/")
_HOP: Final = frozenset({"connection", "keep-alive", "transfer-encoding", "te", "upgrade", "expect", "host"})
_ERROR: Final = "<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>"


class Fault(Enum):
    """What becomes of an answer."""

    SLOW_DOWN = "503 Slow Down, and nothing is done"
    RESET = "the connection is reset before the request arrives"
    LOST = "the connection is reset after the request was carried out"
    TRUNCATED = "half of the body, and then the end"
    EXPIRED = "400 ExpiredToken, and nothing is done"
    CARELESS = "the request is carried out whatever its conditions say"
    UNWILLING = "501 Not Implemented if the request has a condition"


@dataclass(frozen=True)
class Request:
    """One request: what kind, of which object, by whom."""

    kind: str
    """`GET`, `HEAD`, `PUT`, `POST`, `DELETE`, or `LIST`."""
    key: str
    """The object's key, or the prefix that was listed."""
    user: str
    """The access key that signed it."""
    ranged: bool


class S3Proxy:
    """Passes requests on, unless `spoil` names a fault for one of them."""

    def __init__(self, endpoint: str) -> None:
        self._server = urlsplit(endpoint)
        self._lock = threading.Lock()
        self.requests: list[Request] = []
        self.spoil: Callable[[Request], Fault | None] = lambda _: None
        handler = type("Handler", (_Handler,), {"proxy": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        self.endpoint = f"http://127.0.0.1:{self._http.server_port}"

    def take(self) -> list[Request]:
        """Return the requests since the last call."""
        with self._lock:
            taken, self.requests = self.requests, []
        return taken

    def note(self, request: Request) -> None:
        """Remember a request."""
        with self._lock:
            self.requests.append(request)

    def connect(self) -> HTTPConnection:
        """Return a connection to the server."""
        assert self._server.hostname is not None
        return HTTPConnection(self._server.hostname, self._server.port, timeout=120)

    def close(self) -> None:
        """Stop."""
        self._http.shutdown()
        self._http.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    proxy: S3Proxy

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True  # the client is gone, or was sent away

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def answer(self) -> None:
        """Pass a request on, and its answer back."""
        body = self._body()
        request = self._request()
        self.proxy.note(request)
        fault = self.proxy.spoil(request)
        match fault:
            case Fault.SLOW_DOWN:
                self._refuse(503, "SlowDown", "Please reduce your request rate.")
            case Fault.EXPIRED:
                self._refuse(400, "ExpiredToken", "The provided token has expired.")
            case Fault.UNWILLING if "If-None-Match" in self.headers:
                self._refuse(
                    501, "NotImplemented", "A header you provided implies functionality that is not."
                )
            case Fault.RESET:
                self._reset()
            case _:
                self._pass_on(body, fault)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer  # noqa: N815 -- the names are http.server's

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            chunks = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(chunks)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _request(self) -> Request:
        url = urlsplit(self.path)
        asked = parse_qs(url.query, keep_blank_values=True)
        key = url.path.strip("/").partition("/")[2]
        listed = self.command == "GET" and ("list-type" in asked or "prefix" in asked or not key)
        signed = _KEY.search(self.headers.get("Authorization", ""))
        return Request(
            "LIST" if listed else self.command,
            asked.get("prefix", [""])[0] if listed else key,
            signed[1] if signed else "",
            "Range" in self.headers,
        )

    def _pass_on(self, body: bytes, fault: Fault | None) -> None:
        connection = self.proxy.connect()
        try:
            headers = {name: text for name, text in self.headers.items() if name.lower() not in _HOP}
            if fault is Fault.CARELESS:
                headers = {name: text for name, text in headers.items() if name.lower() != "if-none-match"}
            headers |= {"Host": self.headers["Host"], "Content-Length": str(len(body))}
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        if fault is Fault.LOST:
            self._reset()
            return
        self.send_response_only(answer.status)
        for name, text in answer.getheaders():
            if name.lower() not in _HOP | {"content-length"}:
                self.send_header(name, text)
        size = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(data))
        self.send_header("Content-Length", size or "0")
        self.end_headers()
        if fault is Fault.TRUNCATED and self.command == "GET":
            self.wfile.write(data[: len(data) // 2])
            self.close_connection = True
        elif self.command != "HEAD":
            self.wfile.write(data)

    def _refuse(self, status: int, code: str, message: str) -> None:
        data = b"" if self.command == "HEAD" else _ERROR.format(code=code, message=message).encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _reset(self) -> None:
        """End the connection so that the client sees a reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True
