"""What joins and subqueries find out when they run, as conditions like any other.

Spark hands over a column and the values that the other side of a join has for it, or a condition in which the
result of a subquery stands as a literal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from instar.spark.planner.interfaces import Interfaces

__all__ = ["RuntimeCondition", "runtime_conditions"]

_VALUES: Final = "InSubqueryExec"
_LONGEST: Final = 200


class RuntimeCondition(NamedTuple):
    """An expression that is true for all rows that are wanted, and how plans and reports tell it."""

    expression: Any
    text: str


def runtime_conditions(interfaces: Interfaces, expressions: Any) -> list[RuntimeCondition]:  # noqa: ANN401
    """Read an array of expressions, whose subqueries have been run."""
    made = (_condition(interfaces, expression) for expression in expressions)
    return [condition for condition in made if condition is not None]


def _condition(interfaces: Interfaces, expression: Any) -> RuntimeCondition | None:  # noqa: ANN401
    if expression.getClass().getSimpleName() != _VALUES:
        text = str(expression.toString())
        return RuntimeCondition(expression, text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
    values = expression.values()
    if not values.isDefined():
        return None
    # A null is equal to nothing, so that no row is wanted because of it.
    members = interfaces.wrap_array(values.get()).toSet().excl(None)
    child, size = expression.child(), members.size()
    text = f"{child.toString()} IN (the {size:,} values that a join has)"
    return RuntimeCondition(interfaces.in_set(child, members), text)
