"""Types of expressions, and the casts that Spark inserts so that both sides of an operator have the same.

What Spark would do with less common pairs of types is not guessed: the answer is then None, and the
expression becomes `Anything`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from instar.schema import Decimal, Primitive, Type
from instar.schema.primitives import PRIMITIVE_ROWS
from instar.schema.types import MAX_PRECISION
from instar.skipping.expression import BOOLEAN, Anything, Call, Expression, Literal
from instar.skipping.functions import Function, Mode, Session
from instar.skipping.literals import fold_string
from instar.skipping.representation import INTEGERS, is_day_time, is_year_month, limits, name_of
from instar.skipping.zones import is_known

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "BINARY",
    "DATE",
    "DAY_TIME",
    "DOUBLE",
    "INT",
    "LONG",
    "STRING",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "YEAR_MONTH",
    "as_decimal",
    "cast",
    "common_type",
    "comparison_type",
    "decimal_result",
    "is_bad_zone",
    "is_number",
    "round_type",
    "unified",
    "wider_decimal",
]

INT: Final = Primitive("int")
LONG: Final = Primitive("bigint")
DOUBLE: Final = Primitive("double")
STRING: Final = Primitive("string")
BINARY: Final = Primitive("binary")
DATE: Final = Primitive("date")
TIMESTAMP: Final = Primitive("timestamp")
TIMESTAMP_NTZ: Final = Primitive("timestamp_ntz")
DAY_TIME: Final = Primitive("interval day to second")
YEAR_MONTH: Final = Primitive("interval year to month")

_DIGITS: Final = {row.name: row.digits for row in PRIMITIVE_ROWS.values() if row.digits}
_MIN_SCALE: Final = 6
_TIMES: Final = ("date", "timestamp_ntz", "timestamp")


def is_number(type_: Type | None) -> bool:
    """Tell whether a type is numeric."""
    return isinstance(type_, Decimal) or name_of(type_) in (*INTEGERS, "float", "double")


def is_bad_zone(zone: Expression) -> bool:
    """Tell whether a time zone is written down that may be none: Spark may fail before it sees a row."""
    return isinstance(zone, Literal) and isinstance(zone.value, str) and not is_known(zone.value)


def cast(expression: Expression, type_: Type, mode: Mode, zone: str | None) -> Expression:
    """Cast to a type; a string literal that is plainly a value of it becomes that value."""
    if expression.type == type_:
        return expression
    if isinstance(expression, Literal):
        if expression.value is None:
            return Literal(None, type_)
        if isinstance(expression.value, str) and name_of(expression.type) == "string":
            folded = fold_string(expression.value, type_, zone)
            if folded is not None:
                return folded
        if name_of(expression.type) in INTEGERS and name_of(type_) in INTEGERS:
            low, high = limits(type_)
            if isinstance(expression.value, int) and low <= expression.value <= high:
                return Literal(expression.value, type_)
    if expression.type is None:
        return Anything(f"cast({expression})", type_)
    return Call(Function.CAST, (expression,), type_, mode, zone)


def as_decimal(type_: Type | None) -> Decimal | None:
    """Return the decimal type that holds all values of an integer type."""
    if isinstance(type_, Decimal):
        return type_
    digits = _DIGITS.get(name_of(type_))
    return None if digits is None else Decimal(digits, 0)


def wider_decimal(left: Decimal, right: Decimal) -> Decimal | None:
    """Return the type that holds the values of both exactly, if there is one."""
    scale = max(left.scale, right.scale)
    digits = max(left.precision - left.scale, right.precision - right.scale)
    return Decimal(digits + scale, scale) if digits + scale <= MAX_PRECISION else None


def common_type(left: Type | None, right: Type | None, mode: Mode) -> Type | None:
    """Return the type in which values are listed or chosen between."""
    if left is None or right is None:
        return None
    if left == right:
        return left
    names = name_of(left), name_of(right)
    if all(name in INTEGERS for name in names):
        return max((left, right), key=lambda type_: INTEGERS[name_of(type_)])
    if is_number(left) and is_number(right):
        return _common_number(left, right, mode)
    if all(name in _TIMES for name in names):
        return max((left, right), key=lambda type_: _TIMES.index(name_of(type_)))
    if is_day_time(left) and is_day_time(right):
        return DAY_TIME
    if is_year_month(left) and is_year_month(right):
        return YEAR_MONTH
    if "string" in names and mode is Mode.ANSI:
        other = right if names[0] == "string" else left
        if name_of(other) in INTEGERS:
            return LONG
        if is_number(other):
            return DOUBLE
        if other == BOOLEAN or name_of(other) in _TIMES:
            return other
    return None


def comparison_type(left: Type | None, right: Type | None, mode: Mode) -> Type | None:
    """Return the type in which two sides are compared: a date and a string as dates, in legacy mode too."""
    names = name_of(left), name_of(right)
    if "string" in names and set(names) & {"date", "timestamp"}:
        return right if names[0] == "string" else left
    return common_type(left, right, mode)


def unified(
    args: list[Expression],
    session: Session,
    find_type: Callable[[Type | None, Type | None, Mode], Type | None] = common_type,
) -> list[Expression] | None:
    """Cast expressions to the type that they have in common, if they have one."""
    typed = [arg.type for arg in args if not (isinstance(arg, Literal) and arg.value is None)]
    common: Type | None = typed[0] if typed else BOOLEAN
    for type_ in typed[1:]:
        common = find_type(common, type_, session.mode)
    if common is None:
        return None
    return [cast(arg, common, session.mode, session.zone) for arg in args]


def _common_number(left: Type, right: Type, mode: Mode) -> Type | None:
    names = {name_of(left), name_of(right)}
    if "double" in names or (names & {"float"} and (isinstance(left, Decimal) or isinstance(right, Decimal))):
        return DOUBLE
    if "float" in names:
        return DOUBLE if mode is Mode.ANSI else Primitive("float")
    first, second = as_decimal(left), as_decimal(right)
    return None if first is None or second is None else wider_decimal(first, second)


def round_type(type_: Type | None, digits: int) -> Type | None:
    """Return the type of a number that is rounded to some digits after the point."""
    if not isinstance(type_, Decimal):
        return type_ if is_number(type_) else None
    whole = type_.precision - type_.scale + 1
    if digits < 0:
        return Decimal(min(max(whole, 1 - digits), MAX_PRECISION), 0)
    scale = min(type_.scale, digits)
    return Decimal(min(whole + scale, MAX_PRECISION), scale)


def decimal_result(function: Function, left: Decimal, right: Decimal) -> Decimal | None:
    """Return the type of an operation on decimals, which gives up digits after the point if it must."""
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    match function:
        case Function.ADD | Function.SUBTRACT:
            scale = max(s1, s2)
            precision = max(p1 - s1, p2 - s2) + scale + 1
        case Function.MULTIPLY:
            scale, precision = s1 + s2, p1 + p2 + 1
        case Function.DIVIDE:
            scale = max(_MIN_SCALE, s1 + p2 + 1)
            precision = p1 - s1 + s2 + scale
        case Function.REMAINDER | Function.POSITIVE_REMAINDER:
            scale = max(s1, s2)
            precision = min(p1 - s1, p2 - s2) + scale
        case _:
            return None
    if precision > MAX_PRECISION:
        scale = max(MAX_PRECISION - (precision - scale), min(scale, _MIN_SCALE))
        precision = MAX_PRECISION
    return Decimal(precision, scale)
