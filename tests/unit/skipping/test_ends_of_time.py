"""The first and the last days that dates and timestamps reach, where Spark wraps around or fails."""

from __future__ import annotations

import pytest

from tests.unit.skipping.foreseen import parts_read

DAY = 86_400_000_000
FIRST_DAY, LAST_DAY = -(1 << 31), (1 << 31) - 1
FIRST, LAST = -(1 << 63), (1 << 63) - 1
DATES = (
    *("trunc(d, 'year') > d", "trunc(d, 'quarter') > d", "trunc(d, 'month') > d", "trunc(d, 'week') > d"),
    *("last_day(d) < d", "date_add(d, 7) < d", "date_sub(d, 7) > d", "add_months(d, 1) < d"),
    *("add_months(d, -1) > d", "datediff(d, date'2024-01-01') = 5", "weekday(d) = 9", "dayofweek(d) = 9"),
)
TIMES = (
    *("months_between(ts, timestamp'2024-01-01') = 0", "date_trunc('year', ts) > ts + interval 1 day"),
    *("date_trunc('week', ts) > timestamp'2024-01-01'", "from_utc_timestamp(ts, 'Asia/Kolkata') < ts"),
    *("ts + interval 3 days < timestamp'2024-01-01'", "ts + interval 3 months = timestamp'2024-01-01'"),
)


@pytest.mark.parametrize("text", DATES)
def test_a_date_at_the_end_may_become_anything(text: str) -> None:
    """A part that reaches the first or the last day is read; one of a usual day is skipped."""
    parts = [{"d": [FIRST_DAY]}, {"d": [0, LAST_DAY]}, {"d": [FIRST_DAY + 3, 0]}, {"d": [20_000]}]
    assert parts_read(text, "d date", parts) == [0, 1, 2]


@pytest.mark.parametrize("text", TIMES)
def test_a_timestamp_at_the_end_may_become_anything(text: str) -> None:
    """A part that reaches the first or the last microsecond is read."""
    parts = [{"ts": [FIRST]}, {"ts": [0, LAST]}, {"ts": [FIRST + DAY, 0]}]
    assert parts_read(text, "ts timestamp", parts) == [0, 1, 2]


def test_parts_of_a_date_are_known_up_to_the_end() -> None:
    """Years grow with days, all the way."""
    parts = [{"d": [FIRST_DAY]}, {"d": [LAST_DAY]}]
    assert parts_read("year(d) > 2024", "d date", parts) == [1]
    assert parts_read("month(d) = 6", "d date", parts) == [0]
