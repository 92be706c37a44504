"""Functions of dates, times and intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from instar.schema import Primitive
from instar.skipping.coercion import DATE, DAY_TIME, DOUBLE, INT, LONG, STRING, TIMESTAMP, is_bad_zone
from instar.skipping.expression import BOOLEAN, Literal
from instar.skipping.functions import Function
from instar.skipping.kernels import calendar, formats, moments, parsing
from instar.skipping.kernels.outcome import wary
from instar.skipping.registry.row import (
    BIGINT_ARG,
    DATE_ARG,
    INT_ARG,
    LOCAL_ARG,
    STAMP_ARG,
    STRING_ARG,
    Param,
    Row,
    first_type,
)
from instar.skipping.representation import Representation
from instar.skipping.zones import DAY, HOUR, MINUTE, SECOND, to_local, to_utc

if TYPE_CHECKING:
    from instar.schema import Type
    from instar.skipping.expression import Expression
    from instar.skipping.kernels.outcome import Kernel

__all__ = ["TIMES"]

_W, _T, _B = Representation.WHOLE, Representation.TEXT, Representation.TRUTH
_DAY_TIME_ARG: Final = Param(("day-time",))
_MONTHS_ARG: Final = Param(("year-month",))
_EXACT_STAMP: Final = Param(("timestamp",))
_LONG_ARG: Final = Param(("bigint",), dict.fromkeys(("tinyint", "smallint", "int"), LONG))
_STEPS: Final = Param((*INT_ARG.families, *_MONTHS_ARG.families))


def _zoned(args: tuple[Expression, ...]) -> Type | None:
    return None if is_bad_zone(args[1]) else TIMESTAMP


def _part(name: str, class_: str, kernel: Kernel, *samples: str, also: tuple[str, ...] = ()) -> Row:
    """Make the row of a part of a date."""
    names = (name, *also)
    return Row(
        name,
        INT,
        (DATE_ARG,),
        {(_W,): kernel},
        sql=names,
        catalyst=(class_,),
        samples=(*(f"int: {own}({{date}})" for own in names), f"int: {name}({{timestamp}})", *samples),
    )


def _clock(name: str, class_: str, unit: int, count: int) -> Row:
    """Make the row of a part of a time."""
    return Row(
        name,
        INT,
        (LOCAL_ARG,),
        {(_W,): calendar.clock_part(unit, count)},
        sql=(name,),
        catalyst=(f"{class_}(child)",),
        samples=(f"int: {name}({{timestamp}})", f"int: {name}({{timestamp_ntz}})"),
    )


def _scale(name: str, param: Param, type_: Type, kernel: Kernel, sample: str, class_: str) -> Row:
    """Make the row of a change between a time and a number."""
    return Row(name, type_, (param,), {(_W,): kernel}, sql=(name,), catalyst=(class_,), samples=(sample,))


TIMES: Final = (
    _part("year", "Year", calendar.year, "int: extract(year from {timestamp})"),
    _part("quarter", "Quarter", calendar.cyclic(lambda days: calendar.months_of(days) // 3, 4)),
    _part("month", "Month", calendar.cyclic(calendar.months_of, 12)),
    _part("day", "DayOfMonth", calendar.day_of_month, also=("dayofmonth",)),
    _part("dayofyear", "DayOfYear", calendar.day_of_year, "int: extract(doy from {date})"),
    _part(
        "dayofweek",
        "DayOfWeek",
        wary(calendar.cyclic(lambda days: days + 4, 7)),
        "int: date_part('dow', {timestamp})",
        "int: datepart('dayofweek', {date})",
    ),
    _part("weekday", "WeekDay", wary(calendar.cyclic(lambda days: days + 3, 7, first=0))),
    _part("weekofyear", "WeekOfYear", wary(calendar.week_of_year), "int: extract(week from {timestamp})"),
    _clock("hour", "Hour", HOUR, 24),
    _clock("minute", "Minute", MINUTE, 60),
    _clock("second", "Second", SECOND, 60),
    Row(
        "trunc",
        DATE,
        (DATE_ARG, STRING_ARG),
        {(_W, _T): wary(calendar.trunc_date)},
        sql=("trunc",),
        catalyst=("TruncDate(date, format)",),
        samples=("date: trunc({date}, '#level')",),
    ),
    Row(
        "date_trunc",
        TIMESTAMP,
        (STRING_ARG, STAMP_ARG),
        {(_T, _W): wary(calendar.trunc_timestamp)},
        sql=("date_trunc",),
        catalyst=("TruncTimestamp(format, timestamp)",),
        samples=("timestamp: date_trunc('#level', {timestamp})", "timestamp: date_trunc('day', {timestamp})"),
    ),
    Row(
        "make_date",
        DATE,
        (INT_ARG, INT_ARG, INT_ARG),
        {(_W, _W, _W): calendar.make_date},
        sql=("make_date",),
        catalyst=("MakeDate(year, month, day)",),
        samples=(
            *("date: make_date({int}, 2, #n)", "date: make_date(2024, #n, {int})"),
            *(
                "date: make_date(year({date}), month({date}), 1)",
                "date: make_date(year({date}), 2, day({date}))",
            ),
        ),
    ),
    Row(
        "last_day",
        DATE,
        (DATE_ARG,),
        {(_W,): wary(calendar.last_day)},
        sql=("last_day",),
        catalyst=("LastDay(startDate)",),
        samples=("date: last_day({date})",),
    ),
    Row(
        Function.ADD_DAYS,
        DATE,
        (DATE_ARG, INT_ARG),
        {(_W, _W): wary(moments.add_days)},
        sql=("date_add",),
        catalyst=("DateAdd(startDate, days)",),
        samples=("date: date_add({date}, #n)", "date: date_add({date}, {int})", "date: ({date} + #n)"),
    ),
    Row(
        Function.SUBTRACT_DAYS,
        DATE,
        (DATE_ARG, INT_ARG),
        {(_W, _W): wary(moments.subtract_days)},
        sql=("date_sub",),
        catalyst=("DateSub(startDate, days)",),
        samples=("date: date_sub({date}, #n)", "date: ({date} - interval '#n' day)"),
    ),
    Row(
        "datediff",
        INT,
        (DATE_ARG, DATE_ARG),
        {(_W, _W): wary(moments.days_between)},
        sql=("datediff", "date_diff"),
        catalyst=("DateDiff(endDate, startDate)",),
        samples=("int: datediff({date}, {date})", "int: date_diff({timestamp}, {date})"),
    ),
    Row(
        Function.SUBTRACT_DATES,
        Primitive("interval day"),
        (Param(("date",)), Param(("date",))),
        {(_W, _W): wary(moments.days_between)},
        catalyst=("SubtractDates(left, right)",),
        infix="-",
        samples=("boolean: ({date} - {date} > interval '#n' day)",),
    ),
    Row(
        Function.ADD_MONTHS,
        DATE,
        (DATE_ARG, _STEPS),
        {(_W, _W): wary(moments.add_months)},
        sql=("add_months",),
        catalyst=("AddMonths(startDate, numMonths)", "DateAddYMInterval(date, interval)"),
        samples=(
            *("date: add_months({date}, #n)", "date: add_months({date}, {int})"),
            "date: ({date} + interval '#n' month)",
        ),
    ),
    Row(
        Function.ADD_MONTHS_TO_TIMESTAMP,
        first_type,
        (LOCAL_ARG, _MONTHS_ARG),
        {(_W, _W): wary(moments.add_months_to_timestamp)},
        catalyst=("TimestampAddYMInterval(timestamp, interval)",),
        infix="+",
        samples=(
            *(
                "timestamp: ({timestamp} + interval '#n' month)",
                "timestamp: timestampadd(month, #n, {timestamp})",
            ),
            "timestamp_ntz: ({timestamp_ntz} + interval '#n' month)",
        ),
    ),
    Row(
        Function.ADD_DAY_TIME,
        first_type,
        (LOCAL_ARG, _DAY_TIME_ARG),
        {(_W, _W): wary(moments.add_day_time)},
        catalyst=("TimestampAddInterval(start, interval)",),
        infix="+",
        samples=(
            *(
                "timestamp: ({timestamp} + interval '#n' #unit)",
                "timestamp: ({timestamp} - interval '#n' day)",
            ),
            *(
                "timestamp: dateadd(#unit, #n, {timestamp})",
                "timestamp: ({timestamp} - interval #n day #n hours)",
            ),
            "timestamp_ntz: ({timestamp_ntz} + interval '#n' #unit)",
        ),
    ),
    Row(
        Function.SUBTRACT_TIMESTAMPS,
        DAY_TIME,
        (_EXACT_STAMP, _EXACT_STAMP),
        {(_W, _W): wary(moments.between)},
        catalyst=("SubtractTimestamps(left, right)",),
        infix="-",
        samples=("boolean: ({timestamp} - {timestamp} > interval '#n' day)",),
    ),
    Row(
        "months_between",
        DOUBLE,
        (STAMP_ARG, STAMP_ARG, Param(("boolean",))),
        {(_W, _W, _B): wary(moments.months_between)},
        sql=("months_between",),
        catalyst=("MonthsBetween(date1, date2, roundOff)",),
        defaults=(Literal(value=True, type=BOOLEAN),),
        samples=(
            "double: months_between({timestamp}, {timestamp})",
            "double: months_between({date}, {date})",
        ),
    ),
    Row(
        Function.INTERVAL_DAYS,
        INT,
        (_DAY_TIME_ARG,),
        {(_W,): moments.towards_zero(DAY)},
        catalyst=("ExtractANSIIntervalDays(child)",),
        shown="extract(day from {})",
        samples=("date: ({date} - interval '#n' day)",),
    ),
    Row(
        "unix_timestamp",
        LONG,
        (Param(("timestamp", "timestamp_ntz"), {"date": TIMESTAMP}),),
        {(_W,): moments.towards_zero(SECOND)},
        sql=("unix_timestamp", "to_unix_timestamp"),
        samples=(
            *("bigint: unix_timestamp({timestamp})", "bigint: unix_timestamp({timestamp_ntz})"),
            *("bigint: to_unix_timestamp({timestamp})", "bigint: unix_timestamp({date})"),
        ),
    ),
    _scale(
        *("unix_seconds", _EXACT_STAMP, LONG, moments.floored(SECOND)),
        *("bigint: unix_seconds({timestamp})", "UnixSeconds"),
    ),
    _scale(
        *("unix_millis", _EXACT_STAMP, LONG, moments.floored(1000)),
        *("bigint: unix_millis({timestamp})", "UnixMillis"),
    ),
    _scale(
        *(Function.UNIX_MICROS, _EXACT_STAMP, LONG, moments.times(1)),
        *("bigint: unix_micros({timestamp})", "UnixMicros"),
    ),
    _scale(
        *("timestamp_seconds", BIGINT_ARG, TIMESTAMP, moments.times(SECOND)),
        *("timestamp: timestamp_seconds({bigint})", "SecondsToTimestamp"),
    ),
    _scale(
        *("timestamp_millis", BIGINT_ARG, TIMESTAMP, moments.times(1000)),
        *("timestamp: timestamp_millis({bigint})", "MillisToTimestamp"),
    ),
    _scale(
        *(Function.MICROS_TO_TIMESTAMP, BIGINT_ARG, TIMESTAMP, moments.times(1)),
        *("timestamp: timestamp_micros({bigint})", "MicrosToTimestamp"),
    ),
    _scale("unix_date", Param(("date",)), INT, moments.times(1), "int: unix_date({date})", "UnixDate"),
    _scale(
        *("date_from_unix_date", Param(("int",)), DATE, moments.times(1)),
        *("date: date_from_unix_date({int})", "DateFromUnixDate"),
    ),
    Row(
        "from_unixtime",
        STRING,
        (_LONG_ARG, STRING_ARG),
        {(_W, _T): formats.format_seconds},
        sql=("from_unixtime",),
        catalyst=("FromUnixTime(sec, format)",),
        defaults=(Literal("yyyy-MM-dd HH:mm:ss", STRING),),
        samples=("string: from_unixtime({bigint})", "string: from_unixtime({bigint}, '#format')"),
    ),
    Row(
        "date_format",
        STRING,
        (STAMP_ARG, STRING_ARG),
        {(_W, _T): wary(formats.format_timestamp)},
        sql=("date_format",),
        catalyst=("DateFormatClass(left, right)",),
        samples=("string: date_format({timestamp}, '#format')", "string: date_format({date}, '#format')"),
    ),
    Row(
        "get_timestamp",
        TIMESTAMP,
        (STRING_ARG, STRING_ARG),
        {(_T, _T): parsing.read_by_pattern},
        shown="to_timestamp({}, {})",
        samples=(
            "timestamp: to_timestamp({string}, '#format')",
            "date: to_date({string}, '#format')",
            "date: to_date('2024-02-29', 'yyyy-MM-dd')",
        ),
    ),
    Row(
        "from_utc_timestamp",
        _zoned,
        (STAMP_ARG, STRING_ARG),
        {(_W, _T): wary(moments.convert_zone(to_local))},
        sql=("from_utc_timestamp",),
        catalyst=("FromUTCTimestamp(left, right)",),
        samples=(
            "timestamp: from_utc_timestamp({timestamp}, '#zone')",
            "timestamp: from_utc_timestamp({timestamp}, 'Europe/Berlin')",
        ),
    ),
    Row(
        "to_utc_timestamp",
        _zoned,
        (STAMP_ARG, STRING_ARG),
        {(_W, _T): wary(moments.convert_zone(to_utc))},
        sql=("to_utc_timestamp",),
        catalyst=("ToUTCTimestamp(left, right)",),
        samples=(
            "timestamp: to_utc_timestamp({timestamp}, '#zone')",
            "timestamp: to_utc_timestamp({timestamp}, 'Europe/Berlin')",
        ),
    ),
)
