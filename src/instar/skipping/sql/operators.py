"""Operators of SQL with the casts that Spark inserts for them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from instar.schema import Decimal, Primitive, Type
from instar.skipping.coercion import (
    DATE,
    DAY_TIME,
    DOUBLE,
    INT,
    LONG,
    TIMESTAMP,
    YEAR_MONTH,
    as_decimal,
    cast,
    common_type,
    comparison_type,
    is_number,
    unified,
)
from instar.skipping.expression import BOOLEAN, Anything, Call, Expression, Literal
from instar.skipping.functions import Function, Mode
from instar.skipping.literals import parse_day_time, parse_year_month
from instar.skipping.registry import load_row
from instar.skipping.representation import INTEGERS, is_day_time, is_year_month, limits, name_of

if TYPE_CHECKING:
    from instar.skipping.functions import Session

__all__ = ["binary", "case", "interval", "member", "negation"]

_COMPARISONS: Final = frozenset(
    [
        Function.EQUAL,
        Function.EQUAL_NULL_SAFE,
        Function.LESS,
        Function.LESS_EQUAL,
        Function.GREATER,
        Function.GREATER_EQUAL,
    ]
)
_DAY_TIME_UNITS: Final = ("day", "hour", "minute", "second")
_YEAR_MONTH_UNITS: Final = ("year", "month")


def binary(
    function: Function, left: Expression, right: Expression, session: Session, mode: Mode | None = None
) -> Expression:
    """Apply an operator to two sides."""
    mode = mode or session.mode
    if function in _COMPARISONS:
        sides = unified([left, right], session, comparison_type)
        if sides is None:
            return Anything(_shown(function, left, right, mode=mode), BOOLEAN)
        return Call(function, tuple(sides), BOOLEAN)
    found = _times(function, left, right, session) or _numbers(function, left, right, session, mode)
    return found or Anything(_shown(function, left, right, mode=mode))


def _shown(function: Function, *args: Expression, mode: Mode) -> str:
    """Say what is asked, though nothing follows from it."""
    return load_row(function).show([str(arg) for arg in args], mode)


def negation(value: Expression) -> Expression:
    """Apply NOT."""
    if isinstance(value, Call) and value.function is Function.IS_NULL:
        return Call(Function.IS_NOT_NULL, value.args, BOOLEAN)
    if value.type in (BOOLEAN, None):
        return Call(Function.NOT, (value,), BOOLEAN)
    return Anything(f"not {value}", BOOLEAN)


def member(args: list[Expression], session: Session) -> Expression:
    """Apply IN to a value and a list."""
    sides = unified(args, session)
    return Anything(f"{args[0]} in …", BOOLEAN) if sides is None else Call(Function.IN, tuple(sides), BOOLEAN)


def case(function: Function, parts: list[Expression], session: Session) -> Expression:
    """Choose between values, given as conditions and values in turn and an ELSE."""
    conditions = parts[:-1:2]
    values = unified([*parts[1:-1:2], parts[-1]], session)
    if values is None or any(condition.type not in (BOOLEAN, None) for condition in conditions):
        return Anything(str(function))
    args = [part for pair in zip(conditions, values[:-1], strict=True) for part in pair]
    return Call(function, (*args, values[-1]), _type(values[-1]))


def interval(text: str | None, first: str, last: str) -> Literal | None:
    """Read an interval of one family of units."""
    if text is None:
        return None
    if first in _DAY_TIME_UNITS and last in _DAY_TIME_UNITS:
        micros = parse_day_time(text, first, last)
        span = first if first == last else f"{first} to {last}"
        return None if micros is None else Literal(micros, Primitive(f"interval {span}"))
    if first in _YEAR_MONTH_UNITS and last in _YEAR_MONTH_UNITS:
        months = parse_year_month(text, first, last)
        span = first if first == last else f"{first} to {last}"
        return None if months is None else Literal(months, Primitive(f"interval {span}"))
    if first == last == "week" and re.fullmatch(r"-?[0-9]{1,6}", text):
        return Literal(int(text) * 7 * 86_400_000_000, Primitive("interval day"))
    return None


def _times(function: Function, left: Expression, right: Expression, session: Session) -> Expression | None:
    """Add and subtract days, months and times."""
    names = name_of(left.type), name_of(right.type)
    plus, minus = function is Function.ADD, function is Function.SUBTRACT
    if not (plus or minus):
        return None
    longer = _longer(left, right) if plus else None
    if longer is not None:
        return longer
    if plus and (names[1] in ("date", "timestamp", "timestamp_ntz")):
        left, right, names = right, left, names[::-1]
    if names[0] == "date" and names[1] in ("tinyint", "smallint", "int"):
        step = Function.ADD_DAYS if plus else Function.SUBTRACT_DAYS
        return Call(step, (left, cast(right, INT, session.mode, None)), DATE)
    if minus and names == ("date", "date"):
        return Call(Function.SUBTRACT_DATES, (left, right), Primitive("interval day"))
    if minus and set(names) <= {"date", "timestamp"}:
        sides = tuple(cast(side, TIMESTAMP, session.mode, session.zone) for side in (left, right))
        return Call(Function.SUBTRACT_TIMESTAMPS, sides, DAY_TIME, session.mode, session.zone)
    if is_day_time(right.type) or is_year_month(right.type):
        step_by = right if plus else _negated(right)
        return None if step_by is None else _step(left, step_by, session)
    return None


def _negated(step: Expression) -> Expression | None:
    return load_row(Function.NEGATE).bind((step,), Mode.UNKNOWN, None)


def _longer(left: Expression, right: Expression) -> Literal | None:
    """Add intervals, as in `interval 1 day 2 hours`."""
    if not isinstance(left, Literal) or not isinstance(right, Literal):
        return None
    for belongs, common in ((is_day_time, DAY_TIME), (is_year_month, YEAR_MONTH)):
        if belongs(left.type) and belongs(right.type):
            total = sum(side.value for side in (left, right) if isinstance(side.value, int))
            low, high = limits(common)
            type_ = left.type if left.type == right.type else common
            return Literal(total, type_) if low <= total <= high else None
    return None


def _step(start: Expression, step: Expression, session: Session) -> Expression | None:
    name = name_of(start.type)
    if is_year_month(step.type):
        if name == "date":
            return Call(Function.ADD_MONTHS, (start, step), DATE)
        if name in ("timestamp", "timestamp_ntz"):
            zone = session.zone if name == "timestamp" else "UTC"
            return Call(Function.ADD_MONTHS_TO_TIMESTAMP, (start, step), _type(start), session.mode, zone)
        return None
    if name == "date":
        if name_of(step.type) == "interval day":
            return Call(Function.ADD_DAYS, (start, Call(Function.INTERVAL_DAYS, (step,), INT)), DATE)
        start = cast(start, TIMESTAMP, session.mode, session.zone)
    zone = session.zone if name_of(start.type) == "timestamp" else "UTC"
    if name_of(start.type) in ("timestamp", "timestamp_ntz"):
        return Call(Function.ADD_DAY_TIME, (start, step), _type(start), session.mode, zone)
    return None


def _numbers(
    function: Function, left: Expression, right: Expression, session: Session, mode: Mode
) -> Expression | None:
    left, right = _null_as(left, right), _null_as(right, left)
    if not (is_number(left.type) and is_number(right.type)):
        return None
    names = {name_of(left.type), name_of(right.type)}
    decimal = isinstance(left.type, Decimal) or isinstance(right.type, Decimal)
    if decimal and not names & {"float", "double"}:
        return _decimals(function, left, right, mode)
    if function is Function.INTEGRAL_DIVIDE:
        target: Type | None = LONG if names <= set(INTEGERS) else None
    elif function is Function.DIVIDE:
        target = DOUBLE
    else:
        target = common_type(left.type, right.type, session.mode)
    if target is None:
        return None
    sides = tuple(cast(side, target, session.mode, None) for side in (left, right))
    return load_row(function).bind(sides, mode, None)


def _decimals(function: Function, left: Expression, right: Expression, mode: Mode) -> Expression | None:
    first, second = _decimal_of(left), _decimal_of(right)
    if first is None or second is None:
        return None
    sides = cast(left, first, Mode.ANSI, None), cast(right, second, Mode.ANSI, None)
    if function is Function.INTEGRAL_DIVIDE:
        return None
    return load_row(function).bind(sides, mode, None)


def _decimal_of(value: Expression) -> Decimal | None:
    """Return the decimal type of an operand: an integer literal has just the digits that it shows."""
    if isinstance(value, Literal) and isinstance(value.value, int) and name_of(value.type) in INTEGERS:
        return Decimal(len(str(abs(value.value))), 0)
    return as_decimal(value.type)


def _is_null(value: Expression) -> bool:
    return isinstance(value, Literal) and value.value is None


def _null_as(value: Expression, other: Expression) -> Expression:
    return Literal(None, other.type) if _is_null(value) and other.type is not None else value


def _type(value: Expression) -> Type:
    """Return a type that is known to be there."""
    return value.type if value.type is not None else BOOLEAN
