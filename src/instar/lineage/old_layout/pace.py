"""How fast the backfill goes: without a break while it is alone, and with long pauses while others work.

A batch is so small that nobody waits long for one of its locks. Other users are those that
PostgreSQL shows as connections. SQLite cannot tell, so there the backfill always pauses.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from instar.lineage.database import Database

__all__ = ["BATCH", "Pace"]

BATCH: Final = 200
"""No more versions at once: they belong to no more datasets than can be locked one by one."""

_FIRST: Final = 50
_SECONDS: Final = 0.05  # what a batch should take
_PAUSES: Final = 3.0  # times what the batch took, beside others
_LONGEST: Final = 2.0

# What other users do is hidden from those who may not see it: then every connection counts as busy.
_COMPANY: Final = text(
    "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid() AND backend_type = 'client backend' "
    "AND (state IS DISTINCT FROM 'idle' OR state_change > clock_timestamp() - interval '250 milliseconds'))"
)


class Pace:
    """Decides how many versions the next batch has, and how long to wait after it."""

    def __init__(
        self,
        database: Database,
        most: int = BATCH,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.database = database
        self.most = most
        self.size = min(most, _FIRST)
        self._clock = clock
        self._sleep = sleep

    @contextmanager
    def batch(self) -> Iterator[int]:
        """Yield how many versions to take; return when it is time for the next ones."""
        start = self._clock()
        yield self.size
        took = self._clock() - start
        if self._in_company():
            self._sleep(min(took * _PAUSES, _LONGEST))
        # At most twice as many as before: the first batch after a pause may have been a lucky one.
        fitting = int(self.size * min(2.0, _SECONDS / max(took, 1e-6)))
        self.size = max(1, min(self.most, fitting))

    def _in_company(self) -> bool:
        if self.database.is_sqlite:
            return True
        with self.database.engine.connect() as connection:
            return bool(connection.scalar(_COMPANY))
