"""Columns of byte strings in Arrow: comparing and choosing between bounds, one of which may be missing.

A missing upper bound is null and means that nothing is above all values. A column of one row broadcasts.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "BYTES",
    "Mask",
    "Strings",
    "choose",
    "constant",
    "from_arrow",
    "greater_bound",
    "is_missing",
    "least",
    "lesser_bound",
    "not_above",
    "strictly_below",
    "successor",
]

Mask = npt.NDArray[np.bool_]
Strings = Any
"""A pyarrow array of binaries."""

BYTES: Final = pa.large_binary()


def constant(value: bytes | None) -> Strings:
    """Make a column of one value, which broadcasts against any other."""
    return pa.array([value], BYTES)


def from_arrow(column: pa.Array) -> Strings:
    """Take strings or binaries as bytes."""
    return column.cast(pa.binary()).cast(BYTES) if pa.types.is_string(column.type) else column.cast(BYTES)


def strictly_below(low: Strings, high: Strings) -> Mask:
    """Tell where a lower bound is below an upper bound; everything is below a missing one."""
    return _compare(pc.less, low, high, missing=True)


def not_above(low: Strings, high: Strings) -> Mask:
    """Tell where a lower bound is at most an upper bound."""
    return _compare(pc.less_equal, low, high, missing=True)


def least(left: Strings, right: Strings) -> Strings:
    """Return the lesser of two lower bounds."""
    left, right = _aligned(left, right)
    return choose(_compare(pc.less, left, right, missing=True), left, right)


def greater_bound(left: Strings, right: Strings) -> Strings:
    """Return the greater of two upper bounds: a missing one if either is missing."""
    left, right = _aligned(left, right)
    return choose(_compare(pc.greater, left, right, missing=True) & ~is_missing(right), left, right)


def lesser_bound(left: Strings, right: Strings) -> Strings:
    """Return the lesser of two upper bounds: a missing one only if both are missing."""
    left, right = _aligned(left, right)
    below = _compare(pc.less, left, right, missing=False)
    return choose(below | is_missing(right), left, right)


def choose(mask: Mask, then: Strings, otherwise: Strings) -> Strings:
    """Take from one column where the mask says so, and from the other elsewhere."""
    length = _common_length(mask, then, otherwise)
    return pc.if_else(
        pa.array(np.broadcast_to(mask, length)), _stretched(then, length), _stretched(otherwise, length)
    )


def successor(prefix: bytes) -> bytes | None:
    """Return the least string that is above all strings with a prefix, if there is one."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


def _compare(function: Any, left: Strings, right: Strings, *, missing: bool) -> Mask:  # noqa: ANN401
    left, right = _aligned(left, right)
    result = pc.fill_null(function(left, right), missing)
    return np.asarray(result.to_numpy(zero_copy_only=False), dtype=np.bool_)


def is_missing(column: Strings) -> Mask:
    """Tell where there is no bound."""
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _aligned(left: Strings, right: Strings) -> tuple[Strings, Strings]:
    length = _common_length(left, right)
    return _stretched(left, length), _stretched(right, length)


def _common_length(*columns: Mask | Strings) -> int:
    """Return how long columns are of which some may have one value for all parts; there may be no parts."""
    return next((len(column) for column in columns if len(column) != 1), 1)


def _stretched(column: Strings, length: int) -> Strings:
    return column if len(column) == length else pa.repeat(column[0], length)
