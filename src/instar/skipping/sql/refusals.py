"""What may stand in a query, but in no condition on rows: aggregates, windows and subqueries."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from instar.errors import UsageError

__all__ = ["check_condition"]

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
