"""`Period`: how much time one table of a stream holds, and the times that its tables begin at.

Times are microseconds since 1970 in UTC, as Arrow and Spark keep them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

import numpy as np

from instar.errors import UsageError

__all__ = ["DAY", "Period", "as_micros", "parse_period", "show_time"]

_MINUTE: Final = 60_000_000
_HOUR: Final = 60 * _MINUTE
DAY: Final = 24 * _HOUR
"""Microseconds of a day."""

_FORM: Final = re.compile(r"(\d{1,3})([mhdMy])", re.ASCII)
_LENGTHS: Final = {"m": _MINUTE, "h": _HOUR, "d": DAY}
_CALENDAR: Final = {"1m": "M", "1M": "M", "1y": "Y"}
"""Periods that are not always as long as each other; `1m` is a month, as `1M` is, and never a minute."""
_MOST_IN_A_DAY: Final = 1000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = -62_135_596_800_000_000  # the year 1
_END: Final = 253_402_300_800_000_000  # the year 10000


@dataclass(frozen=True)
class Period:
    """A number of minutes or hours that divides a day, or one day, month or year."""

    count: int
    unit: str

    def __str__(self) -> str:
        return f"{self.count}{self.unit}"

    @property
    def within_a_day(self) -> bool:
        """Whether a day has several tables."""
        return self.unit in "mh" and not self.is_month

    @property
    def is_month(self) -> bool:
        """Whether it is a month, however that is written."""
        return _CALENDAR.get(str(self)) == "M"

    def floor(self, times: np.ndarray) -> np.ndarray:
        """Return the beginning of the period that each time is in; times are 64-bit microseconds."""
        unit = _CALENDAR.get(str(self))
        if unit is None:
            length = self.count * _LENGTHS[self.unit]
            floored: np.ndarray = times // length * length
            return floored
        calendar = times.astype("datetime64[us]").astype(f"datetime64[{unit}]")
        return calendar.astype("datetime64[us]").astype(np.int64)

    def start_of(self, time: int) -> int:
        """Return the beginning of the period that a time is in."""
        return int(self.floor(np.array([time], np.int64))[0])

    def end_of(self, start: int) -> int:
        """Return the beginning of the period after the one that begins at `start`."""
        unit = _CALENDAR.get(str(self))
        if unit is None:
            return start + self.count * _LENGTHS[self.unit]
        after = np.datetime64(start, "us").astype(f"datetime64[{unit}]") + 1
        return int(after.astype("datetime64[us]").astype(np.int64))

    def name(self, start: int) -> str:
        """Return the name of the table that begins at a time: its date, and its number within the day."""
        day = (_EPOCH + timedelta(microseconds=start)).strftime("%Y-%m-%d").zfill(10)
        if not self.within_a_day:
            return day
        number = start % DAY // (self.count * _LENGTHS[self.unit])
        return f"{day}_{number:03d}"


def parse_period(text: str) -> Period:
    """Read a period: `30m` are minutes, `1h` an hour, `1d` a day, `1M` or `1m` a month and `1y` a year."""
    match = _FORM.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise UsageError(f"{text!r} is not a period: write 30m, 1h, 1d, 1M (a month) or 1y")
    period = Period(int(match[1]), match[2])
    if not period.within_a_day:
        if period.count != 1:
            raise UsageError(
                f"{text} is not a period: days, months and years come one at a time, as 1{match[2]}"
            )
        return period
    length = period.count * _LENGTHS[period.unit]
    if not length or DAY % length or not 1 < DAY // length <= _MOST_IN_A_DAY:
        raise UsageError(f"{text} is not a period: it has to divide a day into 2 to {_MOST_IN_A_DAY} tables")
    return period


def as_micros(given: str | date | datetime) -> int:
    """Read a date, a moment, or either as ISO text, in UTC unless it says otherwise, as microseconds."""
    value: date | datetime
    if isinstance(given, str):
        try:
            value = datetime.fromisoformat(given)
        except ValueError:
            raise UsageError(f"{given!r} is not a time: write 2026-11-15 or 2026-11-15T13:00") from None
    else:
        value = given
    if not isinstance(value, datetime):
        if not isinstance(value, date):
            raise UsageError(f"{given!r} is not a time: give a date, a datetime, or text such as 2026-11-15")
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def show_time(micros: int, period: Period) -> date | datetime:
    """Return when a table begins: a date, or a moment in UTC if a day has several tables."""
    moment = _EPOCH + timedelta(microseconds=micros)
    return moment if period.within_a_day else moment.date()


def in_calendar(times: np.ndarray) -> np.ndarray:
    """Tell which times have a year from 1 to 9999, so that a table can be named after them."""
    inside: np.ndarray = (times >= _FIRST) & (times < _END)
    return inside
