"""Operators that sqlglot and Spark bind to different operands, where no parentheses say to which."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

__all__ = ["COMPARISONS", "binds_otherwise", "has_bits"]

COMPARISONS: Final = (exp.EQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_PREDICATES: Final = (exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape, exp.Is, exp.Not)
_BITS: Final = (
    exp.BitwiseAnd,
    exp.BitwiseOr,
    exp.BitwiseXor,
    exp.BitwiseLeftShift,
    exp.BitwiseRightShift,
    exp.BitwiseNot,
)


def has_bits(tree: exp.Expression) -> bool:
    """Tell whether there are bitwise operators, which bind more or less tightly than anything around them."""
    return tree.find(*_BITS) is not None


def binds_otherwise(node: exp.Expression) -> bool:
    """Tell whether an operator has other operands in Spark.

    Spark applies IN, BETWEEN and LIKE to whole comparisons, and comparisons and || from left to right.
    """
    if isinstance(node, exp.DPipe):
        return isinstance(node.expression, exp.Add | exp.Sub)
    if not isinstance(node, COMPARISONS):
        return False
    # Around the sides of these sqlglot puts parentheses of its own.
    own = isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ)
    left, right = (side.unnest() if own else side for side in (node.this, node.expression))
    return isinstance(left, _PREDICATES) or isinstance(right, (*_PREDICATES, *COMPARISONS))
