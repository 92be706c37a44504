"""Functions that SQL calls by name, each turned into a `Call` with the types that Spark gives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from instar.schema import Decimal, Primitive, Type
from instar.skipping.coercion import BINARY, DATE, DOUBLE, INT, LONG, STRING, TIMESTAMP, cast, round_type
from instar.skipping.expression import BOOLEAN, Call, Expression, Literal, Now
from instar.skipping.functions import Function, Mode
from instar.skipping.kinds import INTEGERS, name_of
from instar.skipping.sql import operators

if TYPE_CHECKING:
    from sqlglot import exp

    from instar.skipping.sql.parse import Reader
    from instar.skipping.sql.session import Session

__all__ = ["call_by_name"]

_Maker = Callable[[list[Expression], "Session"], Expression | None]


def call_by_name(name: str, args: list[exp.Expression], reader: Reader) -> Expression | None:
    """Make a call, or None if the function or the way it is called is not known."""
    maker = _MAKERS.get(name)
    if maker is None:
        return None
    try:
        return maker([reader.read(arg) for arg in args], reader.session)
    except (ValueError, IndexError):
        # Another number of arguments than the ways to call it that are known.
        return None


def _coalesce(args: list[Expression], session: Session) -> Expression | None:
    values = operators.unified(args, session)
    return None if values is None else Call(Function.COALESCE, tuple(values), values[0].type or BOOLEAN)


def _extreme(function: Function) -> _Maker:
    def make(args: list[Expression], session: Session) -> Expression | None:
        values = operators.unified(args, session)
        return None if values is None else Call(function, tuple(values), values[0].type or BOOLEAN)

    return make


def _nullif(args: list[Expression], session: Session) -> Expression | None:
    left, right = args
    equal = operators.binary(Function.EQUAL, left, right, session)
    null = Literal(None, left.type or BOOLEAN)
    return operators.case(Function.IF, [equal, null, left], session)


def _nvl2(args: list[Expression], session: Session) -> Expression | None:
    value, then, otherwise = args
    return operators.case(
        Function.IF, [Call(Function.IS_NOT_NULL, (value,), BOOLEAN), then, otherwise], session
    )


def _if(args: list[Expression], session: Session) -> Expression | None:
    condition, then, otherwise = args
    return operators.case(Function.IF, [condition, then, otherwise], session)


def _test(function: Function) -> _Maker:
    def make(args: list[Expression], session: Session) -> Expression | None:
        (value,) = args
        if function is Function.IS_NAN:
            value = cast(value, DOUBLE, session.mode, None) if name_of(value.type) != "float" else value
        return Call(function, (value,), BOOLEAN)

    return make


def _operator(function: Function, mode: Mode | None = None) -> _Maker:
    def make(args: list[Expression], session: Session) -> Expression | None:
        left, right = args
        if mode is Mode.TRY and not all(_is_plain_number(arg) for arg in args):
            return None
        return operators.binary(function, left, right, session, mode)

    return make


def _is_plain_number(value: Expression) -> bool:
    return isinstance(value.type, Decimal) or name_of(value.type) in (*INTEGERS, "float", "double")


def _unary(function: Function) -> _Maker:
    def make(args: list[Expression], session: Session) -> Expression | None:
        (value,) = args
        return operators.unary(function, value, session)

    return make


def _convert(type_: Type) -> _Maker:
    def make(args: list[Expression], session: Session) -> Expression | None:
        (value,) = args
        return cast(value, type_, session.mode, session.zone)

    return make


def _now(args: list[Expression], _: Session) -> Expression | None:
    return None if args else Now()


def _today(args: list[Expression], session: Session) -> Expression | None:
    return None if args else cast(Now(), DATE, session.mode, session.zone)


def _on_date(function: Function, type_: Type = INT) -> _Maker:
    def make(args: list[Expression], session: Session) -> Expression | None:
        (value,) = args
        date = _date(value, session)
        return None if date is None else Call(function, (date,), type_)

    return make


def _on_clock(function: Function) -> _Maker:
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


def _days(function: Function) -> _Maker:
    def make(args: list[Expression], session: Session) -> Expression | None:
        start, count = args
        date = _date(start, session)
        if date is None or name_of(count.type) not in ("tinyint", "smallint", "int"):
            return None
        return Call(function, (date, cast(count, INT, session.mode, None)), DATE)

    return make


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
    stamp = None if value.type == STRING else _stamp(value, session)
    return None if stamp is None else Call(Function.UNIX_SECONDS, (stamp,), LONG)


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


def _convert_zone(function: Function) -> _Maker:
    def make(args: list[Expression], session: Session) -> Expression | None:
        value, zone = args
        stamp = _stamp(value, session)
        return None if stamp is None or zone.type != STRING else Call(function, (stamp, zone), TIMESTAMP)

    return make


def _scaled(function: Function, source: Type, target: Type) -> _Maker:
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


def _substring(args: list[Expression], session: Session) -> Expression | None:
    value, start, *rest = args
    if not isinstance(start, Literal) or start.value not in (0, 1) or value.type not in (STRING, BINARY):
        return None
    if not rest:
        return value
    (size,) = rest
    if name_of(size.type) not in ("tinyint", "smallint", "int"):
        return None
    return Call(Function.PREFIX, (value, cast(size, INT, session.mode, None)), value.type)


def _left(args: list[Expression], session: Session) -> Expression | None:
    value, size = args
    return _substring([value, Literal(1, INT), size], session)


def _strings(function: Function) -> _Maker:
    def make(args: list[Expression], _: Session) -> Expression | None:
        left, right = args
        same = left.type == right.type and left.type in (STRING, BINARY)
        return Call(function, (left, right), BOOLEAN) if same else None

    return make


def _concat(args: list[Expression], _: Session) -> Expression | None:
    types = {arg.type for arg in args}
    return Call(Function.CONCAT, tuple(args), STRING) if types == {STRING} else None


def _length(args: list[Expression], _: Session) -> Expression | None:
    (value,) = args
    return Call(Function.LENGTH, (value,), INT) if value.type in (STRING, BINARY) else None


def _whole(function: Function) -> _Maker:
    def make(args: list[Expression], session: Session) -> Expression | None:
        (value,) = args
        if isinstance(value.type, Decimal):
            digits = min(value.type.precision - value.type.scale + 1, 38)
            return Call(function, (value,), Decimal(digits, 0))
        if name_of(value.type) not in (*INTEGERS, "float", "double"):
            return None
        inner = LONG if name_of(value.type) in INTEGERS else DOUBLE
        return Call(function, (cast(value, inner, session.mode, None),), LONG)

    return make


def _round(args: list[Expression], _: Session) -> Expression | None:
    value, *rest = args
    (scale,) = rest or [Literal(0, INT)]
    if not isinstance(scale, Literal) or not isinstance(scale.value, int):
        return None
    type_ = round_type(value.type, scale.value)
    return None if type_ is None else Call(Function.ROUND, (value, scale), type_)


def _sign(args: list[Expression], session: Session) -> Expression | None:
    (value,) = args
    if not _is_plain_number(value):
        return None
    return Call(Function.SIGN, (cast(value, DOUBLE, session.mode, None),), DOUBLE)


def _nanvl(args: list[Expression], _: Session) -> Expression | None:
    left, right = args
    return Call(Function.NANVL, (left, right), DOUBLE) if left.type == right.type == DOUBLE else None


_PARTS: Final[dict[str, _Maker]] = {
    "year": _on_date(Function.YEAR),
    "quarter": _on_date(Function.QUARTER),
    "month": _on_date(Function.MONTH),
    "day": _on_date(Function.DAY),
    "hour": _on_clock(Function.HOUR),
    "minute": _on_clock(Function.MINUTE),
}


_MAKERS: Final[dict[str, _Maker]] = {
    "coalesce": _coalesce,
    "nvl": _coalesce,
    "ifnull": _coalesce,
    "nullif": _nullif,
    "nvl2": _nvl2,
    "if": _if,
    "greatest": _extreme(Function.GREATEST),
    "least": _extreme(Function.LEAST),
    "isnull": _test(Function.IS_NULL),
    "isnotnull": _test(Function.IS_NOT_NULL),
    "isnan": _test(Function.IS_NAN),
    "abs": _unary(Function.ABS),
    "negative": _unary(Function.NEGATE),
    "mod": _operator(Function.REMAINDER),
    "pmod": _operator(Function.POSITIVE_REMAINDER),
    "try_add": _operator(Function.ADD, Mode.TRY),
    "try_subtract": _operator(Function.SUBTRACT, Mode.TRY),
    "try_multiply": _operator(Function.MULTIPLY, Mode.TRY),
    "try_divide": _operator(Function.DIVIDE, Mode.TRY),
    "now": _now,
    "current_timestamp": _now,
    "current_date": _today,
    "curdate": _today,
    "to_date": _convert(DATE),
    "date": _convert(DATE),
    "timestamp": _convert(TIMESTAMP),
    "to_timestamp": _convert(TIMESTAMP),
    "int": _convert(INT),
    "bigint": _convert(LONG),
    "double": _convert(DOUBLE),
    "string": _convert(STRING),
    "float": _convert(Primitive("float")),
    "smallint": _convert(Primitive("smallint")),
    "tinyint": _convert(Primitive("tinyint")),
    "boolean": _convert(BOOLEAN),
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
    "date_add": _days(Function.ADD_DAYS),
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
    "substring": _substring,
    "substr": _substring,
    "left": _left,
    "startswith": _strings(Function.STARTS_WITH),
    "endswith": _strings(Function.ENDS_WITH),
    "contains": _strings(Function.CONTAINS),
    "concat": _concat,
    "length": _length,
    "char_length": _length,
    "character_length": _length,
    "len": _length,
    "ceil": _whole(Function.CEIL),
    "ceiling": _whole(Function.CEIL),
    "floor": _whole(Function.FLOOR),
    "round": _round,
    "sign": _sign,
    "signum": _sign,
    "nanvl": _nanvl,
}
