"""Upkeep: writers of tables with `compact="auto"` merge small parts in the background of commits.

It never delays a writer or makes it fail: there is at most one thread for each table, it pauses longer than
it works unless it falls behind, and errors are logged.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from instar.table.housekeeping.compaction import compact_table, find_goals, find_work
from instar.table.housekeeping.rewrite import rewrite_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from threading import Thread

    from instar.state import TableState
    from instar.table.housekeeping.compaction import Rewrite
    from instar.table.housekeeping.plan import CompactionJob
    from instar.table.housekeeping.rewrite import Output, Work
    from instar.table.log.table_log import TableLog
    from instar.table.services import Services

__all__ = ["Turn", "keep_up"]

_LOG: Final = logging.getLogger("instar.upkeep")

EVERY: Final = 64
"""After how many commits there is something to look for: by turns, so that of many writers one does it."""
BUDGET_BYTES: Final = 32 * 1024 * 1024
"""How much is rewritten at a time."""
BUDGET_PARTS: Final = 512
FAN_IN: Final = 8
"""How many small parts are worth a rewrite."""
REST: Final = 3
"""How many times the processor time that it took a table is left alone afterwards."""
BEHIND: Final = 8 * EVERY
"""After how many commits a table is looked after without a rest: its writer is faster than its upkeep."""


@dataclass
class Turn:
    """What a process remembers about the upkeep of one table."""

    thread: Thread | None = None
    seqno: int = 0
    """The commit after which it was done last."""
    rested_at: float = 0.0
    """When it may be done again."""
    left: Callable[[], None] | None = None
    """What it was time for and is not begun: it is done when the store is closed."""


class _StoppedError(Exception):
    """The store is being closed: the rest waits for another time."""


def keep_up(services: Services, log: TableLog, state: TableState) -> None:
    """Merge small parts in the background, if the table wants it and it is time. `state` follows a commit."""
    if {**services.defaults, **state.options}.get("compact") != "auto":
        return
    turn = services.turns.setdefault(state.table_id, Turn(seqno=state.seqno))
    waited = state.seqno - turn.seqno
    if services.closing.is_set() or (state.seqno % EVERY and waited < EVERY):
        return
    turn.left = partial(_tidy, services, log, turn)
    busy = turn.thread is not None and turn.thread.is_alive()
    if busy or (time.monotonic() < turn.rested_at and waited < BEHIND):
        return
    tidy, turn.left = turn.left, None
    turn.seqno = state.seqno
    try:
        turn.thread = services.start(tidy)
    except RuntimeError:  # the process is about to end, and starts no more threads
        _LOG.debug("no upkeep of `%s`: the process is ending", log.name)


def _tidy(services: Services, log: TableLog, turn: Turn) -> None:
    begun = time.thread_time()  # others may keep the machine busy: that is no reason to rest
    try:
        compact_table(services, log, _unless_closing(services), choose=partial(_choose, services))
    except _StoppedError:
        pass
    except Exception:  # noqa: BLE001 -- the write is done, and must not fail for what only saves work
        _LOG.warning("upkeep of `%s` failed; it is tried again later", log.name, exc_info=True)
    turn.rested_at = time.monotonic() + REST * (time.thread_time() - begun)


def _choose(services: Services, state: TableState) -> list[CompactionJob]:
    """Return the jobs that merge most parts, until they have as many bytes as may be rewritten at a time."""
    goals = find_goals(state)._replace(
        job_bytes=BUDGET_BYTES, job_parts=BUDGET_PARTS, fan_in=FAN_IN, old_schemas=False
    )
    jobs = sorted(find_work(services, state, goals), key=lambda job: len(job.parts), reverse=True)
    before = accumulate((job.size for job in jobs), initial=0)
    return [job for job, size in zip(jobs, before, strict=False) if size < BUDGET_BYTES]


def _unless_closing(services: Services) -> Rewrite:
    """Return what rewrites parts until the store is being closed, and once even then.

    Otherwise tables whose writers end right after a commit would never be compacted.
    """
    begun = False

    def rewrite(work: Work, /) -> Iterable[Output]:
        nonlocal begun
        if begun and services.closing.is_set():
            raise _StoppedError
        begun = True
        return rewrite_parts(work)

    return rewrite
