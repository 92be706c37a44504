"""Functions that SQL calls by name, each turned into a `Call` with the types that Spark gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from instar.schema import Primitive, Type
from instar.skipping.coercion import DATE, DOUBLE, INT, LONG, STRING, TIMESTAMP, cast, is_number
from instar.skipping.expression import BOOLEAN, Call, Expression, Literal
from instar.skipping.functions import Function, Mode
from instar.skipping.kinds import name_of
from instar.skipping.sql import operators
from instar.skipping.sql.times import TIMES
from instar.skipping.sql.values import VALUES

if TYPE_CHECKING:
    from sqlglot import exp

    from instar.skipping.sql.parse import Reader
    from instar.skipping.sql.session import Maker, Session

__all__ = ["call_by_name"]


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


def _extreme(function: Function) -> Maker:
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


def _test(function: Function) -> Maker:
    def make(args: list[Expression], session: Session) -> Expression | None:
        (value,) = args
        if function is Function.IS_NAN:
            value = cast(value, DOUBLE, session.mode, None) if name_of(value.type) != "float" else value
        return Call(function, (value,), BOOLEAN)

    return make


def _operator(function: Function, mode: Mode | None = None) -> Maker:
    def make(args: list[Expression], session: Session) -> Expression | None:
        left, right = args
        if mode is Mode.TRY and not all(is_number(arg.type) for arg in args):
            return None
        return operators.binary(function, left, right, session, mode)

    return make


def _unary(function: Function) -> Maker:
    def make(args: list[Expression], session: Session) -> Expression | None:
        (value,) = args
        return operators.unary(function, value, session)

    return make


def _convert(type_: Type) -> Maker:
    def make(args: list[Expression], session: Session) -> Expression | None:
        (value,) = args
        return cast(value, type_, session.mode, session.zone)

    return make


_MAKERS: Final[dict[str, Maker]] = {
    **TIMES,
    **VALUES,
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
}
