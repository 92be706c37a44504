"""Values and calls in the words of Spark SQL, as reports and errors show them.

For people, not for parsers: timestamps are in UTC, and the mode of a call shows only where it has a name.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as PyDecimal
from typing import TYPE_CHECKING, Any, Final

from instar.schema import format_type
from instar.skipping.functions import Function, Mode
from instar.skipping.kinds import is_day_time, is_year_month, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from instar.schema import Type

__all__ = ["word_call", "word_value"]

_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 -- UTC or a local time, as the type says
_TRIED: Final = {
    Function.ADD: "try_add",
    Function.SUBTRACT: "try_subtract",
    Function.MULTIPLY: "try_multiply",
    Function.DIVIDE: "try_divide",
    Function.REMAINDER: "try_mod",
}
_INFIX: Final = {
    Function.AND: "and",
    Function.OR: "or",
    Function.EQUAL: "=",
    Function.EQUAL_NULL_SAFE: "<=>",
    Function.LESS: "<",
    Function.LESS_EQUAL: "<=",
    Function.GREATER: ">",
    Function.GREATER_EQUAL: ">=",
    Function.ADD: "+",
    Function.SUBTRACT: "-",
    Function.MULTIPLY: "*",
    Function.DIVIDE: "/",
    Function.INTEGRAL_DIVIDE: "div",
    Function.REMAINDER: "%",
    Function.ADD_DAY_TIME: "+",
    Function.ADD_MONTHS_TO_TIMESTAMP: "+",
    Function.SUBTRACT_DATES: "-",
    Function.SUBTRACT_TIMESTAMPS: "-",
}
_NAMES: Final = {
    Function.IS_NAN: "isnan",
    Function.POSITIVE_REMAINDER: "pmod",
    Function.STARTS_WITH: "startswith",
    Function.ENDS_WITH: "endswith",
    Function.PREFIX: "left",
    Function.DAY_OF_YEAR: "dayofyear",
    Function.DAY_OF_WEEK: "dayofweek",
    Function.WEEK_OF_YEAR: "weekofyear",
    Function.TRUNC_DATE: "trunc",
    Function.TRUNC_TIMESTAMP: "date_trunc",
    Function.ADD_DAYS: "date_add",
    Function.SUBTRACT_DAYS: "date_sub",
    Function.DATE_DIFFERENCE: "datediff",
    Function.SECONDS_TO_TIMESTAMP: "timestamp_seconds",
    Function.MILLIS_TO_TIMESTAMP: "timestamp_millis",
    Function.MICROS_TO_TIMESTAMP: "timestamp_micros",
    Function.DAYS_AS_NUMBER: "unix_date",
    Function.NUMBER_AS_DAYS: "date_from_unix_date",
    Function.FORMAT_UNIX_SECONDS: "from_unixtime",
    Function.FORMAT_TIMESTAMP: "date_format",
    Function.FROM_UTC: "from_utc_timestamp",
    Function.TO_UTC: "to_utc_timestamp",
}


def word_value(value: Any, type_: Type) -> str:  # noqa: ANN401 -- a value of any type
    """Write a value of a type as a literal."""
    name = name_of(type_)
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case bytes():
            return f"x'{value.hex()}'"
        case PyDecimal():
            return f"{value:f}"
        case int() if name in ("date", "timestamp", "timestamp_ntz"):
            return _moment(value, name)
        case int() if is_day_time(type_):
            return f"interval '{PyDecimal(value) / 1_000_000:f}' second"
        case int() if is_year_month(type_):
            return f"interval '{value}' month"
    return repr(value)


def _moment(value: int, name: str) -> str:
    step = dt.timedelta(days=value) if name == "date" else dt.timedelta(microseconds=value)
    try:
        moment = _EPOCH + step
    except OverflowError:
        return str(value)  # outside of Python's calendar
    return f"{name}'{moment.date() if name == 'date' else moment}'"


def word_call(function: Function, args: Sequence[str], type_: Type, mode: Mode) -> str:
    """Write a call of a function, given its arguments in words."""
    if mode is Mode.TRY and function in _TRIED:
        return f"{_TRIED[function]}({', '.join(args)})"
    if function in _INFIX:
        return "(" + f" {_INFIX[function]} ".join(args) + ")"
    if function is Function.CAST:
        return f"{'try_cast' if mode is Mode.TRY else 'cast'}({args[0]} as {format_type(type_)})"
    if function in _SHAPES:
        return _SHAPES[function](args)
    return f"{_NAMES.get(function, function)}({', '.join(args)})"


def _case(args: Sequence[str]) -> str:
    pairs = zip(args[:-1:2], args[1::2], strict=True)
    branches = " ".join(f"when {condition} then {value}" for condition, value in pairs)
    return f"case {branches} else {args[-1]} end"


def _like(args: Sequence[str]) -> str:
    escape = f" escape {args[2]}" if args[2:] not in ([], ["'\\\\'"]) else ""
    return f"({args[0]} like {args[1]}{escape})"


_SHAPES: Final[dict[Function, Callable[[Sequence[str]], str]]] = {
    Function.NOT: lambda args: f"(not {args[0]})",
    Function.NEGATE: lambda args: f"(- {args[0]})",
    Function.IS_NULL: lambda args: f"({args[0]} is null)",
    Function.IS_NOT_NULL: lambda args: f"({args[0]} is not null)",
    Function.IN: lambda args: f"({args[0]} in ({', '.join(args[1:])}))",
    Function.CASE: _case,
    Function.LIKE: _like,
    Function.INTERVAL_DAYS: lambda args: f"extract(day from {args[0]})",
}
