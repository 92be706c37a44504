"""What tables of a stream are called, and which of them a row belongs to."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.errors import InvalidNameError, UsageError
from instar.stream import Kind, as_micros
from instar.stream.kinds import plan_layout
from instar.stream.period import DAY, parse_period, show_time
from instar.stream.routing import route

EVENTS = {"hourly": "1h", "regular": "1d", "repartitioned": "1d", "eod": "1d", "archive": "1y"}
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9998, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("regular", "billing/events/1d/2026-11-15"),
        ("hourly", "billing/events/1h/2026-11-15_013"),
        ("archive", "billing/events/1y/2026-01-01"),
        ("repartitioned", "billing/events-repartitioned/1d/2026-11-15"),
        ("eod", "billing/events-eod/1d/2026-11-15"),
    ],
)
def test_tables_are_where_the_documentation_says(kind: str, name: str) -> None:
    """A table is called after its kind, its period and where its time begins."""
    layout = plan_layout("billing/events", EVENTS)
    start = layout.period(Kind(kind)).start_of(as_micros("2026-11-15T13:59:59"))
    assert layout.table_name(Kind(kind), start) == name


@given(MOMENTS, st.sampled_from(["2m", "30m", "1h", "6h", "12h", "1d", "1m", "1M", "1y"]))
def test_a_moment_is_in_exactly_one_period(moment: datetime, text: str) -> None:
    """A period begins at or before a moment, ends after it, and is called differently from the next."""
    period, at = parse_period(text), as_micros(moment)
    start = period.start_of(at)
    end = period.end_of(start)
    assert start <= at < end
    assert period.start_of(end) == end
    assert period.start_of(start) == start
    assert period.name(start) < period.name(end)
    shown = show_time(start, period)
    assert as_micros(shown) == start
    assert period.name(start).startswith(shown.isoformat()[:10])


@pytest.mark.parametrize("text", ["7m", "5h", "24h", "2d", "3M", "0h", "1w", "", "h", "999m", 5])
def test_periods_are_never_guessed(text: str) -> None:
    """A period divides a day or is one day, month or year."""
    with pytest.raises(UsageError):
        parse_period(text)


def test_1m_is_a_month_and_30m_are_minutes() -> None:
    """A month may be written in two ways; the path is what was written, and no kind has the other as well."""
    moment = as_micros("2026-11-15T13:59:59")
    for text in ("1m", "1M"):
        layout = plan_layout("s", {"regular": "1d", "archive": text})
        start = layout.period(Kind.ARCHIVE).start_of(moment)
        assert layout.table_name(Kind.ARCHIVE, start) == f"s/{text}/2026-11-01"
        assert layout.period(Kind.ARCHIVE).end_of(start) == as_micros("2026-12-01")
    minutes = parse_period("30m")
    assert minutes.name(minutes.start_of(moment)) == "2026-11-15_027"


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ({"archive": "1y"}, "needs regular tables"),
        ({"regular": "1d", "weekly": "1d"}, "the kinds are"),
        ({"regular": "1M", "archive": "1M"}, "would have the same names"),
        ({"regular": "1M", "archive": "1m"}, "would have the same names"),
        ({"regular": "1d", "hourly": "1m"}, "1m is a month"),
        ({"regular": "1d", "hourly": "1d"}, "minutes or hours"),
    ],
)
def test_kinds_are_declared_so_that_no_two_tables_share_a_name(kinds: dict[str, str], message: str) -> None:
    """A stream whose tables could be taken for others is refused."""
    with pytest.raises(UsageError, match=message):
        plan_layout("s", kinds)


def test_a_stream_is_not_called_as_the_tables_of_another() -> None:
    """Names that end as derived tables do are refused."""
    with pytest.raises(InvalidNameError):
        plan_layout("billing/events-eod", EVENTS)


def test_a_name_leaves_room_for_those_of_its_tables() -> None:
    """A stream that could be created, and never written to, is refused."""
    plan_layout("x" * 218, {"regular": "1d"})
    with pytest.raises(InvalidNameError, match="its tables could not be named"):
        plan_layout("x" * 224, {"regular": "1d"})
    with pytest.raises(InvalidNameError, match=r"_v0\.0\.1000000000"):
        plan_layout("x" * 210, {"regular": "1d", "hourly": "1h"})


def test_times_are_understood_in_utc_unless_they_say_otherwise() -> None:
    """Dates, moments and texts of both mean the same time."""
    assert as_micros("2026-11-15") == as_micros(date(2026, 11, 15)) == as_micros("2026-11-15T01:00+01:00")
    zone = timezone(timedelta(hours=-8))
    assert as_micros(datetime(2026, 11, 14, 16, tzinfo=zone)) == as_micros("2026-11-15")
    with pytest.raises(UsageError, match="is not a time"):
        as_micros("yesterday")


@given(
    st.lists(st.none() | st.integers(-200 * 365 * DAY, 300 * 365 * DAY), max_size=30),
    st.sampled_from([pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()]),
)
def test_every_row_goes_once_to_each_kind_or_nowhere(times: list[int | None], type_: pa.DataType) -> None:
    """Routing loses and doubles nothing, keeps the order of rows, and puts each into its own period."""
    layout = plan_layout("s", {"regular": "1d", "hourly": "6h"})
    latest = 250 * 365 * DAY
    if pa.types.is_date32(type_):
        days = [None if time is None else time // DAY for time in times]
        column, times = pa.array(days, type_), [None if at is None else at * DAY for at in days]
    else:
        column = pa.array(times, pa.timestamp("us")).cast(pa.timestamp("us", type_.tz)).cast(type_)
    batch = pa.record_batch({"n": np.arange(len(times)), "at": column})
    found: dict[Kind | None, list[int]] = {None: [], **{kind: [] for kind in layout.periods}}
    for place, rows in route(batch, 1, layout.periods, latest):
        numbers = rows.column("n").to_pylist()
        assert numbers == sorted(numbers)
        found[None if place.start is None else place.kind] += numbers
        for number in numbers:
            at = times[number]
            if place.start is None:
                assert at is None or at > latest
            else:
                assert at is not None
                assert place.start <= at < layout.period(place.kind).end_of(place.start)
    for kind in layout.periods:
        assert sorted(found[kind] + found[None]) == list(range(len(times)))
