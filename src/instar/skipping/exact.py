"""Arithmetic on columns of integers that never wraps around.

Columns are int64 wherever all results are sure to fit, and Python integers in object columns where not;
the question is answered once for a column, from its greatest magnitude.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = [
    "Ints",
    "Operation",
    "add",
    "ceil_divide",
    "compact",
    "constant",
    "floor_divide",
    "half_even",
    "half_up",
    "multiply",
    "negate",
    "peak",
    "subtract",
    "trunc_divide",
]

Ints = npt.NDArray[Any]
"""int64, or Python integers as objects."""

Operation = Callable[[Ints, Ints], Ints]

_LIMIT: Final = 1 << 63


def constant(value: int) -> Ints:
    """Make a column of one value, which broadcasts against any other."""
    return np.array([value], np.int64 if -_LIMIT <= value < _LIMIT else object)


def peak(column: Ints) -> int:
    """Return the greatest magnitude in a column."""
    return max(abs(int(column.min())), abs(int(column.max()))) if column.size else 0


def compact(column: Ints) -> Ints:
    """Go back to int64 where everything fits."""
    if column.dtype == object and (not column.size or (column.min() >= -_LIMIT and column.max() < _LIMIT)):
        return column.astype(np.int64)
    return column


def add(left: Ints, right: Ints) -> Ints:
    """Add exactly."""
    left, right = _roomy(left, right, peak(left) + peak(right))
    result: Ints = left + right
    return result


def subtract(left: Ints, right: Ints) -> Ints:
    """Subtract exactly."""
    left, right = _roomy(left, right, peak(left) + peak(right))
    result: Ints = left - right
    return result


def multiply(left: Ints, right: Ints) -> Ints:
    """Multiply exactly."""
    left, right = _roomy(left, right, peak(left) * peak(right))
    result: Ints = left * right
    return result


def negate(column: Ints) -> Ints:
    """Negate exactly."""
    return subtract(constant(0), column)


def floor_divide(left: Ints, right: Ints) -> Ints:
    """Divide and round down; the divisor is never zero."""
    left, right = _roomy(left, right, peak(left) + 1)
    result: Ints = left // right
    return result


def ceil_divide(left: Ints, right: Ints) -> Ints:
    """Divide and round up; the divisor is never zero."""
    return negate(floor_divide(negate(left), right))


def trunc_divide(left: Ints, right: Ints) -> Ints:
    """Divide and round towards zero, as Java does; the divisor is never zero."""
    down, up = floor_divide(left, right), ceil_divide(left, right)
    return np.where(down < 0, up, down)


def half_up(left: Ints, divisor: int) -> Ints:
    """Divide by a positive number and round to the nearest, halves away from zero."""
    if divisor == 1:
        return left
    doubled = multiply(left, constant(2))
    up = floor_divide(add(doubled, constant(divisor)), constant(2 * divisor))
    down = ceil_divide(subtract(doubled, constant(divisor)), constant(2 * divisor))
    return np.where(left < 0, down, up)


def half_even(left: Ints, divisor: int) -> Ints:
    """Divide by a positive number and round to the nearest, halves to the even one."""
    if divisor == 1:
        return left
    doubled = add(multiply(left, constant(2)), constant(divisor))
    nearest = floor_divide(doubled, constant(2 * divisor))
    tie = doubled == multiply(nearest, constant(2 * divisor))
    return np.where(tie & (nearest % 2 != 0), subtract(nearest, constant(1)), nearest)


def _roomy(left: Ints, right: Ints, most: int) -> tuple[Ints, Ints]:
    """Make room for results up to a magnitude."""
    if most < _LIMIT and object not in (left.dtype, right.dtype):
        return left, right
    return left.astype(object), right.astype(object)
