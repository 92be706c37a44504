"""From the text of a filter to an expression: sqlglot's syntax tree, typed against a schema.

Operators and literals are here; calls by name are in `calls.py`. What is not understood becomes
`Anything`, and only what a person could have mistyped is an error.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal as PyDecimal
from math import isfinite
from typing import Any, Final

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark

from instar.errors import ColumnNotFoundError, InstarError, UsageError
from instar.schema import Decimal, Primitive, Schema, Struct, Type, format_path, parse_type_ddl
from instar.schema.types import MAX_PRECISION
from instar.skipping.coercion import DOUBLE, INT, LONG, STRING, cast
from instar.skipping.expression import (
    BOOLEAN,
    DEEPEST,
    TOO_DEEP,
    Anything,
    Call,
    Column,
    Expression,
    Literal,
    Now,
)
from instar.skipping.functions import Function, Mode, Session
from instar.skipping.registry import load_row
from instar.skipping.representation import limits
from instar.skipping.sql import operators
from instar.skipping.sql.calls import call_by_name
from instar.skipping.sql.syntax import COMPARISONS, binds_otherwise, check_condition, has_bits

__all__ = ["read_filter"]


class _Dialect(Spark):
    """Spark's syntax; calls keep the names and arguments that were typed."""

    # Spark.Parser is an attribute and not a nested class, which mypy does not take for a base.
    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]
        FUNCTIONS: dict[str, object] = {}  # noqa: RUF012 -- as sqlglot has it


_BINARY: Final[dict[type[exp.Expression], Function]] = {
    exp.EQ: Function.EQUAL,
    exp.NullSafeEQ: Function.EQUAL_NULL_SAFE,
    exp.LT: Function.LESS,
    exp.LTE: Function.LESS_EQUAL,
    exp.GT: Function.GREATER,
    exp.GTE: Function.GREATER_EQUAL,
    exp.Add: Function.ADD,
    exp.Sub: Function.SUBTRACT,
    exp.Mul: Function.MULTIPLY,
    exp.Div: Function.DIVIDE,
    exp.IntDiv: Function.INTEGRAL_DIVIDE,
    exp.Mod: Function.REMAINDER,
}
_LOGIC: Final = (exp.And, exp.Or, exp.Not, exp.Paren)
_TRIMS: Final = {"LEADING": "ltrim", "TRAILING": "rtrim"}
_UNIT_FIRST: Final = ("date_add", "dateadd", "timestampadd", "date_diff", "datediff")
_SHOWN: Final = 500
_SUFFIXES: Final = ("tinyint", "smallint", "bigint", "float", "double")


def read_filter(text: str, schema: Schema, session: Session | None = None) -> Expression:
    """Read a filter as Spark SQL in a session, by default in UTC and ANSI mode."""
    try:
        tree = sqlglot.parse_one(text, dialect=_Dialect)
    except sqlglot.errors.SqlglotError as error:
        raise UsageError(f"{text!r} is not a condition in SQL: {_reason(error)}") from None
    except RecursionError:  # sqlglot calls itself some twenty times for each parenthesis
        return replace(TOO_DEEP, type=BOOLEAN)
    if not isinstance(tree, exp.Expression) or not isinstance(tree, exp.Condition):
        raise UsageError(f"{text!r} is not a single condition, as after WHERE")
    check_condition(tree, text)
    return SqlReader(schema, session or Session(), bits=has_bits(tree)).read(tree)


def _reason(error: sqlglot.errors.SqlglotError) -> str:
    """Say what is wrong with a text, without sqlglot's colours and class names."""
    found = error.errors[0] if isinstance(error, sqlglot.ParseError) and error.errors else {}
    what = str(found.get("description") or error).splitlines()[0].partition(" for <class")[0]
    column = found.get("col")
    return what.rstrip(".") if column is None else f"{what.rstrip('.')}, at column {column}"


class SqlReader:
    """Reads syntax trees over one schema in one session."""

    def __init__(self, schema: Schema, session: Session, *, bits: bool = False) -> None:
        self.schema = schema
        self.session = session
        self._bits = bits
        """Whether there are bitwise operators, around which only AND, OR and NOT are sure to bind as here."""
        self._depth = 0

    def read(self, node: exp.Expression) -> Expression:
        """Read one node and everything below it, but not deeper than an expression may be."""
        if self._depth >= DEEPEST:
            return TOO_DEEP
        self._depth += 1
        try:
            return self._read(node)
        finally:
            self._depth -= 1

    def _read(self, node: exp.Expression) -> Expression:  # noqa: C901, PLR0912 -- one case for each kind of node
        if self._bits and not isinstance(node, _LOGIC) and has_bits(node):
            return _opaque(node)
        if binds_otherwise(node):
            return _opaque(node, BOOLEAN if isinstance(node, COMPARISONS) else None)
        function = _BINARY.get(type(node))
        if function is not None:
            return operators.binary(function, self.read(node.this), self.read(node.expression), self.session)
        match node:
            case exp.Paren():
                return self.read(node.this)
            case exp.And() | exp.Or():
                return self._logic(node)
            case exp.Not():
                return operators.negation(self.read(node.this))
            case exp.NEQ():
                equal = operators.binary(
                    Function.EQUAL, self.read(node.this), self.read(node.expression), self.session
                )
                return operators.negation(equal)
            case exp.NullSafeNEQ():
                same = operators.binary(
                    Function.EQUAL_NULL_SAFE, self.read(node.this), self.read(node.expression), self.session
                )
                return operators.negation(same)
            case exp.Neg():
                return self._negative(node)
            case exp.Is():
                return self._is(node)
            case exp.In():
                return self._in(node)
            case exp.Between():
                return self._between(node)
            case exp.Like() | exp.ILike() | exp.Escape():
                return self._like(node)
            case exp.Case():
                return self._case(node)
            case exp.If():
                default = node.args.get("false")
                parts = [self.read(node.this), self.read(node.args["true"])]
                parts.append(
                    self.read(default) if default is not None else Literal(None, parts[1].type or INT)
                )
                return operators.case(Function.IF, parts, self.session)
            case exp.Cast():
                return self._cast(node)
            case exp.Concat():  # of texts that stand side by side
                return self.named("concat", node.expressions)
            case exp.DPipe():
                sides: list[Any] = list(node.flatten())
                return self.named("concat", sides)
            case exp.Extract():
                return self.named("date_part", [exp.Literal.string(node.this.name), node.expression])
            case exp.Substring() if node.args.get("start") is not None:
                length = node.args.get("length")
                return self.named("substring", [node.this, node.args["start"], *([length] if length else [])])
            case exp.Ceil() | exp.Floor():
                decimals = node.args.get("decimals")
                return self.named(node.key, [node.this, *([decimals] if decimals else [])])
            case exp.RegexpLike() if set(node.args) <= {"this", "expression"}:
                return self.named("rlike", [node.this, node.expression])
            case exp.Trim() if not any(node.args.get(own) for own in ("expression", "collation")):
                return self.named(_TRIMS.get(str(node.args.get("position")), "trim"), [node.this])
            case exp.DecodeCase():
                return self.named("decode", node.expressions)
            case exp.CurrentDate():
                return self.named("current_date", [])
            case exp.CurrentTimestamp():
                return Now()
            case exp.Anonymous():
                return self.named(node.name.lower(), node.expressions)
            case exp.Interval():
                return self._interval(node)
            case exp.Column() | exp.Dot():
                return self._column(node)
        return self._literal(node)

    def named(self, name: str, args: list[exp.Expression]) -> Expression:
        """Read a call by name. Arguments of a function that is not known are not looked at."""
        given = args
        if name in _UNIT_FIRST and len(args) == 3:  # noqa: PLR2004 -- a unit, which is no column, and two more
            given = [exp.Literal.string(args[0].name), *args[1:]]
        return call_by_name(name, given, self) or _opaque(exp.Anonymous(this=name, expressions=args))

    def _logic(self, node: exp.And | exp.Or) -> Expression:
        function = Function.AND if isinstance(node, exp.And) else Function.OR
        # Without recursion into the left side: generated filters are long chains.
        sides: list[exp.Expression] = []
        left: exp.Expression = node
        while type(left) is type(node):
            sides.append(left.expression)
            left = left.this
        sides.append(left)
        args = tuple(self.read(side) for side in reversed(sides))
        if all(arg.type in (BOOLEAN, None) for arg in args):
            return Call(function, args, BOOLEAN)
        return _opaque(node, BOOLEAN)

    def _negative(self, node: exp.Neg) -> Expression:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return self._number(f"-{node.this.this}")
        return self.named("negative", [node.this])

    def _is(self, node: exp.Is) -> Expression:
        value = self.read(node.this)
        if isinstance(node.expression, exp.Null):
            return Call(Function.IS_NULL, (value,), BOOLEAN)
        if isinstance(node.expression, exp.Boolean) and value.type == BOOLEAN:
            truth = Literal(bool(node.expression.this), BOOLEAN)
            return Call(Function.EQUAL_NULL_SAFE, (value, truth), BOOLEAN)
        return _opaque(node, BOOLEAN)

    def _in(self, node: exp.In) -> Expression:
        if not node.expressions or isinstance(node.this, exp.Tuple):
            return _opaque(node, BOOLEAN)
        return operators.member([self.read(arg) for arg in (node.this, *node.expressions)], self.session)

    def _between(self, node: exp.Between) -> Expression:
        if node.args.get("symmetric"):
            return _opaque(node, BOOLEAN)
        value = self.read(node.this)
        sides = (
            operators.binary(Function.GREATER_EQUAL, value, self.read(node.args["low"]), self.session),
            operators.binary(Function.LESS_EQUAL, value, self.read(node.args["high"]), self.session),
        )
        return Call(Function.AND, sides, BOOLEAN)

    def _like(self, node: exp.Like | exp.ILike | exp.Escape) -> Expression:
        escape: str | None = "\\"
        inner: exp.Expression = node
        if isinstance(node, exp.Escape):
            escape = node.expression.this if isinstance(node.expression, exp.Literal) else None
            inner = node.this
        if type(inner) not in (exp.Like, exp.ILike) or escape is None or len(escape) != 1:
            return _opaque(node, BOOLEAN)
        value, patterns = self.read(inner.this), [inner.expression]
        several = isinstance(inner.expression, exp.Any | exp.All)
        if several:
            patterns = inner.expression.this.expressions or [inner.expression.this.this]
        tests: list[Expression] = []
        for pattern in patterns:
            args = self._pattern(inner, value, self.read(pattern), Literal(escape, STRING))
            if any(arg.type != STRING for arg in args):
                return _opaque(node, BOOLEAN)
            like = Call(Function.LIKE, args, BOOLEAN)
            tests.append(operators.negation(like) if inner.args.get("negate") else like)
        function = Function.OR if isinstance(inner.expression, exp.Any) else Function.AND
        return Call(function, tuple(tests), BOOLEAN) if several else tests[0]

    def _pattern(
        self, node: exp.Expression, value: Expression, pattern: Expression, escape: Literal
    ) -> tuple[Expression, ...]:
        """Return the arguments of LIKE; for ILIKE, both sides are in lower case."""
        if isinstance(node, exp.Like):
            return value, pattern, escape
        lower = load_row("lower").bind((value,), self.session.mode, None)
        if lower is None or not isinstance(pattern, Literal) or not str(pattern.value).isascii():
            return (Anything("lower"),)
        return lower, Literal(str(pattern.value).lower(), STRING), escape

    def _case(self, node: exp.Case) -> Expression:
        parts: list[Expression] = []
        for branch in node.args["ifs"]:
            condition = self.read(branch.this)
            if node.this is not None:
                condition = operators.binary(Function.EQUAL, self.read(node.this), condition, self.session)
            parts += [condition, self.read(branch.args["true"])]
        default = node.args.get("default")
        parts.append(self.read(default) if default is not None else Literal(None, parts[1].type or INT))
        return operators.case(Function.CASE, parts, self.session)

    def _cast(self, node: exp.Cast) -> Expression:
        if (
            isinstance(node.this, exp.Literal)
            and not node.this.is_string
            and node.to.this.name.lower() in _SUFFIXES
        ):
            exact = self._suffixed(node.this.this, node.to.this.name.lower())
            if exact is not None:
                return exact
        type_ = _type(node.to)
        if type_ is None:
            return _opaque(node)
        mode = Mode.TRY if node.args.get("safe") else self.session.mode
        return cast(self.read(node.this), type_, mode, self.session.zone)

    def _suffixed(self, text: str, name: str) -> Literal | None:
        """Read a number with a suffix such as 5L, which sqlglot takes for a cast."""
        type_ = Primitive(name)
        if name in ("float", "double"):
            # The nearest float of a decimal text is not always that of the nearest double.
            return Literal(float(text), type_) if name == "double" else None
        low, high = limits(type_)
        known = text.isdigit() and len(text) <= MAX_PRECISION
        return Literal(int(text), type_) if known and low <= int(text) <= high else None

    def _interval(self, node: exp.Interval) -> Expression:
        text = node.this.name if isinstance(node.this, exp.Literal) else None
        unit = node.args.get("unit")
        first, last = (
            (
                (unit.this.name, unit.expression.name)
                if isinstance(unit, exp.IntervalSpan)
                else (unit.name,) * 2
            )
            if unit is not None
            else ("", "")
        )
        first, last = (name.lower().removesuffix("s") for name in (first, last))
        return operators.interval(text, first, last) or _opaque(node)

    def _column(self, node: exp.Column | exp.Dot) -> Expression:
        if isinstance(node, exp.Dot) or not isinstance(node.this, exp.Identifier):
            return _opaque(node)
        steps = [part.name for part in node.parts]
        field = self.schema.find_column(format_path(tuple(steps)))
        if field is None:
            if len(steps) > 1:
                return _opaque(node)
            raise ColumnNotFoundError(format_path(tuple(steps)), known=tuple(self.schema.paths()))
        if isinstance(field.type, Struct):
            return Anything(node.sql(), field.type)
        return Column(field.id, field.type, format_path(tuple(steps)))

    def _literal(self, node: exp.Expression) -> Expression:
        match node:
            case exp.Null():
                return Literal(None, Primitive("boolean"))
            case exp.Boolean():
                return Literal(bool(node.this), BOOLEAN)
            case exp.Literal() if node.is_string:
                return Literal(node.this, STRING)
            case exp.RawString():
                return Literal(node.this, STRING)
            case exp.Literal():
                return self._number(node.this)
            case exp.HexString() if len(node.this) % 2 == 0:
                return Literal(bytes.fromhex(node.this), Primitive("binary"))
        return _opaque(node)

    def _number(self, text: str) -> Expression:
        if "e" in text.lower():
            real = float(text)
            return Literal(real, DOUBLE) if isfinite(real) else Anything(_shortened(text))
        if "." not in text and len(text) <= MAX_PRECISION:
            value = int(text)
            for type_ in (INT, LONG):
                low, high = limits(type_)
                if low <= value <= high:
                    return Literal(value, type_)
        number = PyDecimal(text)
        digits, scale = len(number.as_tuple().digits), -int(number.as_tuple().exponent)
        precision = max(digits, scale)
        if precision > MAX_PRECISION:
            return Anything(_shortened(text))
        return Literal(number, Decimal(precision, scale))


def _opaque(node: exp.Expression, type_: Type | None = None) -> Anything:
    try:
        return Anything(_shortened(node.sql(dialect="spark")), type_)
    except RecursionError:
        return replace(TOO_DEEP, type=type_)


def _shortened(text: str) -> str:
    """Cut a text to what a person may want to see of it."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _type(node: exp.DataType) -> Type | None:
    try:
        type_, _ = parse_type_ddl(node.sql(dialect="spark"))
    except InstarError:
        return None
    return type_
