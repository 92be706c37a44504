"""What a table needs from the outside: storage, a clock, and the name of the caller."""

from __future__ import annotations

import getpass
import os
import socket
import time
import uuid
from dataclasses import dataclass, field, replace
from functools import cache
from threading import Event, Thread
from typing import TYPE_CHECKING

from instar.table.log.asked import Asked
from instar.table.log.leases import LeaseKeeper
from instar.table.log.manifest import ChunkReader
from instar.table.read.audit import Audits
from instar.table.read.settled import Settled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from instar.state import ConfigValue
    from instar.storage import Blob, Consensus
    from instar.table.housekeeping.upkeep import Turn

__all__ = ["Services", "wall_clock"]


def wall_clock() -> int:
    """Return milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def _new_id() -> str:
    return uuid.uuid4().hex


@cache
def _author() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


@dataclass(frozen=True)
class Services:
    """The two services of a store, and the three things that make a program impure.

    `log_prefix` keeps the logs of several stores apart in one consensus service.
    """

    blob: Blob
    consensus: Consensus
    log_prefix: str = ""
    clock: Callable[[], int] = wall_clock
    new_id: Callable[[], str] = _new_id
    author: Callable[[], str] = _author
    patience: float = 60.0
    """How many seconds a commit keeps trying while others are faster or the store does not answer."""
    most_ahead_ms: int | None = 5 * 60 * 1000
    """How far the clock may be ahead of the store's for a vacuum; None: however far."""
    defaults: Mapping[str, ConfigValue] = field(default_factory=dict)
    """Options of tables that do not say otherwise."""
    chunks: ChunkReader = field(init=False)
    audits: Audits = field(init=False, default_factory=Audits)
    settled: Settled = field(init=False, default_factory=Settled)
    leases: LeaseKeeper = field(init=False)
    turns: dict[str, Turn] = field(init=False, default_factory=dict)
    """The upkeep of tables, by their ids."""
    asked: Asked = field(init=False)
    closing: Event = field(init=False, default_factory=Event)
    """Set when nothing should be begun any more that only saves work later."""
    _tasks: list[Thread] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        object.__setattr__(self, "chunks", ChunkReader(self.blob))
        object.__setattr__(self, "leases", LeaseKeeper(self))
        object.__setattr__(self, "asked", Asked(self))

    def with_prefix(self, log_prefix: str) -> Services:
        """Return the same services for a store whose logs have another prefix."""
        return replace(self, log_prefix=log_prefix)

    def start(self, task: Callable[[], None]) -> Thread:
        """Do something in the background: neither `close` nor the end of the process cuts it short."""
        thread = Thread(target=task)
        self._tasks[:] = [*(other for other in self._tasks if other.is_alive()), thread]
        thread.start()
        return thread

    def close(self) -> None:
        """Finish background work, and release leases and connections."""
        self.closing.set()
        for task in list(self._tasks):
            task.join()
        for turn in self.turns.values():
            left, turn.left = turn.left, None
            if left is not None:
                left()
        self.asked.save()
        self.leases.close()
        self.consensus.close()

    def log_key(self, table: str) -> str:
        """Return the key of a table's log."""
        return self.log_prefix + table
