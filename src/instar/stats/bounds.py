"""`FieldStats`: nulls, NaNs and inclusive bounds of one leaf field in one part.

Bounds may be wider than the data and never narrower; what is not known is None. How many parts'
bounds lie side by side in columns is in `columns.py`.
"""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["FieldStats", "Value"]

Value = bool | int | float | str | bytes
"""A bound as it is stored: dates in days, timestamps and durations in microseconds, decimals as text."""


class FieldStats(msgspec.Struct, frozen=True, array_like=True):
    """What is known about one leaf field of one part.

    NaN counts as a value, but not towards `min` and `max`. So a field with `min` None and
    `nulls + nans` equal to the part's rows has no other values, and with fewer it may have any.
    """

    nulls: int | None
    nans: int | None
    min: Any = None  # a Value; msgspec cannot tell str from bytes in a union
    max: Any = None
