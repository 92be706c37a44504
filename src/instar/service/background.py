"""What the service does beside answering: delivering alerts, and retention."""

from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from instar.lineage.queries.alerts import pending_alerts, record_delivery
from instar.lineage.retention import retire
from instar.service.webhooks import deliver

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from instar.lineage import Database

__all__ = ["Background"]

_LOG: Final = logging.getLogger("instar.service")
_DELIVERY_SECONDS: Final = 1.0
_RETENTION_SECONDS: Final = 3600.0
_PAUSES: Final = (5.0, 30.0, 120.0, 600.0)  # before each further attempt


class _EndedError(Exception):
    """The service ends; what is left is done when it runs again."""


class Background:
    """Two threads that wait most of the time; an error in one round does not end them."""

    def __init__(
        self,
        database: Database,
        retain: int | None = None,
        *,
        allow_local_webhooks: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.database = database
        self.retain = retain
        self.allow_local = allow_local_webhooks
        self._ended = threading.Event()
        self._clock = clock
        self._not_before: dict[UUID, float] = {}
        self._threads = [threading.Thread(target=self._deliver, daemon=True)]
        if retain is not None:
            self._threads.append(threading.Thread(target=self._retire, daemon=True))

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End, after what is under way."""
        self._ended.set()
        for thread in self._threads:
            thread.join(timeout=15)

    def _deliver(self) -> None:
        while not self._ended.wait(_DELIVERY_SECONDS):
            try:
                self.deliver_once()
            except Exception as error:  # noqa: BLE001 -- the next round may go better
                _LOG.warning("alerts could not be delivered: %s", error)

    def deliver_once(self) -> None:
        """Deliver what waits."""
        with self.database.reading() as connection:
            waiting = pending_alerts(connection)
        for uuid, url, alert in waiting:
            if self._ended.is_set():
                return
            if self._clock() < self._not_before.get(uuid, 0):
                continue
            problem = deliver(url, alert, allow_local=self.allow_local)
            self.database.write(partial(record_delivery, uuid=uuid, problem=problem))
            if problem is None or alert["attempts"] >= len(_PAUSES):
                self._not_before.pop(uuid, None)
            else:
                self._not_before[uuid] = self._clock() + _PAUSES[alert["attempts"]]

    def _go_on(self, _: object) -> None:
        if self._ended.is_set():
            raise _EndedError

    def _retire(self) -> None:
        while True:
            try:
                retire(self.database, time.time_ns() // 1000 - (self.retain or 0), report=self._go_on)
            except _EndedError:
                return
            except Exception as error:  # noqa: BLE001 -- the next round may go better
                _LOG.warning("retention stopped, and goes on in an hour: %s", error)
            if self._ended.wait(_RETENTION_SECONDS):
                return
