"""A real lineage service over HTTP on loopback, on either database, and a client of it."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import uvicorn

from instar.lineage import open_database
from instar.service.app import Service, ServiceOptions
from instar.service.pages.site import Site
from instar.service.serve import _listen

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Client", "running"]


class Client(httpx.Client):
    """A client of a running service, which also knows its database."""

    service: Service
    url: str

    def ask(self, path: str, **query: Any) -> Any:  # noqa: ANN401 -- JSON
        """Return what a GET below /api/v1 answers."""
        response = self.get(f"/api/v1{path}", params=query)
        assert response.status_code == 200, response.text
        return response.json()

    def tell(self, *events: dict[str, Any]) -> None:
        """Send events."""
        for event in events:
            response = self.post("/api/v1/lineage", json=event)
            assert response.status_code == 201, response.text
            assert response.content == b""


@contextmanager
def running(
    database_url: str, options: ServiceOptions | None = None, *, pages: bool = False
) -> Iterator[Client]:
    """Serve in a thread until the block ends."""
    database = open_database(database_url)
    site = Site(database, needs_token=options is not None and options.tokens is not None) if pages else None
    service = Service(database, options, site)
    config = uvicorn.Config(service, log_level="error", lifespan="on", timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    with _listen("127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            with Client(base_url=url, timeout=60) as client:
                client.service, client.url = service, url
                while not server.started:
                    thread.join(0.01)
                yield client
        finally:
            server.should_exit = True
            thread.join()
