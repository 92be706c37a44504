"""Functions of numbers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from instar.schema import Decimal
from instar.schema.types import MAX_PRECISION
from instar.skipping import exact
from instar.skipping.coercion import DOUBLE, INT, LONG, decimal_result, is_number, round_type
from instar.skipping.expression import Literal
from instar.skipping.functions import Function
from instar.skipping.kernels import arithmetic, floating, rounding
from instar.skipping.kernels.monotone import increasing, logarithm, power
from instar.skipping.registry.row import DOUBLE_ARG, INT_ARG, Param, Row, first_type, sampled
from instar.skipping.representation import INTEGERS, Representation, is_day_time, is_year_month

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.schema import Type
    from instar.skipping.expression import Expression
    from instar.skipping.kernels.outcome import Kernel

__all__ = ["NUMBERS"]

_W, _R = Representation.WHOLE, Representation.REAL
_NUMBER: Final = Param((*INTEGERS, "float", "double", "decimal"))
_SIGNED: Final = Param((*_NUMBER.families, "day-time", "year-month"))
_TO_WHOLE: Final = Param(
    ("bigint", "double", "decimal"),
    {"tinyint": LONG, "smallint": LONG, "int": LONG, "float": DOUBLE},
)
_SUMMED: Final = "tinyint int bigint double float"
_SHORT, _LONG = "decimal(10,2)", "decimal(38,18)"


def _arithmetic(function: Function, args: tuple[Expression, ...]) -> Type | None:
    """Return the type of an operator on two sides that were brought to one type."""
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


def _whole(args: tuple[Expression, ...]) -> Type | None:
    type_ = args[0].type
    if isinstance(type_, Decimal):
        return Decimal(min(type_.precision - type_.scale + 1, MAX_PRECISION), 0)
    return LONG


def _rounded(args: tuple[Expression, ...]) -> Type | None:
    value, digits = args
    if not isinstance(digits, Literal) or not isinstance(digits.value, int):
        return None
    return round_type(value.type, digits.value)


def _in_decimals(template: str) -> tuple[str, ...]:
    """Return a sample for each of two types of decimals, cast back to it."""
    return tuple(
        f"{type_}: cast({template.replace('{T}', '{' + type_ + '}')} as {type_})" for type_ in (_SHORT, _LONG)
    )


def _operator(
    function: Function,
    class_: str,
    infix: str,
    whole: Kernel,
    real: Kernel | None,
    samples: tuple[str, ...],
    sql: tuple[str, ...] = (),
    tried: str = "",
) -> Row:
    kernels: dict[tuple[Representation, ...], Kernel] = {(_W, _W): whole}
    if real is not None:
        kernels[_R, _R] = real
    return Row(
        function,
        partial(_arithmetic, function),
        kernels=kernels,
        catalyst=(f"{class_}(left, right)",),
        sql=sql,
        infix=infix,
        tried=tried,
        samples=samples,
    )


def _whole_number(
    name: str, names: tuple[str, ...], class_: str, of: np.ufunc, divide: exact.Operation
) -> Row:
    return Row(
        name,
        _whole,
        (_TO_WHOLE,),
        {(_W,): rounding.to_whole_whole(divide), (_R,): rounding.to_whole_real(of)},
        sql=names,
        catalyst=(class_,),
        samples=(
            *(f"bigint: {own}({{double}})" for own in names),
            f"bigint: {name}({{int}})",
            *_in_decimals(f"{name}({{T}})"),
        ),
    )


def _rounding(name: str, class_: str, divide: Callable[[exact.Ints, int], exact.Ints]) -> Row:
    return Row(
        name,
        _rounded,
        (_NUMBER, INT_ARG),
        {(_W, _W): rounding.round_whole(divide), (_R, _W): rounding.round_real},
        sql=(name,),
        catalyst=(class_,),
        defaults=(Literal(0, INT),),
        samples=(
            *(f"int: {name}({{int}}, -1)", f"double: {name}({{double}}, 1)", f"double: {name}({{double}})"),
            f"{_LONG}: cast({name}({{{_LONG}}}, 5) as {_LONG})",
            f"{_SHORT}: cast({name}({{{_SHORT}}}, 1) as {_SHORT})",
        ),
    )


def _function(name: str, names: tuple[str, ...], class_: str, kernel: Kernel) -> Row:
    """Make the row of a function of a double."""
    samples = (f"double: {name}({{double}})", f"double: {name}({{int}})", f"double: {name}(l / 1000)")
    return Row(name, DOUBLE, (DOUBLE_ARG,), {(_R,): kernel}, sql=names, catalyst=(class_,), samples=samples)


NUMBERS: Final = (
    _operator(
        *(Function.ADD, "Add", "+", arithmetic.add, floating.add),
        samples=(
            *sampled("({T} + {T})", _SUMMED),
            *_in_decimals("({T} + {T})"),
            *("int: ({int} + {tinyint})", "bigint: ({bigint} + {int})", "int: try_add({int}, {int})"),
            *("bigint: try_add({bigint}, {bigint})", f"{_SHORT}: cast(({{{_SHORT}}} + {{int}}) as {_SHORT})"),
        ),
        tried="try_add",
    ),
    _operator(
        *(Function.SUBTRACT, "Subtract", "-", arithmetic.subtract, floating.subtract),
        samples=(
            *sampled("({T} - {T})", _SUMMED),
            *_in_decimals("({T} - {T})"),
            *("int: try_subtract({int}, {int})", "bigint: try_subtract({bigint}, {bigint})"),
        ),
        tried="try_subtract",
    ),
    _operator(
        *(Function.MULTIPLY, "Multiply", "*", arithmetic.multiply, floating.multiply),
        samples=(
            *sampled("({T} * {T})", _SUMMED),
            *_in_decimals("({T} * {T})"),
            *("int: try_multiply({int}, {int})", "bigint: try_multiply({bigint}, {bigint})"),
        ),
        tried="try_multiply",
    ),
    _operator(
        *(Function.DIVIDE, "Divide", "/", arithmetic.divide, floating.divide),
        samples=(
            *("double: ({double} / {double})", "double: ({int} / {int})"),
            *("double: try_divide({double}, {double})",),
            *_in_decimals("({T} / {T})"),
        ),
        tried="try_divide",
    ),
    _operator(
        *(Function.INTEGRAL_DIVIDE, "IntegralDivide", "div", arithmetic.integral_divide, None),
        samples=("bigint: ({bigint} div {bigint})", "bigint: ({int} div {int})"),
    ),
    _operator(
        *(Function.REMAINDER, "Remainder", "%", arithmetic.remainder, floating.remainder),
        samples=(
            *("int: ({int} % {int})", "bigint: ({bigint} % {bigint})", "double: ({double} % {double})"),
            *("int: mod({int}, {int})", "int: try_mod({int}, {int})"),
            *_in_decimals("({T} % {T})"),
            f"{_LONG}: cast((cast({{{_LONG}}} as decimal(38,0)) % #tiny) as {_LONG})",
        ),
        sql=("mod",),
        tried="try_mod",
    ),
    Row(
        Function.POSITIVE_REMAINDER,
        partial(_arithmetic, Function.POSITIVE_REMAINDER),
        kernels={(_W, _W): arithmetic.positive_remainder},
        sql=("pmod",),
        catalyst=("Pmod(left, right)",),
        samples=(
            *("int: pmod({int}, {int})", "int: pmod({int}, 100)"),
            f"{_LONG}: cast(pmod({{{_LONG}}}, #tiny) as {_LONG})",
        ),
    ),
    Row(
        Function.NEGATE,
        first_type,
        (_SIGNED,),
        {(_W,): arithmetic.negate, (_R,): floating.negate},
        sql=("negative",),
        catalyst=("UnaryMinus(child)",),
        shown="(- {})",
        samples=(*sampled("(- {T})", f"{_SUMMED} {_SHORT} {_LONG}"), "int: negative({int})"),
    ),
    Row(
        Function.ABS,
        first_type,
        (_SIGNED,),
        {(_W,): arithmetic.absolute, (_R,): floating.absolute},
        sql=("abs",),
        catalyst=("Abs(child)",),
        samples=sampled("abs({T})", f"{_SUMMED} {_SHORT} {_LONG}"),
    ),
    Row(
        "sign",
        DOUBLE,
        (DOUBLE_ARG,),
        {(_R,): rounding.sign_of_real},
        sql=("sign", "signum"),
        catalyst=("Signum",),
        samples=("double: sign({double})", "double: signum({int})"),
    ),
    _whole_number("ceil", ("ceil", "ceiling"), "Ceil", np.ceil, exact.ceil_divide),
    _whole_number("floor", ("floor",), "Floor", np.floor, exact.floor_divide),
    _rounding("round", "Round", exact.half_up),
    _rounding("bround", "BRound", exact.half_even),
    _function("sqrt", ("sqrt",), "Sqrt", increasing(np.sqrt, 0.0, least=0.0, steps=0)),
    _function("exp", ("exp",), "Exp", increasing(np.exp, least=0.0)),
    _function("ln", ("ln",), "Log", increasing(np.log, 0.0, includes=False, null_outside=True)),
    _function("log10", ("log10",), "Log10", increasing(np.log10, 0.0, includes=False, null_outside=True)),
    _function("log2", ("log2",), "Log2", increasing(np.log2, 0.0, includes=False, null_outside=True)),
    _function("log1p", ("log1p",), "Log1p", increasing(np.log1p, -1.0, includes=False, null_outside=True)),
    _function("expm1", ("expm1",), "Expm1", increasing(np.expm1, least=-1.0)),
    _function("cbrt", ("cbrt",), "Cbrt", increasing(np.cbrt)),
    Row(
        "log",
        DOUBLE,
        (DOUBLE_ARG, DOUBLE_ARG),
        {(_R, _R): logarithm},
        sql=("log",),
        catalyst=("Logarithm(left, right)",),
        samples=(
            *("double: log(10, {double})", "double: log(2.5D, l / 1000)"),
            *("double: log(0.5D, {double})", "double: log({double}, {double})"),
        ),
    ),
    Row(
        "power",
        DOUBLE,
        (DOUBLE_ARG, DOUBLE_ARG),
        {(_R, _R): power},
        sql=("power", "pow"),
        catalyst=("Pow",),
        samples=(
            *(
                f"double: power({{double}}, {exponent})"
                for exponent in ("2", "3", "0.5D", "-1", "-2.5D", "0")
            ),
            *("double: pow({int}, 2)", "double: pow({double}, {double})"),
        ),
    ),
)
