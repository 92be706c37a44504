"""Steps in time: days, months and intervals added to dates and timestamps, and the distances between them.

A month is not a number of days. Adding months to a date keeps order, because the last days of a month
fall together; to a timestamp it does not, because the time of day is kept. Days are local days.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from instar.skipping import exact
from instar.skipping.exact import Ints, constant
from instar.skipping.expression import Literal
from instar.skipping.functions import Function, Mode
from instar.skipping.kernels.calendar import months_of
from instar.skipping.kernels.outcome import Outcome, fitted, unknown
from instar.skipping.kinds import name_of
from instar.skipping.spans import NO, YES, Real, Span, Whole
from instar.skipping.zones import DAY, SECOND, is_known, to_local, to_utc

if TYPE_CHECKING:
    from instar.skipping.expression import Call

__all__ = [
    "add_day_time",
    "add_days",
    "add_months",
    "add_months_to_timestamp",
    "between",
    "convert_zone",
    "difference",
    "interval_days",
    "months_between",
    "scaled",
    "unix_timestamp",
]

_FAR: Final = 1 << 40
"""More days and months from 1970 than any type reaches, and fewer than the calendar here."""


def add_days(call: Call, date: Whole, days: Whole) -> Outcome:
    """Add or subtract days; past the ends of the type anything may happen."""
    if call.function is Function.SUBTRACT_DAYS:
        lo, hi = exact.subtract(date.lo, days.hi), exact.subtract(date.hi, days.lo)
    else:
        lo, hi = exact.add(date.lo, days.lo), exact.add(date.hi, days.hi)
    return fitted(lo, hi, call.type, Mode.UNKNOWN, wraps=True)


def difference(call: Call, end: Whole, start: Whole) -> Outcome:
    """Count the days from one date to another, as a number or as an interval."""
    unit = constant(DAY if call.function is Function.SUBTRACT_DATES else 1)
    lo, hi = exact.subtract(end.lo, start.hi), exact.subtract(end.hi, start.lo)
    return fitted(exact.multiply(lo, unit), exact.multiply(hi, unit), call.type, Mode.UNKNOWN, wraps=True)


def add_months(call: Call, date: Whole, months: Whole) -> Outcome:
    """Add months to a date; a day that the month does not have becomes its last."""
    bounds = _stepped(date.lo, months.lo), _stepped(date.hi, months.hi)
    if bounds[0] is None or bounds[1] is None:
        return unknown(call)
    return fitted(bounds[0], bounds[1], call.type, Mode.UNKNOWN, wraps=True)


def add_months_to_timestamp(call: Call, stamp: Whole, months: Whole) -> Outcome:
    """Add months to the local date, and keep the time of day: any time of the days at both ends."""
    zone = _zone(call)
    lo, hi = to_local(stamp.lo, stamp.hi, zone)
    day = constant(DAY)
    first = _stepped(exact.floor_divide(lo, day), months.lo)
    last = _stepped(exact.floor_divide(hi, day), months.hi)
    if first is None or last is None:
        return unknown(call)
    low = exact.multiply(first, day)
    high = exact.add(exact.multiply(last, day), constant(DAY - 1))
    return fitted(*to_utc(low, high, zone, either=True), call.type, Mode.UNKNOWN, wraps=True)


def add_day_time(call: Call, stamp: Whole, step: Whole) -> Outcome:
    """Add whole local days, and then the rest as time that passes."""
    zone = _zone(call)
    amount = call.args[1]
    known = np.asarray(step.lo == step.hi, np.bool_)
    if not (isinstance(amount, Literal) or known.all()):
        # Whichever days these are, clocks are not put forward or back by more than a day.
        slack = constant(2 * DAY)
        lo = exact.subtract(exact.add(stamp.lo, step.lo), slack)
        return fitted(lo, exact.add(exact.add(stamp.hi, step.hi), slack), call.type, Mode.UNKNOWN, wraps=True)
    days = exact.multiply(exact.trunc_divide(step.lo, constant(DAY)), constant(DAY))
    rest = exact.subtract(step.lo, days)
    lo, hi = to_local(stamp.lo, stamp.hi, zone)
    lo, hi = to_utc(exact.add(lo, days), exact.add(hi, days), zone, either=True)
    return fitted(exact.add(lo, rest), exact.add(hi, rest), call.type, Mode.UNKNOWN, wraps=True)


def between(call: Call, end: Whole, start: Whole) -> Outcome:
    """Take the time between two timestamps, by local clocks."""
    ends, starts = (to_local(span.lo, span.hi, _zone(call)) for span in (end, start))
    lo, hi = exact.subtract(ends[0], starts[1]), exact.subtract(ends[1], starts[0])
    return fitted(lo, hi, call.type, Mode.UNKNOWN, wraps=True)


def months_between(call: Call, end: Whole, start: Whole, _: Span) -> Outcome:
    """Count months, and what is left over in days of 31 to a month: within a month of the whole months."""
    bounds = []
    for span in (end, start):
        days = [
            exact.floor_divide(column, constant(DAY)) for column in to_local(span.lo, span.hi, _zone(call))
        ]
        if any(exact.peak(column) > _FAR for column in days):
            return unknown(call)
        bounds.append([months_of(column.astype(np.int64)) for column in days])
    lo = (bounds[0][0] - bounds[1][1]).astype(np.float64) - 1.1
    hi = (bounds[0][1] - bounds[1][0]).astype(np.float64) + 1.1
    return Outcome((Real(lo, hi, YES, NO),))


def interval_days(call: Call, step: Whole) -> Outcome:
    """Take the whole days of an interval."""
    lo, hi = (exact.trunc_divide(column, constant(DAY)) for column in (step.lo, step.hi))
    return fitted(lo, hi, call.type, Mode.UNKNOWN, wraps=True)


_SCALES: Final = {
    Function.UNIX_SECONDS: -SECOND,
    Function.UNIX_MILLIS: -1000,
    Function.UNIX_MICROS: 1,
    Function.SECONDS_TO_TIMESTAMP: SECOND,
    Function.MILLIS_TO_TIMESTAMP: 1000,
    Function.MICROS_TO_TIMESTAMP: 1,
    Function.DAYS_AS_NUMBER: 1,
    Function.NUMBER_AS_DAYS: 1,
}


def scaled(call: Call, span: Whole) -> Outcome:
    """Change between timestamps and numbers of seconds, milliseconds or microseconds."""
    factor = _SCALES[call.function]
    if factor < 0:
        lo, hi = (exact.floor_divide(column, constant(-factor)) for column in (span.lo, span.hi))
    else:
        lo, hi = (exact.multiply(column, constant(factor)) for column in (span.lo, span.hi))
    return fitted(lo, hi, call.type, Mode.UNKNOWN, wraps=True)


def unix_timestamp(call: Call, span: Whole) -> Outcome:
    """Count whole seconds towards 1970: before it, a fraction is dropped, and not rounded down."""
    lo, hi = (exact.trunc_divide(column, constant(SECOND)) for column in (span.lo, span.hi))
    return fitted(lo, hi, call.type, Mode.UNKNOWN, wraps=True)


def convert_zone(call: Call, stamp: Whole, _: Span) -> Outcome:
    """Show a UTC time as another zone's local time, or the other way round."""
    zone = call.args[1]
    if not isinstance(zone, Literal) or not isinstance(zone.value, str) or not is_known(zone.value):
        return unknown(call)
    convert = to_local if call.function is Function.FROM_UTC else to_utc
    return fitted(*convert(stamp.lo, stamp.hi, zone.value), call.type, Mode.UNKNOWN, wraps=True)


def _stepped(days: Ints, months: Ints) -> Ints | None:
    """Add months to days, or give up where the calendar here does not reach."""
    if exact.peak(days) > _FAR or exact.peak(months) > _FAR:
        return None
    start = days.astype(np.int64)
    month = months_of(start)
    day = start - _first(month)
    target = month + months.astype(np.int64)
    result: Ints = np.minimum(_first(target) + day, _first(target + 1) - 1)
    return result


def _first(months: Ints) -> Ints:
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _zone(call: Call) -> str | None:
    return "UTC" if name_of(call.args[0].type) == "timestamp_ntz" else call.zone
