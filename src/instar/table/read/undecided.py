"""The error for an expression that cannot be computed in process: which piece of it, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from instar.errors import UsageError
from instar.schema import Primitive, format_type
from instar.skipping.expression import Anything, Call
from instar.skipping.spans import single

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.skipping import Expression
    from instar.skipping.results import Results

__all__ = ["undecided"]

_TEXT = Primitive("string")


def undecided(
    what: str, expression: Expression, evaluate: Callable[[Expression], Results], remedy: str
) -> UsageError:
    """Return the error for an expression that is not decided for the row that `evaluate` looks at."""
    piece = _innermost(expression, evaluate) or expression
    why = f"instar cannot compute {piece}"
    if isinstance(piece, Call) and piece.function == "cast" and piece.args[0].type == _TEXT:
        given = piece.args[0]
        why = f"{given} is a string used as {format_type(piece.type)}, and not every string is one"
    return UsageError(f"{what} cannot be decided without Spark: {why}. {remedy}")


def _innermost(expression: Expression, evaluate: Callable[[Expression], Results]) -> Expression | None:
    """Find the first piece that is not decided, though all of its own pieces are."""
    for piece in expression.args if isinstance(expression, Call) else ():
        found = _innermost(piece, evaluate)
        if found is not None:
            return found
    if isinstance(expression, Anything):
        return expression
    return None if _is_decided(evaluate(expression)) else expression


def _is_decided(results: Results) -> bool:
    null, fail, some = (bool(np.any(mask)) for mask in (results.null, results.fail, results.some))
    if fail or (some and null):
        return False
    return not some or (bool(results.spans) and bool(np.all(single(results.whole))))
