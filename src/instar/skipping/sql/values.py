"""Functions of strings and numbers that SQL calls by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from instar.schema import Decimal
from instar.skipping.coercion import BINARY, DOUBLE, INT, LONG, STRING, cast, is_number, round_type
from instar.skipping.expression import BOOLEAN, Call, Expression, Literal
from instar.skipping.functions import Function
from instar.skipping.kinds import INTEGERS, name_of

if TYPE_CHECKING:
    from instar.skipping.sql.session import Maker, Session

__all__ = ["VALUES"]


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


def _strings(function: Function) -> Maker:
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


def _whole(function: Function) -> Maker:
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
    if not is_number(value.type):
        return None
    return Call(Function.SIGN, (cast(value, DOUBLE, session.mode, None),), DOUBLE)


def _nanvl(args: list[Expression], _: Session) -> Expression | None:
    left, right = args
    return Call(Function.NANVL, (left, right), DOUBLE) if left.type == right.type == DOUBLE else None


VALUES: Final[dict[str, Maker]] = {
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
