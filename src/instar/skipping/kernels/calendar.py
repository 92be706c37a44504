"""Parts of dates and times: years grow with time, months and hours go round.

A part that goes round is known within one round, and in two pieces across the end of one. Dates are days
in the calendar that Spark uses, which was never any other than today's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from instar.skipping import exact
from instar.skipping.exact import Ints, constant
from instar.skipping.expression import Literal
from instar.skipping.functions import Function, Mode
from instar.skipping.kernels.outcome import Outcome, any_value, fitted, unknown
from instar.skipping.kinds import name_of
from instar.skipping.spans import YES, Span, Whole
from instar.skipping.zones import DAY, HOUR, MINUTE, SECOND, midnights_to_utc, to_local, to_utc

if TYPE_CHECKING:
    from instar.skipping.expression import Call

__all__ = ["clock_part", "date_part", "last_day", "months_of", "trunc_date", "trunc_timestamp"]

Days = npt.NDArray[np.int64]

_CLOCK: Final = {Function.HOUR: (HOUR, 24), Function.MINUTE: (MINUTE, 60), Function.SECOND: (SECOND, 60)}
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


def date_part(call: Call, span: Whole) -> Outcome:
    """Take the year, quarter, month, week or day of a date."""
    lo, hi = _days(span)
    match call.function:
        case Function.YEAR:
            return Outcome((Whole(months_of(lo) // 12 + 1970, months_of(hi) // 12 + 1970, YES),))
        case Function.MONTH:
            return _round((months_of(lo), months_of(hi)), 12)
        case Function.QUARTER:
            return _round((months_of(lo) // 3, months_of(hi) // 3), 4)
        case Function.DAY_OF_WEEK:
            return _round((lo + 4, hi + 4), 7)
        case Function.WEEKDAY:
            return _round((lo + 3, hi + 3), 7, first=0)
        case Function.DAY:
            rounds = months_of(lo), months_of(hi)
            return _uneven(rounds, lo - _first_of(rounds[0]) + 1, hi - _first_of(rounds[1]) + 1, 31)
        case Function.DAY_OF_YEAR:
            rounds = months_of(lo) // 12, months_of(hi) // 12
            return _uneven(
                rounds, lo - _first_of(rounds[0] * 12) + 1, hi - _first_of(rounds[1] * 12) + 1, 366
            )
        case Function.WEEK_OF_YEAR:
            # The year that a week is counted in is that of its Thursday.
            thursday = (lo + 3) // 7 * 7, (hi + 3) // 7 * 7
            years = months_of(thursday[0]) // 12, months_of(thursday[1]) // 12
            first, last = (
                (day - _first_of(year * 12)) // 7 + 1 for day, year in zip(thursday, years, strict=True)
            )
            return _uneven(years, first, last, 53)
    return any_value(call)


def clock_part(call: Call, span: Whole) -> Outcome:
    """Take the hour, minute or second of a local time."""
    unit, count = _CLOCK[call.function]
    lo, hi = _local(call, span)
    pieces = exact.floor_divide(lo, constant(unit)), exact.floor_divide(hi, constant(unit))
    return _round(pieces, count, first=0)


def trunc_date(call: Call, span: Whole, _: Span) -> Outcome:
    """Go back to the first day of a week, month, quarter or year. Another word makes it null."""
    level = _word(call, 1)
    if level is None:
        return unknown(call)
    lo, hi = _days(span)
    if level not in (*_LEVELS, "week"):
        return Outcome((), YES)
    return Outcome((Whole(_back(lo, level), _back(hi, level), YES),))


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
        return fitted(*to_utc(lo, hi, _zone(call), either=True), call.type, Mode.UNKNOWN, wraps=True)
    days = _days(Whole(exact.floor_divide(lo, constant(DAY)), exact.floor_divide(hi, constant(DAY)), YES))
    starts = [exact.multiply(_back(column, level), constant(DAY)) for column in days]
    return fitted(*midnights_to_utc(starts[0], starts[1], _zone(call)), call.type, Mode.UNKNOWN, wraps=True)


def last_day(_: Call, span: Whole) -> Outcome:
    """Go on to the last day of the month."""
    lo, hi = (_first_of(months_of(column) + 1) - 1 for column in _days(span))
    return fitted(lo, hi, _.type, Mode.UNKNOWN, wraps=True)


def months_of(days: Days) -> Days:
    """Count months since 1970."""
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def _first_of(months: Days) -> Days:
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _back(days: Days, level: str) -> Days:
    if level == "week":
        return (days + 3) // 7 * 7 - 3
    count = _LEVELS[level]
    return _first_of(months_of(days) // count * count)


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
    return to_local(span.lo, span.hi, _zone(call))


def _zone(call: Call) -> str | None:
    stamp = call.args[-1]
    return "UTC" if name_of(stamp.type) == "timestamp_ntz" else call.zone


def _days(span: Whole) -> tuple[Days, Days]:
    """Take days as int64: a date has 32 bits, and so has whatever comes from one."""
    return span.lo.astype(np.int64), span.hi.astype(np.int64)


def _word(call: Call, position: int) -> str | None:
    word = call.args[position]
    return word.value.lower() if isinstance(word, Literal) and isinstance(word.value, str) else None
