"""What is not taken as sqlglot reads it: no condition on rows, or operators that Spark binds otherwise."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from instar.errors import UsageError

__all__ = ["COMPARISONS", "binds_otherwise", "check_condition", "has_bits"]

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

_AGGREGATES: Final = frozenset(
    [
        *("any", "any_value", "approx_count_distinct", "approx_percentile", "array_agg", "avg", "bit_and"),
        *("bit_or", "bit_xor", "bool_and", "bool_or", "collect_list", "collect_set", "corr", "count"),
        *("count_if", "covar_pop", "covar_samp", "every", "first", "first_value", "kurtosis", "last"),
        *("last_value", "listagg", "max", "max_by", "mean", "median", "min", "min_by", "mode", "percentile"),
        *(
            "percentile_approx",
            "skewness",
            "some",
            "std",
            "stddev",
            "stddev_pop",
            "stddev_samp",
            "string_agg",
        ),
        *("sum", "try_avg", "try_sum", "var_pop", "var_samp", "variance"),
    ]
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


def check_condition(tree: exp.Expression, text: str) -> None:
    """Refuse what cannot be told of a row by itself."""
    for node in tree.walk():
        if isinstance(node, exp.Query):
            raise UsageError(f"{text!r} is not a condition on rows: it has a subquery")
        if isinstance(node, exp.Window):
            raise UsageError(f"{text!r} is not a condition on rows: it has a window function")
        if isinstance(node, exp.AggFunc) or (
            isinstance(node, exp.Anonymous) and node.name.lower() in _AGGREGATES
        ):
            name = node.name.lower() if isinstance(node, exp.Anonymous) else node.key
            raise UsageError(f"{text!r} is not a condition on rows: {name} is an aggregate")
