"""Functions of Catalyst by the names of their classes: which arguments they have, and which type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from instar.schema import Decimal, Primitive, Type
from instar.skipping.catalyst.nodes import Node, find_type
from instar.skipping.coercion import (
    BINARY,
    DATE,
    DAY_TIME,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    cast,
    decimal_result,
    is_bad_zone,
    is_number,
    round_type,
)
from instar.skipping.expression import BOOLEAN, Call, Expression, Literal
from instar.skipping.functions import Function, Mode
from instar.skipping.kinds import INTEGERS, is_day_time, is_year_month, name_of

__all__ = ["FUNCTIONS"]

_Args = tuple[Expression, ...]
_Typing = Callable[[Function, _Args], Type | None]


@dataclass(frozen=True)
class Signature:
    """What a class of Catalyst is called here, how its type follows from its arguments, and which it has."""

    function: Function
    typing: _Typing
    fields: tuple[str, ...] = ()
    """The fields that name its arguments, where these are not simply its children."""

    def make(self, node: Node, read: Callable[[Node], Expression]) -> Expression | None:
        """Make a call, or None if the arguments are not such as are known."""
        nodes = [node.child(field) for field in self.fields] if self.fields else list(node.children)
        args = tuple(read(child) for child in nodes if child is not None)
        if len(args) < len(nodes) or any(arg.type is None for arg in args):
            return None
        type_ = self.typing(self.function, args)
        given = node.fields.get("resultType")
        if type_ is None or (given is not None and find_type(given) != type_):
            return None
        mode = Mode.UNKNOWN if is_day_time(type_) or is_year_month(type_) else _mode(node)
        return Call(self.function, args, type_, mode, node.zone)


def _mode(node: Node) -> Mode:
    fails = node.fields.get("failOnError")
    if isinstance(fails, bool):
        return Mode.ANSI if fails else Mode.LEGACY
    return node.mode


def _always(result: Type, *wanted: str) -> _Typing:
    """Say that the type is always the same, for arguments of types with these names."""

    def typing(_: Function, args: _Args) -> Type | None:
        fits = len(args) == len(wanted) and all(
            _matches(arg, names) for arg, names in zip(args, wanted, strict=True)
        )
        return result if fits else None

    return typing


def _matches(arg: Expression, names: str) -> bool:
    kinds = names.split("|")
    return (
        name_of(arg.type) in kinds
        or ("day-time" in kinds and is_day_time(arg.type))
        or ("year-month" in kinds and is_year_month(arg.type))
    )


def _same(*wanted: str) -> _Typing:
    """Say that the type is that of the first argument."""

    def typing(function: Function, args: _Args) -> Type | None:
        return args[0].type if _always(BOOLEAN, *wanted)(function, args) is not None else None

    return typing


def _arithmetic(function: Function, args: _Args) -> Type | None:
    left, right = (arg.type for arg in args)
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return decimal_result(function, left, right)
    if left != right:
        return None
    if function is Function.INTEGRAL_DIVIDE:
        return LONG if left == LONG else None
    if function is Function.DIVIDE:
        return left if left == DOUBLE else None
    intervals = function in (Function.ADD, Function.SUBTRACT) and (is_day_time(left) or is_year_month(left))
    return left if is_number(left) or intervals else None


def _zoned(function: Function, args: _Args) -> Type | None:
    return None if is_bad_zone(args[1]) else _always(TIMESTAMP, "timestamp", "string")(function, args)


def _unary(_: Function, args: _Args) -> Type | None:
    (value,) = args
    known = is_number(value.type) or is_day_time(value.type) or is_year_month(value.type)
    return value.type if known else None


def _whole(_: Function, args: _Args) -> Type | None:
    (value,) = args
    if isinstance(value.type, Decimal):
        return Decimal(min(value.type.precision - value.type.scale + 1, 38), 0)
    return LONG if value.type in (LONG, DOUBLE) else None


def _round(_: Function, args: _Args) -> Type | None:
    value, digits = args
    if not isinstance(digits, Literal) or not isinstance(digits.value, int):
        return None
    return round_type(value.type, digits.value)


def _prefix(_: Function, args: _Args) -> Type | None:
    return args[0].type if args[0].type in (STRING, BINARY) and name_of(args[1].type) in INTEGERS else None


def _concat(_: Function, args: _Args) -> Type | None:
    return STRING if {arg.type for arg in args} == {STRING} else None


_INTS: Final = "tinyint|smallint|int"
_STAMPS: Final = "timestamp|timestamp_ntz"
_DATE_PARTS: Final = {
    "Year": Function.YEAR,
    "Quarter": Function.QUARTER,
    "Month": Function.MONTH,
    "DayOfMonth": Function.DAY,
    "DayOfYear": Function.DAY_OF_YEAR,
    "DayOfWeek": Function.DAY_OF_WEEK,
    "WeekDay": Function.WEEKDAY,
    "WeekOfYear": Function.WEEK_OF_YEAR,
}
_ARITHMETIC: Final = {
    "Add": Function.ADD,
    "Subtract": Function.SUBTRACT,
    "Multiply": Function.MULTIPLY,
    "Divide": Function.DIVIDE,
    "IntegralDivide": Function.INTEGRAL_DIVIDE,
    "Remainder": Function.REMAINDER,
    "Pmod": Function.POSITIVE_REMAINDER,
}


class _Substring(Signature):
    """`substring` from the first character; Spark counts from 1, and takes 0 for it too."""

    def make(self, node: Node, read: Callable[[Node], Expression]) -> Expression | None:
        text, start, size = (read(child) for child in node.children)
        if not isinstance(start, Literal) or start.value not in (0, 1):
            return None
        type_ = None if text.type is None else self.typing(self.function, (text, size))
        if type_ is None:
            return None
        if isinstance(size, Literal) and size.value == (1 << 31) - 1:
            return text
        return Call(self.function, (text, size), type_)


class _Like(Signature):
    """LIKE, with its escape character if that is known."""

    def make(self, node: Node, read: Callable[[Node], Expression]) -> Expression | None:
        args = tuple(read(child) for child in node.children)
        if [arg.type for arg in args] != [STRING, STRING]:
            return None
        escape = node.fields.get("escapeChar")
        given = (Literal(escape, STRING),) if isinstance(escape, str) and len(escape) == 1 else ()
        return Call(Function.LIKE, (*args, *given), BOOLEAN)


class _UnixTimestamp(Signature):
    """`unix_timestamp` of a timestamp, or of the beginning of a date."""

    def make(self, node: Node, read: Callable[[Node], Expression]) -> Expression | None:
        value = None if (child := node.child("timeExp")) is None else read(child)
        if value is None or name_of(value.type) not in ("date", "timestamp", "timestamp_ntz"):
            return None
        if name_of(value.type) == "date":
            value = cast(value, TIMESTAMP, Mode.UNKNOWN, node.zone)
        return Call(self.function, (value,), LONG)


def _text_test(_: Function, args: _Args) -> Type | None:
    types = {arg.type for arg in args}
    return BOOLEAN if types in ({STRING}, {BINARY}) else None


FUNCTIONS: Final[dict[str, Signature]] = {
    **{name: Signature(function, _arithmetic, ("left", "right")) for name, function in _ARITHMETIC.items()},
    "UnaryMinus": Signature(Function.NEGATE, _unary, ("child",)),
    "Abs": Signature(Function.ABS, _unary, ("child",)),
    "Signum": Signature(Function.SIGN, _same("double")),
    "Ceil": Signature(Function.CEIL, _whole),
    "Floor": Signature(Function.FLOOR, _whole),
    "Round": Signature(Function.ROUND, _round),
    "StartsWith": Signature(Function.STARTS_WITH, _text_test),
    "EndsWith": Signature(Function.ENDS_WITH, _text_test),
    "Contains": Signature(Function.CONTAINS, _text_test),
    "Like": _Like(Function.LIKE, _text_test),
    "Substring": _Substring(Function.PREFIX, _prefix),
    "Left": Signature(Function.PREFIX, _prefix, ("str", "len")),
    "Concat": Signature(Function.CONCAT, _concat),
    "Length": Signature(Function.LENGTH, _always(INT, "string|binary")),
    **{name: Signature(function, _always(INT, "date")) for name, function in _DATE_PARTS.items()},
    "Hour": Signature(Function.HOUR, _always(INT, _STAMPS), ("child",)),
    "Minute": Signature(Function.MINUTE, _always(INT, _STAMPS), ("child",)),
    "Second": Signature(Function.SECOND, _always(INT, _STAMPS), ("child",)),
    "TruncDate": Signature(Function.TRUNC_DATE, _always(DATE, "date", "string"), ("date", "format")),
    "TruncTimestamp": Signature(
        Function.TRUNC_TIMESTAMP, _always(TIMESTAMP, "string", "timestamp"), ("format", "timestamp")
    ),
    "LastDay": Signature(Function.LAST_DAY, _always(DATE, "date"), ("startDate",)),
    "DateAdd": Signature(Function.ADD_DAYS, _always(DATE, "date", _INTS), ("startDate", "days")),
    "DateSub": Signature(Function.SUBTRACT_DAYS, _always(DATE, "date", _INTS), ("startDate", "days")),
    "DateDiff": Signature(Function.DATE_DIFFERENCE, _always(INT, "date", "date"), ("endDate", "startDate")),
    "AddMonths": Signature(Function.ADD_MONTHS, _always(DATE, "date", _INTS), ("startDate", "numMonths")),
    "DateAddYMInterval": Signature(
        Function.ADD_MONTHS, _always(DATE, "date", "year-month"), ("date", "interval")
    ),
    "TimestampAddYMInterval": Signature(
        Function.ADD_MONTHS_TO_TIMESTAMP, _same(_STAMPS, "year-month"), ("timestamp", "interval")
    ),
    "TimestampAddInterval": Signature(
        Function.ADD_DAY_TIME, _same(_STAMPS, "day-time"), ("start", "interval")
    ),
    "SubtractTimestamps": Signature(
        Function.SUBTRACT_TIMESTAMPS, _always(DAY_TIME, "timestamp", "timestamp"), ("left", "right")
    ),
    "SubtractDates": Signature(
        Function.SUBTRACT_DATES, _always(Primitive("interval day"), "date", "date"), ("left", "right")
    ),
    "MonthsBetween": Signature(
        Function.MONTHS_BETWEEN,
        _always(DOUBLE, "timestamp", "timestamp", "boolean"),
        ("date1", "date2", "roundOff"),
    ),
    "ExtractANSIIntervalDays": Signature(Function.INTERVAL_DAYS, _always(INT, "day-time"), ("child",)),
    "FromUnixTime": Signature(
        Function.FORMAT_UNIX_SECONDS, _always(STRING, "bigint", "string"), ("sec", "format")
    ),
    "DateFormatClass": Signature(
        Function.FORMAT_TIMESTAMP, _always(STRING, "timestamp", "string"), ("left", "right")
    ),
    "FromUTCTimestamp": Signature(Function.FROM_UTC, _zoned, ("left", "right")),
    "ToUTCTimestamp": Signature(Function.TO_UTC, _zoned, ("left", "right")),
    "UnixTimestamp": _UnixTimestamp(Function.UNIX_TIMESTAMP, _always(LONG)),
    "ToUnixTimestamp": _UnixTimestamp(Function.UNIX_TIMESTAMP, _always(LONG)),
    "UnixSeconds": Signature(Function.UNIX_SECONDS, _always(LONG, "timestamp")),
    "UnixMillis": Signature(Function.UNIX_MILLIS, _always(LONG, "timestamp")),
    "UnixMicros": Signature(Function.UNIX_MICROS, _always(LONG, "timestamp")),
    "UnixDate": Signature(Function.DAYS_AS_NUMBER, _always(INT, "date")),
    "DateFromUnixDate": Signature(Function.NUMBER_AS_DAYS, _always(DATE, "int")),
    "SecondsToTimestamp": Signature(Function.SECONDS_TO_TIMESTAMP, _always(TIMESTAMP, "bigint|int")),
    "MillisToTimestamp": Signature(Function.MILLIS_TO_TIMESTAMP, _always(TIMESTAMP, "bigint|int")),
    "MicrosToTimestamp": Signature(Function.MICROS_TO_TIMESTAMP, _always(TIMESTAMP, "bigint|int")),
}
