"""What long-running commands share: how they are told to stop, and the counters that they serve."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MetricsPortOption", "serve_metrics", "stopping"]

MetricsPortOption = Annotated[
    int | None,
    typer.Option(min=1, max=65535, help="Serve Prometheus counters on this port of 127.0.0.1."),
]


def serve_metrics(port: int | None) -> None:
    """Serve the counters of this process, if a port is given."""
    if port is not None:
        from prometheus_client import start_http_server  # noqa: PLC0415 -- only who serves loads it

        start_http_server(port, addr="127.0.0.1")


@contextmanager
def stopping() -> Iterator[Event]:
    """Return an event that SIGTERM or an interrupt sets: a second interrupt ends at once."""
    stop = Event()

    def handle(number: int, _: object) -> None:
        if number == signal.SIGINT and stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
