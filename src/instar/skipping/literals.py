"""Texts of dates, timestamps, numbers and intervals as literals, where there is no doubt what they mean.

Spark reads many more spellings; what is not spelled in the plain way is left to it.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal as PyDecimal
from typing import Final

from instar.schema import Decimal, Type
from instar.skipping.exact import constant
from instar.skipping.expression import Literal
from instar.skipping.representation import INTEGERS, limits, name_of
from instar.skipping.zones import DAY, HOUR, MINUTE, SECOND, is_known, to_utc

__all__ = ["fold_string", "parse_date", "parse_day_time", "parse_timestamp", "parse_year_month"]

_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII)
_CLOCK = re.compile(
    r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?(?: ?(Z|UTC|[+-]\d\d:\d\d|[A-Z]\w+/\w+))?)?", re.ASCII
)
_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})", re.ASCII)
_EPOCH: Final = dt.date(1970, 1, 1)
_UNITS: Final = {"day": DAY, "hour": HOUR, "minute": MINUTE, "second": SECOND}
_EXTREMES: Final = {"nan": "nan", "inf": "inf", "infinity": "inf", "-inf": "-inf", "-infinity": "-inf"}


def parse_date(text: str) -> int | None:
    """Return the days since 1970 of a plain date: the first without a day or month, and without its time."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    try:
        return (dt.date(*(int(part or 1) for part in match.groups())) - _EPOCH).days
    except ValueError:
        return None


def parse_timestamp(text: str, zone: str | None) -> tuple[int, int] | None:
    """Return the instants that a plain timestamp may mean, in microseconds: two if the clock went back.

    Without a zone it is a local time, and has none of its own.
    """
    date, *time = re.split("[ T]", text, maxsplit=1)
    clock = _CLOCK.fullmatch(time[0] if time else "0:0")
    days = parse_date(date)
    if clock is None or days is None or (time and date.count("-") != 2):  # noqa: PLR2004 -- of a whole date
        return None
    hours, minutes, seconds = (int(clock[group] or 0) for group in (1, 2, 3))
    if hours >= 24 or minutes >= 60 or seconds >= 60:  # noqa: PLR2004 -- a clock
        return None
    micros = days * DAY + hours * HOUR + minutes * MINUTE + seconds * SECOND
    micros += int((clock[4] or "").ljust(6, "0"))
    if clock[5] and (zone is None or not is_known(clock[5])):
        return None
    zone = clock[5] or zone or "UTC"
    low, high = to_utc(constant(micros), constant(micros), zone, either=True)
    return int(low[0]), int(high[0])


def parse_day_time(text: str, first: str, last: str) -> int | None:
    """Return the microseconds of an interval such as `1 02:03:04` from day to second."""
    units = list(_UNITS)
    span = units[units.index(first) : units.index(last) + 1]
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    parts = re.split(r"[ :]", text)
    if len(parts) != len(span) or not all(re.fullmatch(r"[0-9]{1,9}", part) for part in parts[:-1]):
        return None
    fraction = re.fullmatch(r"([0-9]{1,9})(?:\.([0-9]{1,6}))?", parts[-1])
    if fraction is None or (fraction[2] and last != "second"):
        return None
    total = sum(int(part) * _UNITS[unit] for part, unit in zip(parts[:-1], span, strict=False))
    total += int(fraction[1]) * _UNITS[last] + int((fraction[2] or "").ljust(6, "0"))
    return sign * total


def parse_year_month(text: str, first: str, last: str) -> int | None:
    """Return the months of an interval such as `1-2` from year to month."""
    match = re.fullmatch(r"([+-])?([0-9]{1,6})(?:-([0-9]{1,2}))?", text)
    if match is None or (match[3] is not None) != (first != last):
        return None
    months = int(match[2]) * (12 if first == "year" else 1) + int(match[3] or 0)
    return -months if match[1] == "-" else months


def fold_string(text: str, type_: Type, zone: str | None) -> Literal | None:
    """Return a text as a value of a type, if it is plainly one."""
    name = name_of(type_)
    if name == "date":
        days = parse_date(text)
        return None if days is None else Literal(days, type_)
    if name == "timestamp_ntz" or (name == "timestamp" and zone is not None):
        return _instant(parse_timestamp(text, zone if name == "timestamp" else None), type_)
    if name in INTEGERS and _INTEGER.fullmatch(text):
        low, high = limits(type_)
        return Literal(int(text), type_) if low <= int(text) <= high else None
    if name == "double":
        special = _EXTREMES.get(text.lower())
        return Literal(float(special or text), type_) if special or _NUMBER.fullmatch(text) else None
    if name == "boolean" and text.lower() in ("true", "false"):
        return Literal(text.lower() == "true", type_)
    if isinstance(type_, Decimal) and _NUMBER.fullmatch(text):
        value = PyDecimal(text)
        fits = (
            -int(value.as_tuple().exponent) <= type_.scale
            and value.adjusted() < type_.precision - type_.scale
        )
        return Literal(value, type_) if fits else None
    return None


def _instant(found: tuple[int, int] | None, type_: Type) -> Literal | None:
    if found is None:
        return None
    low, high = found
    return Literal(low, type_, None if low == high else high)
