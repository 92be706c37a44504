"""The service as an ASGI application: from a request to an answer, with one shape for every error."""

from __future__ import annotations

import logging
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from instar.errors import InstarError, InvalidEventError, disposition
from instar.service.api import ENDPOINTS
from instar.service.auth import Guard
from instar.service.background import Background
from instar.service.bodies import BadRequestError, decode_body, read_body
from instar.service.metrics import ServiceMetrics
from instar.service.openapi import describe
from instar.service.pages.door import Door
from instar.service.parameters import read_query
from instar.service.routing import ApiCall, Endpoint, Match, Reply, Router

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Receive, Scope, Send

    from instar.lineage import Database
    from instar.service.pages.site import Site

__all__ = ["Service", "ServiceOptions"]

_LOG: Final = logging.getLogger("instar.service")
_THREADS: Final = 24  # fewer than the connections that a database allows us
_SERVER_ERROR: Final = 500


@dataclass(frozen=True)
class ServiceOptions:
    """How a service behaves. Without tokens, it answers only to this machine."""

    tokens: dict[str, frozenset[str]] | None = None
    max_body: int = 16 * 2**20
    allow_local_webhooks: bool = False
    retain: int | None = None  # microseconds


class Service:
    """The lineage service over one database, which it closes in the end.

    `pages` answers everything that is no endpoint, after the same checks.
    """

    def __init__(
        self, database: Database, options: ServiceOptions | None = None, pages: Site | None = None
    ) -> None:
        self.database = database
        self.options = options or ServiceOptions()
        self.guard = Guard(self.options.tokens)
        self.metrics = ServiceMetrics()
        self.pages = Door(pages, self.guard) if pages is not None else None
        self.threads = anyio.CapacityLimiter(_THREADS)
        own = [
            Endpoint("GET", "/healthz", self._health, "Say whether the service works."),
            Endpoint("GET", "/openapi.json", self._document, "Describe the API."),
        ]
        self.router = Router([*own, *ENDPOINTS])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or begin and end."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    # A request

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = time.perf_counter()
        request = Request(scope, receive)
        raw_path = scope.get("raw_path") or scope["path"].encode()
        match = self.router.find(request.method, raw_path)
        name = match.endpoint.template if match.endpoint is not None else "other"
        try:
            if match.endpoint is None and not match.methods and raw_path == b"/metrics":
                response = self._metrics(request)
            elif self.pages is not None and _is_page(match, raw_path):
                await self.pages(scope, receive, send)
                return
            else:
                response = await self._answer(request, match.endpoint, match.path, match.methods)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 -- the last place that can answer
            response = _failure(error)
        self.metrics.observe(request.method, name, response.status_code, time.perf_counter() - start)
        await response(scope, receive, send)

    async def _answer(
        self, request: Request, endpoint: Endpoint | None, path: dict[str, str], methods: list[str]
    ) -> Response:
        if endpoint is None and methods:
            self.guard.check(request.headers, writes=False)
            allowed = {"Allow": ", ".join(sorted({*methods}))}
            raise BadRequestError(405, f"this path does not take {request.method}", allowed)
        if endpoint is None:
            self.guard.check(request.headers, writes=False)
            raise BadRequestError(404, "there is nothing at this path: /openapi.json lists all paths")
        if endpoint.template != "/healthz":
            self.guard.check(request.headers, writes=endpoint.writes)
        body = await read_body(request, self.options.max_body)

        def work() -> Reply:
            call = ApiCall(
                database=self.database,
                path=_checked(path),
                query=read_query(tuple(endpoint.parameters), request.scope["query_string"]),
                body=decode_body(body) if endpoint.body is not None else None,
                now=time.time_ns() // 1000,
                allow_local_webhooks=self.options.allow_local_webhooks,
            )
            return endpoint.handler(call)

        try:
            reply = await anyio.to_thread.run_sync(work, limiter=self.threads)
        except (InvalidEventError, BadRequestError):
            if endpoint.body == "Event":
                self.metrics.events.labels("refused").inc()
            raise
        for outcome, count in reply.events.items():
            self.metrics.events.labels(outcome).inc(count)
        return _json(reply.body, reply.status, reply.headers)

    def _health(self, call: ApiCall) -> Reply:
        with call.database.reading() as connection:
            connection.exec_driver_sql("SELECT 1")
        return Reply({"status": "ok"})

    def _document(self, _: ApiCall) -> Reply:
        return Reply(describe(self.router.endpoints))

    def _metrics(self, request: Request) -> Response:
        self.guard.check(request.headers, writes=False)
        return Response(self.metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")

    # Beginning and end

    async def _live(self, receive: Receive, send: Send) -> None:
        async with self._running():
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        allowed = self.options.allow_local_webhooks
        background = Background(self.database, self.options.retain, allow_local_webhooks=allowed)
        background.start()
        try:
            yield
        finally:
            await anyio.to_thread.run_sync(background.stop)
            self.database.close()


def _is_page(match: Match, raw_path: bytes) -> bool:
    return match.endpoint is None and not match.methods and not raw_path.startswith(b"/api/")


def _checked(path: dict[str, str]) -> dict[str, str]:
    bad = next((text for text in path.values() if "\0" in text), None)
    if bad is not None:
        raise BadRequestError(400, "a name in the path contains a zero character")
    return path


def _json(value: Any, status: int, headers: dict[str, str] | None = None) -> Response:  # noqa: ANN401 -- JSON
    content = b"" if value is None else msgspec.json.encode(value)
    headers = {**(headers or {}), "X-Content-Type-Options": "nosniff"}
    return Response(content, status, headers, media_type="application/json")


def _failure(error: Exception) -> Response:
    """Return an error as every client gets it."""
    if isinstance(error, BadRequestError):
        return _json(
            {"code": error.status, "message": str(error), "error": "request"}, error.status, error.headers
        )
    if isinstance(error, InstarError):
        status = disposition(error).http_status
        if status >= _SERVER_ERROR:
            _LOG.warning("%s", error)
        return _json({"code": status, "message": str(error), "error": error.code}, status)
    _LOG.error("a request failed", exc_info=error)
    message = "the service failed; its log says why. Nothing of the request was kept"
    return _json({"code": 500, "message": message, "error": "internal"}, 500)
