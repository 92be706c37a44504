"""Which kernel a function has, by the kinds of its arguments. A function without one may do anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from instar.skipping.functions import Function
from instar.skipping.kernels import arithmetic, calendar, casts, floating, formats, moments, rounding, text
from instar.skipping.kernels.compare import COMPARISONS
from instar.skipping.kernels.outcome import wary
from instar.skipping.kinds import Kind

if TYPE_CHECKING:
    from instar.skipping.kernels.outcome import Kernel

__all__ = ["KERNELS", "find_kernel"]

_W, _R, _T, _B = Kind.WHOLE, Kind.REAL, Kind.TEXT, Kind.TRUTH

_Kinds = tuple[Kind, ...]

KERNELS: Final[dict[Function, dict[_Kinds, Kernel]]] = {
    Function.ADD: {(_W, _W): arithmetic.add, (_R, _R): floating.add},
    Function.SUBTRACT: {(_W, _W): arithmetic.subtract, (_R, _R): floating.subtract},
    Function.MULTIPLY: {(_W, _W): arithmetic.multiply, (_R, _R): floating.multiply},
    Function.DIVIDE: {(_W, _W): arithmetic.divide, (_R, _R): floating.divide},
    Function.INTEGRAL_DIVIDE: {(_W, _W): arithmetic.integral_divide},
    Function.REMAINDER: {(_W, _W): arithmetic.remainder, (_R, _R): floating.remainder},
    Function.POSITIVE_REMAINDER: {(_W, _W): arithmetic.positive_remainder},
    Function.NEGATE: {(_W,): arithmetic.negate, (_R,): floating.negate},
    Function.ABS: {(_W,): arithmetic.absolute, (_R,): floating.absolute},
    Function.SIGN: {(_R,): rounding.sign_of_real},
    Function.CEIL: {(_W,): rounding.to_whole_whole, (_R,): rounding.to_whole_real},
    Function.FLOOR: {(_W,): rounding.to_whole_whole, (_R,): rounding.to_whole_real},
    Function.ROUND: {(_W, _W): rounding.round_whole, (_R, _W): rounding.round_real},
    Function.STARTS_WITH: {(_T, _T): text.starts_with},
    Function.ENDS_WITH: {(_T, _T): text.ends_with},
    Function.CONTAINS: {(_T, _T): text.contains},
    Function.LIKE: {(_T, _T, _T): text.like, (_T, _T): text.like},
    Function.PREFIX: {(_T, _W): text.prefix},
    Function.LENGTH: {(_T,): text.length},
    Function.TRUNC_DATE: {(_W, _T): wary(calendar.trunc_date)},
    Function.TRUNC_TIMESTAMP: {(_T, _W): wary(calendar.trunc_timestamp)},
    Function.LAST_DAY: {(_W,): wary(calendar.last_day)},
    Function.ADD_DAYS: {(_W, _W): wary(moments.add_days)},
    Function.SUBTRACT_DAYS: {(_W, _W): wary(moments.add_days)},
    Function.DATE_DIFFERENCE: {(_W, _W): wary(moments.difference)},
    Function.SUBTRACT_DATES: {(_W, _W): wary(moments.difference)},
    Function.ADD_MONTHS: {(_W, _W): wary(moments.add_months)},
    Function.ADD_MONTHS_TO_TIMESTAMP: {(_W, _W): wary(moments.add_months_to_timestamp)},
    Function.ADD_DAY_TIME: {(_W, _W): wary(moments.add_day_time)},
    Function.SUBTRACT_TIMESTAMPS: {(_W, _W): wary(moments.between)},
    Function.MONTHS_BETWEEN: {(_W, _W, _B): wary(moments.months_between)},
    Function.INTERVAL_DAYS: {(_W,): moments.interval_days},
    Function.FORMAT_UNIX_SECONDS: {(_W, _T): formats.format_seconds},
    Function.FORMAT_TIMESTAMP: {(_W, _T): wary(formats.format_timestamp)},
    Function.FROM_UTC: {(_W, _T): wary(moments.convert_zone)},
    Function.TO_UTC: {(_W, _T): wary(moments.convert_zone)},
}
"""Kernels by function and kinds of arguments, where both matter."""

_ANY_KIND: Final[dict[Function, Kernel]] = {**COMPARISONS, Function.CAST: casts.cast}

_ONE_WHOLE: Final[dict[Function, Kernel]] = {
    Function.YEAR: calendar.date_part,
    Function.QUARTER: calendar.date_part,
    Function.MONTH: calendar.date_part,
    Function.DAY: calendar.date_part,
    Function.DAY_OF_YEAR: calendar.date_part,
    Function.DAY_OF_WEEK: wary(calendar.date_part),
    Function.WEEKDAY: wary(calendar.date_part),
    Function.WEEK_OF_YEAR: wary(calendar.date_part),
    Function.HOUR: calendar.clock_part,
    Function.MINUTE: calendar.clock_part,
    Function.SECOND: calendar.clock_part,
    Function.UNIX_TIMESTAMP: moments.unix_timestamp,
    Function.UNIX_SECONDS: moments.scaled,
    Function.UNIX_MILLIS: moments.scaled,
    Function.UNIX_MICROS: moments.scaled,
    Function.SECONDS_TO_TIMESTAMP: moments.scaled,
    Function.MILLIS_TO_TIMESTAMP: moments.scaled,
    Function.MICROS_TO_TIMESTAMP: moments.scaled,
    Function.DAYS_AS_NUMBER: moments.scaled,
    Function.NUMBER_AS_DAYS: moments.scaled,
}


def find_kernel(function: Function, kinds: list[Kind]) -> Kernel | None:
    """Find the kernel for arguments of some kinds."""
    if function in _ANY_KIND:
        return _ANY_KIND[function]
    if function is Function.CONCAT and set(kinds) == {_T}:
        return text.concat
    if function in _ONE_WHOLE:
        return _ONE_WHOLE[function] if kinds == [_W] else None
    return KERNELS.get(function, {}).get(tuple(kinds))
