"""How much there is, hour by hour of the last day or day by day of the last week, as Marquez's pages ask."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from sqlalchemy import case, func, select

from instar.errors import UsageError
from instar.lineage.models import DatasetRow, EventRow, JobRow, SourceRow
from instar.lineage.queries.rows import Json, format_time

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

__all__ = ["count_events", "count_things", "intervals"]

_TYPES: Final = ("FAIL", "START", "COMPLETE", "ABORT")
_THINGS: Final[dict[str, tuple[Any, list[ColumnElement[bool]]]]] = {
    "jobs": (JobRow, [JobRow.is_hidden.is_(False)]),
    "datasets": (DatasetRow, [DatasetRow.is_hidden.is_(False), DatasetRow.uuid == DatasetRow.root_uuid]),
    "sources": (SourceRow, []),
}


def intervals(now: int, period: str, zone: str) -> list[tuple[int, int]]:
    """Return the hours of the last day, or the days of the last week in a time zone; the last is not over."""
    try:
        moment = datetime.fromtimestamp(now / 1_000_000, tz=ZoneInfo(zone))
    except (ValueError, OSError, KeyError):
        raise UsageError(f"{zone!r} is not a time zone: write one such as Europe/Berlin") from None
    if period == "DAY":
        last = moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        starts = [last + timedelta(hours=hour) for hour in range(-23, 2)]
    else:
        midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
        starts = [midnight + timedelta(days=day) for day in range(-6, 2)]  # by the clock on the wall
    times = [round(start.timestamp() * 1_000_000) for start in starts]
    return list(pairwise(times))


def count_events(connection: Connection, spans: list[tuple[int, int]]) -> list[Json]:
    """Return how many events of each type each interval has, by the time that they say themselves."""
    at = EventRow.event_time
    sums = [func.sum(case(((at >= start) & (at < end), 1), else_=0)) for start, end in spans]
    rows = connection.execute(
        select(EventRow.event_type, *sums)
        .where(at >= spans[0][0], at < spans[-1][1], EventRow.event_type.in_(_TYPES))
        .group_by(EventRow.event_type)
    )
    counts = {row[0]: row[1:] for row in rows}
    nothing = [0] * len(spans)
    return [
        {**_span(span), **{kind.lower(): int(counts.get(kind, nothing)[place]) for kind in _TYPES}}
        for place, span in enumerate(spans)
    ]


def count_things(connection: Connection, what: str, spans: list[tuple[int, int]]) -> list[Json]:
    """Return how many jobs, datasets or sources there were at the end of each interval."""
    row, wanted = _THINGS[what]
    sums = [func.sum(case((row.created_at < end, 1), else_=0)) for _, end in spans]
    counts = connection.execute(select(*sums).where(*wanted)).one()
    return [{**_span(span), "count": int(count or 0)} for span, count in zip(spans, counts, strict=True)]


def _span(span: tuple[int, int]) -> Json:
    return {"startInterval": format_time(span[0]), "endInterval": format_time(span[1])}
