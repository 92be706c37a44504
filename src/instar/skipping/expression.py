"""The expression tree: columns, literals, calls, the present moment, and what is not understood.

Small and typed, bound to field ids, with everything that a result depends on in the node itself. Both
front ends make it, the interpreter walks it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal as PyDecimal
from typing import TYPE_CHECKING, Final

from instar.schema import Primitive, Type
from instar.skipping.functions import Function, Mode
from instar.skipping.render import render_value

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "BOOLEAN",
    "DEEPEST",
    "TOO_DEEP",
    "Anything",
    "Call",
    "Column",
    "Expression",
    "Literal",
    "Now",
    "Value",
    "conjuncts",
    "fields_needed",
    "walk",
]

Value = bool | int | float | str | bytes | PyDecimal
"""A literal: dates in days, timestamps and intervals in microseconds or months, decimals exact."""

BOOLEAN: Final = Primitive("boolean")
TIMESTAMP: Final = Primitive("timestamp")

DEEPEST: Final = 100
"""How deep an expression may be nested. Front ends put `TOO_DEEP` in place of what is deeper, so whatever
walks an expression may call itself without fear for the stack."""


@dataclass(frozen=True, slots=True)
class Column:
    """A leaf field: a column, or a member of a struct at any depth."""

    field_id: int
    type: Type
    name: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.name or f"f{self.field_id}"


@dataclass(frozen=True, slots=True)
class Literal:
    """One value, or null. `upto` makes it one of the values from `value` to there, it is not known which."""

    value: Value | None
    type: Type
    upto: Value | None = None

    def __str__(self) -> str:
        text = render_value(self.value, self.type)
        return text if self.upto is None else f"{text}..{render_value(self.upto, self.type)}"


@dataclass(frozen=True, slots=True)
class Now:
    """The moment at which the query runs: a timestamp in the interval that the caller gives."""

    type: Type = TIMESTAMP

    def __str__(self) -> str:
        return "now()"


@dataclass(frozen=True, slots=True)
class Anything:
    """What is not understood: any value, null or an error."""

    what: str
    type: Type | None = None

    def __str__(self) -> str:
        return self.what


@dataclass(frozen=True, slots=True)
class Call:
    """A function of other expressions. What depends on neither mode nor zone ignores them."""

    function: str
    """The name of a row of the registry."""
    args: tuple[Expression, ...]
    type: Type
    mode: Mode = Mode.ANSI
    zone: str | None = None

    def __str__(self) -> str:
        from instar.skipping.registry import render_call  # noqa: PLC0415 -- which knows calls

        return render_call(self)


Expression = Column | Literal | Now | Anything | Call

TOO_DEEP: Final = Anything("…")
"""What stands for an expression that is nested too deeply: it may come to anything, so it decides nothing."""


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and everything in it, parents first."""
    waiting = [expression]
    while waiting:
        one = waiting.pop()
        yield one
        if isinstance(one, Call):
            waiting += reversed(one.args)


def fields_needed(expression: Expression) -> frozenset[int]:
    """Return the fields whose statistics the decision looks at, and no others."""
    return frozenset(node.field_id for node in walk(expression) if isinstance(node, Column))


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """Take a filter apart at its outermost ANDs."""
    if isinstance(expression, Call) and expression.function is Function.AND:
        return tuple(part for arg in expression.args for part in conjuncts(arg))
    return (expression,)
