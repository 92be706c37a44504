"""Which time is meant: by the clock, as ISO 8601, or by the version of a table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Union

from instar.amounts import format_time
from instar.errors import UsageError
from instar.state import Appended, Cloned, Created
from instar.table.log.archive import read_archive

if TYPE_CHECKING:
    from instar.state import TableState
    from instar.table.log.entries import Entry
    from instar.table.log.table_log import TableLog
    from instar.table.services import Services

__all__ = ["Moment", "check_existed", "find_time", "parse_time"]

Moment = Union[int, str, datetime]  # noqa: UP007 -- used at run time
"""A time of a table: milliseconds since 1970, ISO 8601, or a datetime; without a zone, it is in UTC."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS: Final = 40
"""A number with as many digits is not a time."""
_BY_CLOCK: Final = 100_000_000_000
"""Numbers from here on are taken for times by the clock: the year is 1973 or later."""
_WINDOW: Final = 64
"""How many commits are read at once on the way back to the last one that wrote something."""


def parse_time(moment: Moment) -> int:
    """Return milliseconds since 1970; what is finer is cut off."""
    match moment:
        case datetime():
            zoned = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
            return (zoned - _EPOCH) // timedelta(milliseconds=1)
        case str() if not moment.strip().isdecimal():
            try:
                return parse_time(datetime.fromisoformat(moment.strip()))
            except (ValueError, OverflowError):
                raise _no_time(moment) from None
        case str() if len(moment) < _DIGITS:
            return int(moment)
        case int() if not isinstance(moment, bool):
            return moment
    raise _no_time(moment)


def _no_time(moment: object) -> UsageError:
    return UsageError(
        f"{moment!r:.80} is not a time that a table may have: write 2026-11-15T12:00:00.250 (UTC), in "
        "another zone 2026-11-15T12:00+01:00, or milliseconds since 1970"
    )


def find_time(
    services: Services, log: TableLog, state: TableState, as_of: Moment | None, version: int | None
) -> int | None:
    """Return the time that is meant in a state, or None if none was given.

    A time by the clock may be later than the last commit, because every write from now on comes later.
    """
    if version is not None:
        if as_of is not None:
            raise UsageError("as_of and version both say which rows are meant: give one of them")
        return _time_of_version(services, log, state, version)
    time = None if as_of is None else parse_time(as_of)
    if time is None or isinstance(as_of, int):
        return time
    return state.upper - 1 if state.upper <= time <= services.clock() else time


def check_existed(services: Services, log: TableLog, state: TableState, as_of: Moment, time: int) -> None:
    """Raise if a table has nothing at a time by the clock because it was created later.

    Small numbers are not by the clock: a table may count its times.
    """
    if isinstance(as_of, int) and time < _BY_CLOCK:
        return
    made = _created_at(services, log, state)
    if made is not None and time < made < state.upper:
        raise UsageError(
            f"cannot read `{state.name}` as of {time} ({format_time(time)} UTC): it was created at "
            f"{made} ({format_time(made)} UTC)"
        )


def _created_at(services: Services, log: TableLog, state: TableState) -> int | None:
    """Return when a table was made, also if its log begins later or is that of an earlier table too."""
    first = next(entry for entry in log.entries(0) if entry.commit.table_id == state.table_id)
    if any(isinstance(step, Created) for step in first.commit.steps):
        return first.commit.at
    *_, oldest = [None, *read_archive(services, state.table_id, first.seqno)]
    was_cloned = oldest is not None and oldest.ts is not None
    return None if oldest is None or was_cloned else (oldest.at - _EPOCH) // timedelta(milliseconds=1)


def _time_of_version(services: Services, log: TableLog, state: TableState, version: int) -> int:
    """Return the time of the rows that a table had at a seqno: that of the last commit that wrote any."""
    if not 0 <= version <= state.seqno:
        raise UsageError(f"`{state.name}` has no version {version}: its versions are 0 to {state.seqno}")
    end = version
    while end >= 0:
        start = max(0, end - _WINDOW + 1)
        window = [entry for entry in log.entries(start) if start <= entry.seqno <= end]
        for entry in reversed(window):
            if entry.commit.table_id != state.table_id:
                if entry.seqno == version:
                    raise UsageError(
                        f"version {version} is of another table, which was called `{state.name}` before this "
                        f"one: `instar log {state.name}` lists the versions of this one"
                    )
                return -1
            time = _written_at(entry)
            if time is not None:
                return time
            if any(isinstance(step, Created) for step in entry.commit.steps):
                return -1
        if not window or window[0].seqno > start:
            break
        end = start - 1
    archived = read_archive(services, state.table_id, version + 1)
    return next((line.ts for line in archived if line.ts is not None), -1)


def _written_at(entry: Entry) -> int | None:
    uppers = [step.batch.upper for step in entry.commit.steps if isinstance(step, Appended)]
    uppers += [step.upper for step in entry.commit.steps if isinstance(step, Cloned)]
    return max(uppers) - 1 if uppers else None
