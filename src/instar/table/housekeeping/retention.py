"""Retention: how far back a table can be read. Older times may be merged, and their deleted rows removed.

Only tables whose times are those of the clock, in milliseconds, can be aged by it. Their own commits tell:
each says when it was made, beside the time that it gave its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from instar.durations import parse_duration
from instar.state import Appended
from instar.table.log.leases import live_leases
from instar.table.write.append import move_since

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from instar.state import TableState
    from instar.table.log.table_log import TableLog
    from instar.table.services import Services

__all__ = ["RETENTION", "RetentionReport", "retain_table"]

RETENTION: Final = "7d"
"""How long history is kept if neither the table nor the store says otherwise."""

_COMMITS: Final = 100
"""How many of the last commits are looked at, to tell what a table's times are."""
_APART_MS: Final = 60 * 60 * 1000
"""How far a time may be from the clock at its commit."""


class RetentionReport(NamedTuple):
    """Where `since` is now."""

    before: int
    """Where it was."""
    since: int
    """The earliest time that can be read."""
    kept: str | None = None
    """Why the table keeps all of its history, if it does."""


def retain_table(
    services: Services,
    log: TableLog,
    *,
    dry_run: bool = False,
    hold: Callable[[TableState], int] | None = None,
) -> RetentionReport:
    """Move `since` as far as the option `retention` says. It never goes back, nor past what a reader holds.

    `hold` says which time it must not pass, because somebody needs to tell earlier times from later ones.
    """
    state = log.load()
    chosen = str({**services.defaults, **state.options}.get("retention", RETENTION))
    if chosen == "off":
        return RetentionReport(state.since, state.since, "its retention is off")
    why = _why_not(services, log, state)
    if why is not None:
        return RetentionReport(state.since, state.since, why)
    latest = state.upper - 1 if hold is None else min(state.upper - 1, hold(state))
    since = min(services.clock() - parse_duration(chosen), latest)
    if since > state.since:
        since = min([since, *_leased_times(services, state)])
    since = max(state.since, since)
    if since > state.since and not dry_run:
        move_since(log, since)
    return RetentionReport(state.since, since)


def _leased_times(services: Services, state: TableState) -> Iterator[int]:
    """Yield the last times of the states that readers hold."""
    for lease in live_leases(services, state.table_id):
        if lease.write_id is None and lease.time is not None:
            yield lease.time


def _why_not(services: Services, log: TableLog, state: TableState) -> str | None:
    """Say why the clock may not decide how old the times of a table are."""
    if state.upper > services.clock() + _APART_MS:
        return "its times are not those of the clock: they are ahead of it"
    seen = False
    for entry in log.entries(max(0, state.seqno + 1 - _COMMITS)):
        for step in entry.commit.steps:
            if isinstance(step, Appended) and entry.commit.table_id == state.table_id:
                seen = True
                if abs(step.batch.upper - 1 - entry.commit.at) > _APART_MS:
                    return "its times are not those of the clock: rows came with times of their own"
    return None if seen else "no recent commit tells whether its times are those of the clock"
