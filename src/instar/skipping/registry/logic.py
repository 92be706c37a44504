"""Logic, comparisons, choices and casts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from instar.skipping import branches, predicates
from instar.skipping.coercion import DOUBLE
from instar.skipping.expression import BOOLEAN
from instar.skipping.functions import Function
from instar.skipping.kernels.casts import cast
from instar.skipping.kernels.compare import compare
from instar.skipping.registry.row import Param, Row, first_type, sampled
from instar.skipping.representation import INTEGERS, comparable

if TYPE_CHECKING:
    from instar.schema import Type
    from instar.skipping.expression import Expression

__all__ = ["LOGIC"]

_COMPARED: Final = (
    "tinyint int bigint double float decimal(10,2) decimal(38,18) string date timestamp timestamp_ntz boolean"
)
_LISTED: Final = 20
_SAME_REPRESENTATION: Final = Param(("float", "double"), dict.fromkeys((*INTEGERS, "decimal"), DOUBLE))


def _logical(args: tuple[Expression, ...]) -> Type | None:
    return BOOLEAN if all(arg.type in (BOOLEAN, None) for arg in args) else None


def _compared(args: tuple[Expression, ...]) -> Type | None:
    return BOOLEAN if len(args) > 1 and comparable(arg.type for arg in args) else None


def _case(args: list[str]) -> str:
    pairs = zip(args[:-1:2], args[1::2], strict=True)
    steps = " ".join(f"when {condition} then {value}" for condition, value in pairs)
    return f"case {steps} else {args[-1]} end"


def _in(args: list[str]) -> str:
    more = f", … {len(args) - 1 - _LISTED} more" if len(args) - 1 > _LISTED else ""
    return f"({args[0]} in ({', '.join(args[1 : _LISTED + 1])}{more}))"


def _comparison(function: Function, infix: str, catalyst: str) -> Row:
    samples = sampled(f"({{T}} {infix} {{T}})", _COMPARED)
    compares = tuple(f"boolean: {each.partition(': ')[2]}" for each in samples)
    return Row(function, _compared, kernels=compare, catalyst=(catalyst,), infix=infix, samples=compares)


LOGIC: Final = (
    Row(
        Function.AND,
        _logical,
        lazy=predicates.conjoin,
        infix="and",
        samples=("boolean: ({boolean} and {boolean})", "boolean: ({int} between {int} and {int})"),
    ),
    Row(
        Function.OR,
        _logical,
        lazy=predicates.disjoin,
        infix="or",
        samples=("boolean: ({boolean} or {boolean})",),
    ),
    Row(
        Function.NOT,
        _logical,
        lazy=predicates.negate,
        catalyst=("Not",),
        shown="(not {})",
        samples=(
            *("boolean: (not {boolean})", "boolean: ({int} <> {int})", "boolean: ({string} <> {string})"),
            *("boolean: ({int} not in ({int}, {int}))", "boolean: ({date} not between {date} and {date})"),
        ),
    ),
    Row(
        Function.IS_NULL,
        BOOLEAN,
        lazy=predicates.is_null,
        sql=("isnull",),
        catalyst=("IsNull",),
        shown="({} is null)",
        samples=("boolean: isnull({int})", "boolean: ({boolean} is null)", "boolean: ({date} is null)"),
    ),
    Row(
        Function.IS_NOT_NULL,
        BOOLEAN,
        lazy=predicates.is_not_null,
        sql=("isnotnull",),
        catalyst=("IsNotNull",),
        shown="({} is not null)",
        samples=("boolean: isnotnull({string})", "boolean: ({double} is not null)"),
    ),
    Row(
        "isnan",
        BOOLEAN,
        (_SAME_REPRESENTATION,),
        lazy=predicates.is_nan,
        sql=("isnan",),
        catalyst=("IsNaN",),
        samples=("boolean: isnan({double})", "boolean: isnan({float})"),
    ),
    _comparison(Function.EQUAL, "=", "EqualTo"),
    _comparison(Function.LESS, "<", "LessThan"),
    _comparison(Function.LESS_EQUAL, "<=", "LessThanOrEqual"),
    _comparison(Function.GREATER, ">", "GreaterThan"),
    _comparison(Function.GREATER_EQUAL, ">=", "GreaterThanOrEqual"),
    Row(
        Function.EQUAL_NULL_SAFE,
        BOOLEAN,
        lazy=predicates.null_safe_equal,
        catalyst=("EqualNullSafe",),
        infix="<=>",
        samples=(
            "boolean: ({int} <=> {int})",
            "boolean: ({string} <=> {string})",
            "boolean: ({boolean} is true)",
        ),
    ),
    Row(
        Function.IN,
        _compared,
        lazy=predicates.member,
        catalyst=("In",),
        shown=_in,
        samples=(
            *("boolean: ({int} in ({int}, {int}, {int}))", "boolean: ({string} in ({string}, {string}))"),
            *("boolean: ({double} in ({double}, {double}))", "boolean: ({date} in ({date}, {date}))"),
        ),
    ),
    Row(
        Function.COALESCE,
        first_type,
        lazy=branches.coalesce,
        sql=("coalesce", "nvl", "ifnull"),
        catalyst=("Coalesce",),
        unifies=True,
        samples=(
            *sampled("coalesce({T}, {T})", _COMPARED),
            *("int: nvl({int}, {int})", "string: ifnull({string}, {string})"),
        ),
    ),
    Row(
        Function.IF,
        first_type,
        lazy=branches.case,
        samples=(
            *("int: if({boolean}, {int}, {int})", "double: if({boolean}, {double}, {double})"),
            *("string: if({boolean}, {string}, {string})", "date: if({boolean}, {date}, {date})"),
            "int: if(i = 0, 0, cast(j div i as int))",
        ),
    ),
    Row(
        Function.CASE,
        first_type,
        lazy=branches.case,
        shown=_case,
        samples=(
            *("int: (case when {boolean} then {int} when {boolean} then {int} end)",),
            *("boolean: (case when {boolean} then {boolean} else {boolean} end)",),
            *("int: (case when i > #n then cast(l as int) end)",),
            *(
                "double: (case when l > #n then cast(l as double) end)",
                "double: (case when i > #n then 100 / i end)",
            ),
        ),
    ),
    Row(
        "try",
        first_type,
        lazy=branches.attempt,
        catalyst=("TryEval",),
        samples=("int: try_add({int}, {int})",),
    ),
    Row(
        "nanvl",
        DOUBLE,
        (Param(("double",)), Param(("double",))),
        lazy=branches.nanvl,
        sql=("nanvl",),
        catalyst=("NaNvl",),
        samples=("double: nanvl({double}, {double})",),
    ),
    Row(
        Function.GREATEST,
        first_type,
        lazy=branches.extreme,
        sql=("greatest",),
        catalyst=("Greatest",),
        unifies=True,
        samples=sampled("greatest({T}, {T})", _COMPARED),
    ),
    Row(
        Function.LEAST,
        first_type,
        lazy=branches.extreme,
        sql=("least",),
        catalyst=("Least",),
        unifies=True,
        samples=sampled("least({T}, {T})", _COMPARED),
    ),
    Row(
        Function.CAST,
        first_type,
        kernels=cast,
        samples=(
            *("tinyint: cast({int} as tinyint)", "tinyint: cast({double} as tinyint)"),
            *(
                "tinyint: cast({decimal(38,18)} as tinyint)",
                "int: cast({bigint} as int)",
                "int: cast({double} as int)",
            ),
            *(
                "int: cast({tinyint} as int)",
                "int: cast({boolean} as int)",
                "int: cast({decimal(10,2)} as int)",
            ),
            *(
                "int: try_cast({bigint} as int)",
                "int: cast({decimal(38,18)} as int)",
                "bigint: cast({int} as bigint)",
            ),
            *("bigint: cast({double} as bigint)", "bigint: try_cast({double} as bigint)"),
            *("bigint: cast({timestamp} as bigint)", "bigint: cast({decimal(38,18)} as bigint)"),
            *(
                "double: cast({bigint} as double)",
                "double: cast({float} as double)",
                "double: cast({int} as double)",
            ),
            *("double: cast({decimal(10,2)} as double)", "double: cast({timestamp} as double)"),
            *("double: cast({decimal(38,18)} as double)", "float: cast({double} as float)"),
            *("float: cast({bigint} as float)", "float: cast({decimal(38,18)} as float)"),
            *(
                "float: if(l > #n, cast(l as float), {float})",
                "decimal(38,18): cast({bigint} as decimal(38,18))",
            ),
            *("decimal(10,2): cast({int} as decimal(10,2))", "string: cast({date} as string)"),
            *(
                "string: cast({int} as string)",
                *(
                    "date: cast({string} as date)",
                    "int: cast({string} as int)",
                    "double: try_cast({string} as double)",
                ),
                *("timestamp: cast({string} as timestamp)", "timestamp: cast({double} as timestamp)"),
                "timestamp: cast({decimal(38,18)} as timestamp)",
                *(
                    "timestamp: cast(from_unixtime({bigint}) as timestamp)",
                    "date: cast(from_unixtime({bigint}) as date)",
                ),
                *(
                    "int: cast(date_format({date}, '#format') as int)",
                    "date: cast(date_format({timestamp}, '#format') as date)",
                ),
                "string: substring(cast({int} as string), 1, 2)",
                "date: cast({timestamp} as date)",
                "date: to_date({timestamp})",
            ),
            *("date: cast({timestamp_ntz} as date)", "timestamp: cast({date} as timestamp)"),
            *(
                "timestamp: cast({timestamp_ntz} as timestamp)",
                "timestamp_ntz: cast({timestamp} as timestamp_ntz)",
            ),
            *("timestamp_ntz: cast({date} as timestamp_ntz)", "boolean: cast({int} as boolean)"),
        ),
    ),
)
