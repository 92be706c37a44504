"""Three-valued logic over sets of results, with errors as Spark has them.

AND and OR look at their right side only if the left leaves the answer open, so an error there counts
only then. Which side an optimizer puts first is its own affair: the filter as a whole is judged by
`prune.py`, which takes conjuncts one by one.
"""

from __future__ import annotations

from instar.skipping.results import Results, truth_of
from instar.skipping.spans import NO, orders

__all__ = ["conjunction", "disjunction", "is_nan", "is_not_null", "is_null", "negation", "null_safe_equal"]


def conjunction(left: Results, right: Results) -> Results:
    """Evaluate AND."""
    a, b = left.truth, right.truth
    goes_on = a.true | left.null
    return truth_of(
        a.true & b.true,
        a.false | (goes_on & b.false),
        (left.null & (b.true | right.null)) | (a.true & right.null),
        left.fail | (goes_on & right.fail),
    )


def disjunction(left: Results, right: Results) -> Results:
    """Evaluate OR."""
    return negation(conjunction(negation(left), negation(right)))


def negation(result: Results) -> Results:
    """Evaluate NOT."""
    truth = result.truth
    return truth_of(truth.false, truth.true, result.null, result.fail)


def is_null(result: Results) -> Results:
    """Evaluate IS NULL: it fails with its argument, and is never null itself."""
    return truth_of(result.null, result.some, NO, result.fail)


def is_not_null(result: Results) -> Results:
    """Evaluate IS NOT NULL."""
    return truth_of(result.some, result.null, NO, result.fail)


def is_nan(result: Results) -> Results:
    """Evaluate isnan: null is not NaN."""
    true, false = NO, result.null
    for span in result.spans:
        nan = getattr(span, "nan", None)
        some = getattr(span, "some", None)
        if nan is None or some is None:
            return truth_of(result.some, result.some | result.null, NO, result.fail)
        true, false = true | nan, false | some
    return truth_of(true, false, NO, result.fail)


def null_safe_equal(left: Results, right: Results) -> Results:
    """Evaluate <=>: two nulls are equal, and a null equals nothing else."""
    true = left.null & right.null
    false = (left.null & right.some) | (left.some & right.null)
    for a in left.spans:
        for b in right.spans:
            found = orders(a, b)
            true, false = true | found.equal, false | found.less | found.greater
    return truth_of(true, false, NO, left.fail | right.fail)
