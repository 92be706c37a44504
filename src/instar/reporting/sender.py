"""Sends notices from a thread of its own. A writer never waits for it, and never fails because of it.

The queue is bounded: what does not fit is dropped and counted. After a failure, nothing is sent for a while.
"""

from __future__ import annotations

import atexit
import logging
import os
import queue
import threading
import time
from typing import TYPE_CHECKING, Final

from prometheus_client import Counter

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient

    from instar.reporting.run import Notice

__all__ = ["EVENTS", "Sender", "flush", "send"]

EVENTS: Final = Counter(
    "instar_lineage_reports", "OpenLineage events: sent, failed, or dropped unsent.", ["outcome"]
)

_LOG: Final = logging.getLogger("instar.reporting")
_CAPACITY: Final = 1000
_PAUSE_SECONDS: Final = 30.0
_TIMEOUT_SECONDS: Final = 2.0
_FAREWELL_SECONDS: Final = 2.0


class Sender:
    """A bounded queue, and a thread that empties it."""

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._waiting: queue.Queue[Notice] = queue.Queue(capacity)
        self._client: OpenLineageClient | None = None
        self._silent_until = 0.0
        threading.Thread(target=self._run, name="instar-lineage", daemon=True).start()

    def send(self, notice: Notice) -> None:
        """Send a notice some time later; drop it if too many wait."""
        try:
            self._waiting.put_nowait(notice)
        except queue.Full:
            EVENTS.labels("dropped").inc()

    def flush(self, seconds: float) -> bool:
        """Wait until everything was sent or dropped, but not longer than this."""
        deadline = time.monotonic() + seconds
        while self._waiting.unfinished_tasks:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.005)
        return True

    def _run(self) -> None:
        while True:
            notice = self._waiting.get()
            try:
                self._deliver(notice)
            finally:
                self._waiting.task_done()

    def _deliver(self, notice: Notice) -> None:
        if time.monotonic() < self._silent_until:
            EVENTS.labels("dropped").inc()
            return
        try:
            from instar.reporting.events import as_event  # noqa: PLC0415 -- slow, and not in the writer's time

            self._connected().emit(as_event(notice))
        except Exception as error:  # noqa: BLE001 -- whatever a transport raises, the writer goes on
            EVENTS.labels("failed").inc()
            self._silent_until = time.monotonic() + _PAUSE_SECONDS
            _LOG.warning(
                "an OpenLineage event was not sent: %s. None is sent for %.0f seconds", error, _PAUSE_SECONDS
            )
        else:
            EVENTS.labels("sent").inc()

    def _connected(self) -> OpenLineageClient:
        if self._client is None:
            from openlineage.client import OpenLineageClient  # noqa: PLC0415 -- slow

            given = set(os.environ)
            self._client = OpenLineageClient()
            for name in (
                set(os.environ) - given
            ):  # the client writes its settings there, for child processes too
                del os.environ[name]
            transports = getattr(self._client.transport, "transports", [self._client.transport])
            for transport in transports:
                if hasattr(transport, "timeout"):
                    transport.timeout = min(transport.timeout, _TIMEOUT_SECONDS)
        return self._client


_lock: Final = threading.Lock()
_senders: list[Sender] = []


def send(notice: Notice) -> None:
    """Send a notice through the sender of this process, which is started by the first."""
    with _lock:
        if not _senders:
            _senders.append(Sender())
            atexit.register(flush)
    _senders[0].send(notice)


def flush(seconds: float = _FAREWELL_SECONDS) -> bool:
    """Give what waits a moment to be sent."""
    return all(sender.flush(seconds) for sender in _senders)
