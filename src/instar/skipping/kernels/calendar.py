"""Parts of dates and times: years grow with time, months and hours go round.

A part that goes round is known within one round, and in two pieces across the end of one. Dates are days
in the calendar that Spark uses, which was never any other than today's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from instar.skipping import exact
from instar.skipping.exact import Ints, constant
from instar.skipping.expression import Literal
from instar.skipping.functions import Mode
from instar.skipping.kernels.outcome import Kernel, Outcome, fitted, growing, unknown
from instar.skipping.representation import name_of
from instar.skipping.spans import NO, YES, Span, Whole
from instar.skipping.zones import DAY, HOUR, MINUTE, SECOND, midnights_to_utc, to_local, to_utc

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.skipping.expression import Call

__all__ = [
    "clock_part",
    "cyclic",
    "day_of_month",
    "day_of_year",
    "first_of",
    "last_day",
    "make_date",
    "months_of",
    "trunc_date",
    "trunc_timestamp",
    "week_of_year",
    "year",
    "zone_of",
]

_LEVELS: Final = {
    "year": 12,
    "yyyy": 12,
    "yy": 12,
    "quarter": 3,
    "month": 1,
    "mon": 1,
    "mm": 1,
}
_UNITS: Final = {"minute": MINUTE, "hour": HOUR, "day": DAY, "dd": DAY}
_FINE: Final = {"microsecond": 1, "millisecond": 1000, "second": SECOND}


def _year(days: Ints) -> Ints:
    return months_of(days) // 12 + 1970


def _last_of_month(days: Ints) -> Ints:
    return first_of(months_of(days) + 1) - 1


year: Final = growing(_year)
last_day: Final = growing(_last_of_month)


def cyclic(count: Callable[[Ints], Ints], size: int, first: int = 1) -> Kernel:
    """Make a kernel of what goes round: the place in a round of `size`, of a number that grows with time."""

    def kernel(_: Call, span: Whole) -> Outcome:
        return _round((count(span.lo), count(span.hi)), size, first)

    return kernel


def day_of_month(_: Call, span: Whole) -> Outcome:
    """Take the day of the month."""
    rounds = months_of(span.lo), months_of(span.hi)
    return _uneven(rounds, span.lo - first_of(rounds[0]) + 1, span.hi - first_of(rounds[1]) + 1, 31)


def day_of_year(_: Call, span: Whole) -> Outcome:
    """Take the day of the year."""
    rounds = months_of(span.lo) // 12, months_of(span.hi) // 12
    starts = [first_of(year * 12) for year in rounds]
    return _uneven(rounds, span.lo - starts[0] + 1, span.hi - starts[1] + 1, 366)


def week_of_year(_: Call, span: Whole) -> Outcome:
    """Take the week. The year that it is counted in is that of its Thursday."""
    thursdays = (span.lo + 3) // 7 * 7, (span.hi + 3) // 7 * 7
    years = months_of(thursdays[0]) // 12, months_of(thursdays[1]) // 12
    first, last = ((day - first_of(year * 12)) // 7 + 1 for day, year in zip(thursdays, years, strict=True))
    return _uneven(years, first, last, 53)


def clock_part(unit: int, count: int) -> Kernel:
    """Make a kernel that takes the hour, minute or second of a local time."""

    def kernel(call: Call, span: Whole) -> Outcome:
        lo, hi = _local(call, span)
        return _round(
            (exact.floor_divide(lo, constant(unit)), exact.floor_divide(hi, constant(unit))), count, 0
        )

    return kernel


def trunc_date(call: Call, span: Whole, _: Span) -> Outcome:
    """Go back to the first day of a week, month, quarter or year. Another word makes it null."""
    level = _word(call, 1)
    if level is None:
        return unknown(call)
    if level not in (*_LEVELS, "week"):
        return Outcome((), YES)
    return Outcome((Whole(_back(span.lo, level), _back(span.hi, level), YES),))


def trunc_timestamp(call: Call, _: Span, span: Whole) -> Outcome:
    """Go back to the beginning of a unit of local time; seconds are the same in all zones."""
    level = _word(call, 0)
    if level is None:
        return unknown(call)
    if level in _FINE:
        unit = constant(_FINE[level])
        lo, hi = (exact.multiply(exact.floor_divide(column, unit), unit) for column in (span.lo, span.hi))
        return fitted(lo, hi, call.type, Mode.UNKNOWN, wraps=True)
    if level not in (*_UNITS, *_LEVELS, "week"):
        return Outcome((), YES)
    lo, hi = _local(call, span)
    if level in _UNITS:
        unit = constant(_UNITS[level])
        lo, hi = (exact.multiply(exact.floor_divide(column, unit), unit) for column in (lo, hi))
        return fitted(*to_utc(lo, hi, zone_of(call, -1), either=True), call.type, Mode.UNKNOWN, wraps=True)
    days = (exact.floor_divide(column, constant(DAY)).astype(np.int64) for column in (lo, hi))
    starts = [exact.multiply(_back(column, level), constant(DAY)) for column in days]
    return fitted(
        *midnights_to_utc(starts[0], starts[1], zone_of(call, -1)), call.type, Mode.UNKNOWN, wraps=True
    )


def make_date(call: Call, year: Whole, month: Whole, day: Whole) -> Outcome:
    """Make a date of its parts: sure to be one up to the 28th, and otherwise null or an error in between."""
    months = np.clip(month.lo, 1, 12), np.clip(month.hi, 1, 12)
    days = np.clip(day.lo, 1, 31), np.clip(day.hi, 1, 31)
    lo, hi = (
        first_of((ends.astype(np.int64) - 1970) * 12 + which - 1) + number - 1
        for ends, which, number in zip((year.lo, year.hi), months, days, strict=True)
    )
    odd = np.asarray((month.lo < 1) | (month.hi > 12) | (day.lo < 1) | (day.hi > 28), np.bool_)  # noqa: PLR2004
    found = fitted(lo, hi, call.type, Mode.UNKNOWN, wraps=True)
    null, fail = (odd if may else NO for may in (call.mode.may_be_null, call.mode.may_fail))
    return Outcome(found.spans, found.null | null, found.fail | fail)


def months_of(days: Ints) -> Ints:
    """Count months since 1970."""
    return days.astype(np.int64).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def first_of(months: Ints) -> Ints:
    """Return the first day of months that are counted since 1970."""
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _back(days: Ints, level: str) -> Ints:
    if level == "week":
        return (days + 3) // 7 * 7 - 3
    count = _LEVELS[level]
    return first_of(months_of(days) // count * count)


def _round(pieces: tuple[Ints, Ints], count: int, first: int = 1) -> Outcome:
    """Return the place in a round of `count`, as one piece or as the two around its end."""
    lo, hi = pieces
    size = constant(count)
    rounds = exact.floor_divide(lo, size), exact.floor_divide(hi, size)
    start, end = (
        exact.subtract(piece, exact.multiply(which, size)) + first
        for piece, which in zip(pieces, rounds, strict=True)
    )
    return _uneven(rounds, start, end, count + first - 1, first=first)


def _uneven(rounds: tuple[Ints, Ints], start: Ints, end: Ints, last: int, first: int = 1) -> Outcome:
    """Return places in rounds that need not all be of the same length."""
    apart = exact.subtract(rounds[1], rounds[0])
    same, next_one = (np.asarray(apart == count, np.bool_) for count in (0, 1))
    whole_round = ~same & ~next_one
    start, end = (exact.compact(np.asarray(column)) for column in (start, end))
    return Outcome(
        (
            Whole(np.where(whole_round, first, start), np.where(same, end, last), YES),
            Whole(constant(first), end, next_one),
        )
    )


def _local(call: Call, span: Whole) -> tuple[Ints, Ints]:
    return to_local(span.lo, span.hi, zone_of(call, -1))


def zone_of(call: Call, position: int = 0) -> str | None:
    """Return the zone in which an argument is a local time; one that has no zone is as if in UTC."""
    return "UTC" if name_of(call.args[position].type) == "timestamp_ntz" else call.zone


def _word(call: Call, position: int) -> str | None:
    word = call.args[position]
    return word.value.lower() if isinstance(word, Literal) and isinstance(word.value, str) else None
