"""Calls by name in SQL: functions of the registry, and shorter ways to write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from instar.schema import Primitive, Type
from instar.skipping.coercion import DATE, DOUBLE, INT, LONG, STRING, TIMESTAMP, cast, is_number
from instar.skipping.expression import BOOLEAN, Call, Expression, Literal, Now
from instar.skipping.functions import Function, Mode, Session
from instar.skipping.registry import BY_SQL, ROWS
from instar.skipping.representation import name_of
from instar.skipping.sql import operators

if TYPE_CHECKING:
    from sqlglot import exp

    from instar.skipping.sql.parse import SqlReader

__all__ = ["SHORTHANDS", "Shorthand", "call_by_name"]

_Make = Callable[[list[Expression], Session], Expression | None]


@dataclass(frozen=True)
class Shorthand:
    """A name in SQL for a call of another function, or of several."""

    make: _Make
    samples: tuple[str, ...]
    """Calls to try on Spark, as the rows of the registry have them."""


def call_by_name(name: str, args: list[exp.Expression], reader: SqlReader) -> Expression | None:
    """Make a call, or None if the function or the way it is called is not known."""
    shorthand = SHORTHANDS.get(name)
    if shorthand is None and name not in BY_SQL:
        return None
    read = [reader.read(arg) for arg in args]
    try:
        if shorthand is None:
            return _bound(name, read, reader.session)
        return shorthand.make(read, reader.session)
    except (ValueError, IndexError):
        # Another number of arguments than the ways to call it that are known.
        return None


def _bound(name: str, args: list[Expression], session: Session) -> Expression | None:
    """Call a function of the registry; those that are also operators take the types that these do."""
    row = BY_SQL[name]
    if row.name in (Function.REMAINDER, Function.POSITIVE_REMAINDER):
        left, right = args
        return operators.binary(Function(row.name), left, right, session)
    return row.bind(tuple(args), session.mode, session.zone, session)


def _now(args: list[Expression], _: Session) -> Expression | None:
    return None if args else Now()


def _today(args: list[Expression], session: Session) -> Expression | None:
    return None if args else cast(Now(), DATE, session.mode, session.zone)


def _nullif(args: list[Expression], session: Session) -> Expression | None:
    left, right = args
    equal = operators.binary(Function.EQUAL, left, right, session)
    null = Literal(None, left.type or BOOLEAN)
    return operators.case(Function.IF, [equal, null, left], session)


def _nvl2(args: list[Expression], session: Session) -> Expression | None:
    value, then, otherwise = args
    given = Call(Function.IS_NOT_NULL, (value,), BOOLEAN)
    return operators.case(Function.IF, [given, then, otherwise], session)


def _if(args: list[Expression], session: Session) -> Expression | None:
    condition, then, otherwise = args
    return operators.case(Function.IF, [condition, then, otherwise], session)


def _decode(args: list[Expression], session: Session) -> Expression | None:
    """Choose by the value of the first argument, where null equals null.

    Without a default it is not followed: Spark takes that for a null of type string, and casts to it.
    """
    value, *parts = args
    if len(args) % 2 or not parts[1:]:
        return None
    parts[:-1:2] = [operators.binary(Function.EQUAL_NULL_SAFE, value, own, session) for own in parts[:-1:2]]
    return operators.case(Function.CASE, parts, session)


def _equal_null(args: list[Expression], session: Session) -> Expression | None:
    left, right = args
    return operators.binary(Function.EQUAL_NULL_SAFE, left, right, session)


def _zero_if_null(args: list[Expression], session: Session) -> Expression | None:
    (value,) = args
    return _bound("coalesce", [value, Literal(0, INT)], session)


def _null_if_zero(args: list[Expression], session: Session) -> Expression | None:
    (value,) = args
    return _nullif([value, Literal(0, INT)], session)


def _date_part(args: list[Expression], session: Session) -> Expression | None:
    part, value = args
    word = part.value if isinstance(part, Literal) else None
    name = _PARTS.get(word.lower()) if isinstance(word, str) else None
    return None if name is None else _bound(name, [value], session)


def _log(args: list[Expression], session: Session) -> Expression | None:
    """Take the logarithm, to base e unless there is another."""
    return _bound("ln" if len(args) == 1 else "log", args, session)


def _add(args: list[Expression], session: Session) -> Expression | None:
    """Add days to a date, or a number of some unit to a timestamp."""
    if len(args) == 2:  # noqa: PLR2004 -- a date and days
        return _bound("date_add", args, session)
    unit, count, value = args
    if not (isinstance(unit, Literal) and isinstance(count, Literal) and isinstance(count.value, int)):
        return None
    if name_of(value.type) not in ("date", "timestamp", "timestamp_ntz", "string"):
        return None
    local = name_of(value.type) == "timestamp_ntz"
    stamp = value if local else cast(value, TIMESTAMP, session.mode, session.zone)
    word = str(unit.value).lower()
    step = operators.interval(str(count.value), word, word)
    if step is None:
        return None
    # Unlike an interval of many hours, many hours are no local days here.
    passing = replace(session, zone="UTC") if word in ("hour", "minute", "second") else session
    return operators.binary(Function.ADD, stamp, step, passing)


def _tried(function: Function) -> Shorthand:
    def make(args: list[Expression], session: Session) -> Expression | None:
        left, right = args
        numbers = all(is_number(arg.type) for arg in args)
        return operators.binary(function, left, right, session, Mode.TRY) if numbers else None

    samples = tuple(each for each in ROWS[function].samples if "try_" in each)
    return Shorthand(make, samples)


def _cast(type_: Type, sample: str) -> Shorthand:
    def make(args: list[Expression], session: Session) -> Expression | None:
        (value,) = args
        return cast(value, type_, session.mode, session.zone)

    return Shorthand(make, (sample,))


def _read(type_: Type, *samples: str, mode: Mode | None = None) -> Shorthand:
    """Make a shorthand that casts, or reads a string by a pattern."""

    def make(args: list[Expression], session: Session) -> Expression | None:
        read: Expression | None = args[0]
        if len(args) > 1:
            read = ROWS["get_timestamp"].bind(tuple(args), mode or session.mode, session.zone)
        return None if read is None else cast(read, type_, mode or session.mode, session.zone)

    return Shorthand(make, samples)


_PARTS: Final = {
    **{name: name for name in ("year", "quarter", "month", "day", "hour", "minute", "dayofweek")},
    "week": "weekofyear",
    "doy": "dayofyear",
    "dow": "dayofweek",
}
"""What EXTRACT takes, and the functions that take it."""

_NOW: Final = ("boolean: ({timestamp} < now())", "boolean: ({timestamp} < current_timestamp())")
_TODAY: Final = ("boolean: ({date} < current_date())", "boolean: ({date} < curdate())")
_ADDED: Final = (
    *("timestamp: dateadd(#unit, #n, {timestamp})", "timestamp: timestampadd(month, #n, {timestamp})"),
    *("timestamp: date_add(#unit, #n, {timestamp})", "date: dateadd({date}, #n)"),
)
_PART: Final = ("int: date_part('dow', {timestamp})", "int: datepart('week', {date})")
_DECODED: Final = (
    "string: decode({int}, {int}, 'a', {int}, 'b', 'c')",
    "int: decode({string}, {string}, {int}, {int})",
)

SHORTHANDS: Final[dict[str, Shorthand]] = {
    **dict.fromkeys(("now", "current_timestamp"), Shorthand(_now, _NOW)),
    **dict.fromkeys(("current_date", "curdate"), Shorthand(_today, _TODAY)),
    "nullif": Shorthand(_nullif, ("int: nullif({int}, {int})", "double: nullif({double}, {double})")),
    "nvl2": Shorthand(_nvl2, ("int: nvl2({string}, {int}, {int})",)),
    "if": Shorthand(_if, ("int: if({boolean}, {int}, {int})",)),
    "decode": Shorthand(_decode, _DECODED),
    "equal_null": Shorthand(_equal_null, ("boolean: equal_null({int}, {int})",)),
    "zeroifnull": Shorthand(_zero_if_null, ("int: zeroifnull({int})", "double: zeroifnull({double})")),
    "nullifzero": Shorthand(_null_if_zero, ("int: nullifzero({int})",)),
    **dict.fromkeys(("date_part", "datepart"), Shorthand(_date_part, _PART)),
    "log": Shorthand(_log, ("double: log({double})", "double: log({int})")),
    **dict.fromkeys(("date_add", "dateadd", "timestampadd"), Shorthand(_add, _ADDED)),
    "try_add": _tried(Function.ADD),
    "try_subtract": _tried(Function.SUBTRACT),
    "try_multiply": _tried(Function.MULTIPLY),
    "try_divide": _tried(Function.DIVIDE),
    "try_mod": _tried(Function.REMAINDER),
    "to_date": _read(DATE, "date: to_date({timestamp})", "date: to_date({string})"),
    "try_to_date": _read(DATE, "date: try_to_date({string})", mode=Mode.TRY),
    "date": _cast(DATE, "date: date({timestamp})"),
    "timestamp": _cast(TIMESTAMP, "timestamp: timestamp({date})"),
    "to_timestamp": _read(TIMESTAMP, "timestamp: to_timestamp({date})", "timestamp: to_timestamp({string})"),
    "try_to_timestamp": _read(TIMESTAMP, "timestamp: try_to_timestamp({string}, '#format')", mode=Mode.TRY),
    "int": _cast(INT, "int: int({double})"),
    "bigint": _cast(LONG, "bigint: bigint({double})"),
    "double": _cast(DOUBLE, "double: double({bigint})"),
    "string": _cast(STRING, "string: string({date})"),
    "float": _cast(Primitive("float"), "float: float({double})"),
    "smallint": _cast(Primitive("smallint"), "int: cast(smallint({int}) as int)"),
    "tinyint": _cast(Primitive("tinyint"), "tinyint: tinyint({int})"),
    "boolean": _cast(BOOLEAN, "boolean: boolean({int})"),
}
"""Names that SQL has besides those of the registry."""
