"""Run the service with uvicorn until it is told to stop; requests under way are answered first."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import uvicorn

from instar.errors import StorageError, UsageError
from instar.lineage import open_database
from instar.service.app import Service, ServiceOptions
from instar.service.auth import is_loopback
from instar.service.pages.site import Site

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["serve"]

_GRACE_SECONDS = 30


def serve(
    database_url: str,
    host: str,
    port: int,
    options: ServiceOptions,
    *,
    ready: Callable[[str], object] = lambda _: None,
) -> None:
    """Serve until SIGINT or SIGTERM. `ready` gets the URL; port 0 takes any free one."""
    if options.tokens is None and not is_loopback(host):
        raise UsageError(
            f"without tokens, everybody who reaches {host} could read and write. Name a file of tokens with "
            "--tokens, or leave --host at 127.0.0.1"
        )
    with _listen(host, port) as listening:
        database = open_database(database_url)
        service = Service(database, options, Site(database, needs_token=options.tokens is not None))
        config = uvicorn.Config(
            service,
            log_level="warning",
            access_log=False,
            lifespan="on",
            server_header=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        address = f"[{host}]" if ":" in host else host
        ready(f"http://{address}:{listening.getsockname()[1]}")
        uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise StorageError(f"listening on {host} port {port}", str(error)) from error
    # An answer is sent in two pieces. Without this, the second waits 40 ms for word that the first came.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
