"""Conditions as Spark hands them to a table, back in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from instar.spark.native.gateway import Gateway

__all__ = ["EVERYTHING", "find_condition"]

EVERYTHING: Final = "true"
_NODES: Final = frozenset(["And", "GeneralScalarExpression", "Not", "Or", "Predicate"])
_BETWEEN: Final = frozenset(["=", "<=>", "<", ">", "<=", ">=", "+", "-", "*", "/", "%", "AND", "OR"])
_AFTER: Final = {"IS_NULL": "IS NULL", "IS_NOT_NULL": "IS NOT NULL"}
_CALLED: Final = {
    "CHAR_LENGTH": "char_length",
    "CONTAINS": "contains",
    "ENDS_WITH": "endswith",
    "LEFT": "left",
    "LOWER": "lower",
    "RIGHT": "right",
    "STARTS_WITH": "startswith",
    "SUBSTRING": "substring",
    "UPPER": "upper",
}
"""Functions in SQL, of those that Spark itself does not bring back."""


def find_condition(gateway: Gateway, predicates: Iterable[Any]) -> str | None:
    """Return the condition that all predicates together are, or None if one cannot be said in SQL."""
    convert = gateway.jvm.org.apache.spark.sql.catalyst.expressions.V2ExpressionUtils.toCatalyst

    def text_of(expression: Any) -> str | None:  # noqa: ANN401 -- a Java object
        found = convert(expression)
        if not found.isEmpty():
            return f"({found.get().sql()})"
        if str(expression.getClass().getSimpleName()) not in _NODES:
            return None
        name = str(expression.name())
        children = [text_of(child) for child in expression.children()]
        known = [child for child in children if child is not None]
        return _combined(name, known) if len(known) == len(children) else None

    texts = [text_of(predicate) for predicate in predicates]
    told = [text for text in texts if text is not None and text != f"({EVERYTHING})"]
    return None if None in texts else " AND ".join(told) or EVERYTHING


def _combined(name: str, children: list[str]) -> str | None:
    """Return an expression from those below it."""
    match children:
        case [left, right] if name in _BETWEEN:
            return f"({left} {name} {right})"
        case [only] if name in _AFTER:
            return f"({only} {_AFTER[name]})"
        case [only] if name == "NOT":
            return f"(NOT {only})"
        case [first, *others] if name == "IN" and others:
            return f"({first} IN ({', '.join(others)}))"
        case _ if name in _CALLED:
            return f"{_CALLED[name]}({', '.join(children)})"
    return None
