"""How much there is, by the hour and by the day."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from instar.errors import UsageError
from instar.lineage.queries.stats import count_events, count_things, intervals
from testbed.lineage import dataset, run_event
from tests.lineage import send

if TYPE_CHECKING:
    from instar.lineage import Database


def at(text: str) -> int:
    """Return a moment as it is stored."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000_000)


def test_events_are_counted_by_type_and_things_by_when_they_came(database: Database) -> None:
    """Events belong to the hour that they name, and what is there stays counted."""
    source = {"name": "s", "uri": "s3://b"}
    send(
        database,
        run_event("START", 10, 1, outputs=[dataset("x", dataSource=source)]),
        run_event("FAIL", 20, 1),
        run_event("START", 3600, 2, job="other", outputs=[dataset("x"), dataset("y")]),
        run_event("COMPLETE", 3700, 2, job="other"),
        run_event("OTHER", 3800, 2, job="other"),
    )
    spans = intervals(at("2026-01-01T01:30:00"), "DAY", "UTC")
    with database.reading() as connection:
        events = count_events(connection, spans)
        things = {what: count_things(connection, what, spans) for what in ("jobs", "datasets", "sources")}
    assert len(events) == 24
    assert events[-2] == {
        "startInterval": "2026-01-01T00:00:00.000Z", "endInterval": "2026-01-01T01:00:00.000Z",
        "fail": 1, "start": 1, "complete": 0, "abort": 0,
    }  # fmt: skip
    assert (events[-1]["start"], events[-1]["complete"], events[0]["start"]) == (1, 1, 0)
    counts = {what: [one["count"] for one in some[-3:]] for what, some in things.items()}
    assert counts == {"jobs": [0, 1, 2], "datasets": [0, 1, 2], "sources": [0, 1, 1]}


def test_days_begin_at_midnight_where_somebody_lives() -> None:
    """A week in which the clock changes has a day of 23 hours."""
    spans = intervals(at("2026-03-31T10:00:00"), "WEEK", "Europe/Berlin")
    assert [(end - start) // 3_600_000_000 for start, end in spans] == [24, 24, 24, 24, 23, 24, 24]
    assert spans[-1][0] == at("2026-03-30T22:00:00")
    for zone in ("Nowhere/Land", "../../etc/passwd", ""):
        with pytest.raises(UsageError, match="time zone"):
            intervals(0, "WEEK", zone)
