"""Functions of dates and times that SQL calls by name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from instar.skipping.coercion import DATE, DOUBLE, INT, LONG, STRING, TIMESTAMP, cast, is_bad_zone
from instar.skipping.expression import BOOLEAN, Call, Expression, Literal, Now
from instar.skipping.functions import Function
from instar.skipping.kinds import INTEGERS, name_of
from instar.skipping.sql import operators

if TYPE_CHECKING:
    from instar.schema import Type
    from instar.skipping.sql.session import Maker, Session

__all__ = ["TIMES"]


def _now(args: list[Expression], _: Session) -> Expression | None:
    return None if args else Now()


def _today(args: list[Expression], session: Session) -> Expression | None:
    return None if args else cast(Now(), DATE, session.mode, session.zone)


def _on_date(function: Function, type_: Type = INT) -> Maker:
    def make(args: list[Expression], session: Session) -> Expression | None:
        (value,) = args
        date = _date(value, session)
        return None if date is None else Call(function, (date,), type_)

    return make


def _on_clock(function: Function) -> Maker:
    def make(args: list[Expression], session: Session) -> Expression | None:
        (value,) = args
        stamp = value if name_of(value.type) == "timestamp_ntz" else _stamp(value, session)
        return None if stamp is None else Call(function, (stamp,), INT, session.mode, session.zone)

    return make


def _date_part(args: list[Expression], session: Session) -> Expression | None:
    part, value = args
    word = part.value if isinstance(part, Literal) else None
    maker = _PARTS.get(word.lower()) if isinstance(word, str) else None
    return None if maker is None else maker([value], session)


def _date_trunc(args: list[Expression], session: Session) -> Expression | None:
    level, value = args
    stamp = _stamp(value, session)
    if stamp is None or level.type != STRING:
        return None
    return Call(Function.TRUNC_TIMESTAMP, (level, stamp), TIMESTAMP, session.mode, session.zone)


def _trunc(args: list[Expression], session: Session) -> Expression | None:
    value, level = args
    date = _date(value, session)
    return None if date is None or level.type != STRING else Call(Function.TRUNC_DATE, (date, level), DATE)


def _days(function: Function) -> Maker:
    def make(args: list[Expression], session: Session) -> Expression | None:
        start, count = args
        date = _date(start, session)
        if date is None or name_of(count.type) not in ("tinyint", "smallint", "int"):
            return None
        return Call(function, (date, cast(count, INT, session.mode, None)), DATE)

    return make


def _add(args: list[Expression], session: Session) -> Expression | None:
    """Add days to a date, or a number of some unit to a timestamp."""
    if len(args) == 2:  # noqa: PLR2004 -- a date and days
        return _days(Function.ADD_DAYS)(args, session)
    unit, count, value = args
    stamp = value if name_of(value.type) == "timestamp_ntz" else _stamp(value, session)
    if not (isinstance(unit, Literal) and isinstance(count, Literal) and isinstance(count.value, int)):
        return None
    word = str(unit.value).lower()
    step = operators.interval(str(count.value), word, word)
    if stamp is None or step is None:
        return None
    # Unlike an interval of many hours, many hours are no local days here.
    passing = replace(session, zone="UTC") if word in ("hour", "minute", "second") else session
    return operators.binary(Function.ADD, stamp, step, passing)


def _datediff(args: list[Expression], session: Session) -> Expression | None:
    end, start = (_date(arg, session) for arg in args)
    return None if end is None or start is None else Call(Function.DATE_DIFFERENCE, (end, start), INT)


def _months_between(args: list[Expression], session: Session) -> Expression | None:
    end, start = (_stamp(arg, session) for arg in args)
    if end is None or start is None:
        return None
    sides = (end, start, Literal(value=True, type=BOOLEAN))
    return Call(Function.MONTHS_BETWEEN, sides, DOUBLE, session.mode, session.zone)


def _unix_timestamp(args: list[Expression], session: Session) -> Expression | None:
    (value,) = args
    if value.type == STRING:
        return None
    # A local time is counted as it is, whatever the zone.
    stamp = value if name_of(value.type) == "timestamp_ntz" else _stamp(value, session)
    return None if stamp is None else Call(Function.UNIX_TIMESTAMP, (stamp,), LONG)


def _from_unixtime(args: list[Expression], session: Session) -> Expression | None:
    value, *rest = args
    (pattern,) = rest or [Literal("yyyy-MM-dd HH:mm:ss", STRING)]
    if name_of(value.type) not in INTEGERS or pattern.type != STRING:
        return None
    seconds = cast(value, LONG, session.mode, None)
    return Call(Function.FORMAT_UNIX_SECONDS, (seconds, pattern), STRING, session.mode, session.zone)


def _date_format(args: list[Expression], session: Session) -> Expression | None:
    value, pattern = args
    stamp = _stamp(value, session)
    if stamp is None or pattern.type != STRING:
        return None
    return Call(Function.FORMAT_TIMESTAMP, (stamp, pattern), STRING, session.mode, session.zone)


def _convert_zone(function: Function) -> Maker:
    def make(args: list[Expression], session: Session) -> Expression | None:
        value, zone = args
        stamp = _stamp(value, session)
        if stamp is None or zone.type != STRING or is_bad_zone(zone):
            return None
        return Call(function, (stamp, zone), TIMESTAMP)

    return make


def _scaled(function: Function, source: Type, target: Type) -> Maker:
    def make(args: list[Expression], session: Session) -> Expression | None:
        (value,) = args
        if value.type != source and not (source == LONG and name_of(value.type) in INTEGERS):
            return None
        return Call(function, (cast(value, source, session.mode, session.zone),), target)

    return make


def _date(value: Expression, session: Session) -> Expression | None:
    if name_of(value.type) not in ("date", "timestamp", "timestamp_ntz", "string"):
        return None
    return cast(value, DATE, session.mode, session.zone)


def _stamp(value: Expression, session: Session) -> Expression | None:
    if name_of(value.type) not in ("date", "timestamp", "timestamp_ntz", "string"):
        return None
    return cast(value, TIMESTAMP, session.mode, session.zone)


_PARTS: Final[dict[str, Maker]] = {
    "year": _on_date(Function.YEAR),
    "quarter": _on_date(Function.QUARTER),
    "month": _on_date(Function.MONTH),
    "day": _on_date(Function.DAY),
    "hour": _on_clock(Function.HOUR),
    "minute": _on_clock(Function.MINUTE),
    "week": _on_date(Function.WEEK_OF_YEAR),
    "doy": _on_date(Function.DAY_OF_YEAR),
    "dow": _on_date(Function.DAY_OF_WEEK),
    "dayofweek": _on_date(Function.DAY_OF_WEEK),
}


TIMES: Final[dict[str, Maker]] = {
    "now": _now,
    "current_timestamp": _now,
    "current_date": _today,
    "curdate": _today,
    "year": _on_date(Function.YEAR),
    "quarter": _on_date(Function.QUARTER),
    "month": _on_date(Function.MONTH),
    "day": _on_date(Function.DAY),
    "dayofmonth": _on_date(Function.DAY),
    "dayofyear": _on_date(Function.DAY_OF_YEAR),
    "dayofweek": _on_date(Function.DAY_OF_WEEK),
    "weekday": _on_date(Function.WEEKDAY),
    "weekofyear": _on_date(Function.WEEK_OF_YEAR),
    "last_day": _on_date(Function.LAST_DAY, DATE),
    "hour": _on_clock(Function.HOUR),
    "minute": _on_clock(Function.MINUTE),
    "second": _on_clock(Function.SECOND),
    "date_part": _date_part,
    "datepart": _date_part,
    "date_trunc": _date_trunc,
    "trunc": _trunc,
    "date_add": _add,
    "dateadd": _add,
    "timestampadd": _add,
    "date_sub": _days(Function.SUBTRACT_DAYS),
    "datediff": _datediff,
    "date_diff": _datediff,
    "add_months": _days(Function.ADD_MONTHS),
    "months_between": _months_between,
    "unix_timestamp": _unix_timestamp,
    "to_unix_timestamp": _unix_timestamp,
    "from_unixtime": _from_unixtime,
    "date_format": _date_format,
    "from_utc_timestamp": _convert_zone(Function.FROM_UTC),
    "to_utc_timestamp": _convert_zone(Function.TO_UTC),
    "unix_seconds": _scaled(Function.UNIX_SECONDS, TIMESTAMP, LONG),
    "unix_millis": _scaled(Function.UNIX_MILLIS, TIMESTAMP, LONG),
    "unix_micros": _scaled(Function.UNIX_MICROS, TIMESTAMP, LONG),
    "timestamp_seconds": _scaled(Function.SECONDS_TO_TIMESTAMP, LONG, TIMESTAMP),
    "timestamp_millis": _scaled(Function.MILLIS_TO_TIMESTAMP, LONG, TIMESTAMP),
    "timestamp_micros": _scaled(Function.MICROS_TO_TIMESTAMP, LONG, TIMESTAMP),
    "unix_date": _scaled(Function.DAYS_AS_NUMBER, DATE, INT),
    "date_from_unix_date": _scaled(Function.NUMBER_AS_DAYS, INT, DATE),
}
