"""Which kernel a function has, by the kinds of its arguments. A function without one may do anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from instar.skipping.functions import Function
from instar.skipping.kernels import arithmetic, floating
from instar.skipping.kernels.casts import cast
from instar.skipping.kernels.compare import COMPARISONS
from instar.skipping.kinds import Kind

if TYPE_CHECKING:
    from instar.skipping.kernels.outcome import Kernel

__all__ = ["KERNELS", "find_kernel"]

_NUMBERS: Final[dict[Function, dict[Kind, Kernel]]] = {
    Function.ADD: {Kind.WHOLE: arithmetic.add, Kind.REAL: floating.add},
    Function.SUBTRACT: {Kind.WHOLE: arithmetic.subtract, Kind.REAL: floating.subtract},
    Function.MULTIPLY: {Kind.WHOLE: arithmetic.multiply, Kind.REAL: floating.multiply},
    Function.DIVIDE: {Kind.WHOLE: arithmetic.divide, Kind.REAL: floating.divide},
    Function.INTEGRAL_DIVIDE: {Kind.WHOLE: arithmetic.integral_divide},
    Function.REMAINDER: {Kind.WHOLE: arithmetic.remainder, Kind.REAL: floating.remainder},
    Function.POSITIVE_REMAINDER: {Kind.WHOLE: arithmetic.positive_remainder},
    Function.NEGATE: {Kind.WHOLE: arithmetic.negate, Kind.REAL: floating.negate},
    Function.ABS: {Kind.WHOLE: arithmetic.absolute, Kind.REAL: floating.absolute},
}

KERNELS: Final[dict[Function, dict[Kind, Kernel] | Kernel]] = {
    **_NUMBERS,
    **COMPARISONS,
    Function.CAST: cast,
}
"""Kernels by function, and by the kind of the arguments where it matters: all have the same kind then."""


def find_kernel(function: Function, kinds: list[Kind]) -> Kernel | None:
    """Find the kernel for arguments of some kinds."""
    found = KERNELS.get(function)
    if not isinstance(found, dict):
        return found
    return found.get(kinds[0]) if len(set(kinds)) == 1 else None
