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
from instar.skipping.functions import Mode
from instar.skipping.kernels.calendar import first_of, months_of, zone_of
from instar.skipping.kernels.outcome import Kernel, Outcome, fitted, growing, unknown
from instar.skipping.representation import is_day_time
from instar.skipping.spans import NO, YES, Real, Span, Whole
from instar.skipping.zones import DAY, is_known, to_local, to_utc

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.skipping.expression import Call

__all__ = [
    "add_day_time",
    "add_days",
    "add_months",
    "add_months_to_timestamp",
    "between",
    "convert_zone",
    "days_between",
    "floored",
    "months_between",
    "subtract_days",
    "times",
    "towards_zero",
]

_FAR: Final = 1 << 40
"""More days and months from 1970 than any type reaches, and fewer than the calendar here."""


def add_days(call: Call, date: Whole, days: Whole) -> Outcome:
    """Add days; past the ends of the type anything may happen."""
    lo, hi = exact.add(date.lo, days.lo), exact.add(date.hi, days.hi)
    return fitted(lo, hi, call.type, Mode.UNKNOWN, wraps=True)


def subtract_days(call: Call, date: Whole, days: Whole) -> Outcome:
    """Subtract days."""
    lo, hi = exact.subtract(date.lo, days.hi), exact.subtract(date.hi, days.lo)
    return fitted(lo, hi, call.type, Mode.UNKNOWN, wraps=True)


def days_between(call: Call, end: Whole, start: Whole) -> Outcome:
    """Count the days from one date to another, as a number or as an interval."""
    unit = constant(DAY if is_day_time(call.type) else 1)
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
    zone = zone_of(call)
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
    zone = zone_of(call)
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
    ends, starts = (to_local(span.lo, span.hi, zone_of(call)) for span in (end, start))
    lo, hi = exact.subtract(ends[0], starts[1]), exact.subtract(ends[1], starts[0])
    return fitted(lo, hi, call.type, Mode.UNKNOWN, wraps=True)


def months_between(call: Call, end: Whole, start: Whole, _: Span) -> Outcome:
    """Count months, and what is left over in days of 31 to a month: within a month of the whole months."""
    bounds = []
    for span in (end, start):
        days = [
            exact.floor_divide(column, constant(DAY)) for column in to_local(span.lo, span.hi, zone_of(call))
        ]
        if any(exact.peak(column) > _FAR for column in days):
            return unknown(call)
        bounds.append([months_of(column.astype(np.int64)) for column in days])
    lo = (bounds[0][0] - bounds[1][1]).astype(np.float64) - 1.1
    hi = (bounds[0][1] - bounds[1][0]).astype(np.float64) + 1.1
    return Outcome((Real(lo, hi, YES, NO),))


def times(factor: int) -> Kernel:
    """Make a kernel that multiplies."""
    return growing(lambda column: exact.multiply(column, constant(factor)))


def floored(divisor: int) -> Kernel:
    """Make a kernel that divides and rounds down."""
    return growing(lambda column: exact.floor_divide(column, constant(divisor)))


def towards_zero(divisor: int) -> Kernel:
    """Make a kernel that divides and drops the fraction."""
    return growing(lambda column: exact.trunc_divide(column, constant(divisor)))


def convert_zone(convert: Callable[[Ints, Ints, str], tuple[Ints, Ints]]) -> Kernel:
    """Make a kernel that shows a UTC time as another zone's local time, or the other way round."""

    def kernel(call: Call, stamp: Whole, _: Span) -> Outcome:
        zone = call.args[1]
        if not isinstance(zone, Literal) or not isinstance(zone.value, str) or not is_known(zone.value):
            return unknown(call)
        return fitted(*convert(stamp.lo, stamp.hi, zone.value), call.type, Mode.UNKNOWN, wraps=True)

    return kernel


def _stepped(days: Ints, months: Ints) -> Ints | None:
    """Add months to days, or give up where the calendar here does not reach."""
    if exact.peak(days) > _FAR or exact.peak(months) > _FAR:
        return None
    start = days.astype(np.int64)
    month = months_of(start)
    day = start - first_of(month)
    target = month + months.astype(np.int64)
    result: Ints = np.minimum(first_of(target) + day, first_of(target + 1) - 1)
    return result
