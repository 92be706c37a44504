"""Dates and times as text, where the text is in the order of time: digits from the year down.

Only years of four digits are, from 1 to 9999; around them nothing is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from instar.skipping import exact, strings
from instar.skipping.exact import Ints, constant
from instar.skipping.expression import Literal
from instar.skipping.kernels.outcome import Outcome, unknown
from instar.skipping.representation import name_of
from instar.skipping.spans import YES, Mask, Span, Text, Whole
from instar.skipping.zones import DAY, SECOND, to_local

if TYPE_CHECKING:
    from instar.skipping.expression import Call
    from instar.skipping.strings import Strings

__all__ = ["date_text", "format_seconds", "format_timestamp"]

_PATTERNS: Final = {
    "yyyy": (4, ""),
    "yyyy-MM": (7, ""),
    "yyyy-MM-dd": (10, ""),
    "yyyy-MM-dd HH": (13, ""),
    "yyyy-MM-dd HH:mm": (16, ""),
    "yyyy-MM-dd HH:mm:ss": (19, ""),
    "yyyyMM": (7, "-"),
    "yyyyMMdd": (10, "-"),
}
"""How much of `2025-01-31 23:59:59` a pattern shows, and which mark it leaves out."""

_FIRST, _LAST = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31 in days."""


def date_text(_: Call, span: Whole) -> Outcome:
    """Cast a date to a string."""
    return _texts(
        exact.multiply(span.lo, constant(86_400)), exact.multiply(span.hi, constant(86_400)), (10, "")
    )


def format_timestamp(call: Call, span: Whole, _: Span) -> Outcome:
    """Format a timestamp by a pattern."""
    zone = "UTC" if name_of(call.args[0].type) == "timestamp_ntz" else call.zone
    return _formatted(call, *to_local(span.lo, span.hi, zone))


def format_seconds(call: Call, span: Whole, _: Span) -> Outcome:
    """Format a number of seconds since 1970 by a pattern."""
    lo, hi = (exact.multiply(column, constant(SECOND)) for column in (span.lo, span.hi))
    if exact.peak(lo) >= 1 << 62 or exact.peak(hi) >= 1 << 62:
        return unknown(call)
    return _formatted(call, *to_local(lo, hi, call.zone))


def _formatted(call: Call, lo: Ints, hi: Ints) -> Outcome:
    pattern = call.args[1]
    shape = (
        _PATTERNS.get(pattern.value)
        if isinstance(pattern, Literal) and isinstance(pattern.value, str)
        else None
    )
    if shape is None:
        return unknown(call)
    second = constant(SECOND)
    return _texts(exact.floor_divide(lo, second), exact.floor_divide(hi, second), shape)


def _texts(lo: Ints, hi: Ints, shape: tuple[int, str]) -> Outcome:
    first, last = _FIRST * (DAY // SECOND), (_LAST + 1) * (DAY // SECOND) - 1
    known = np.asarray((lo >= first) & (hi <= last), np.bool_)
    low = strings.choose(known, _text(lo, known, shape), strings.constant(b""))
    high = strings.choose(known, _text(hi, known, shape), strings.constant(None))
    return Outcome((Text(low, high, YES),))


def _text(seconds: Ints, known: Mask, shape: tuple[int, str]) -> Strings:
    size, mark = shape
    safe = np.where(known, seconds, 0).astype(np.int64).astype("datetime64[s]")
    texts = pa.array(np.datetime_as_string(safe, unit="s").astype(f"U{size}"), pa.large_string())
    texts = pc.replace_substring(texts, "T", " ")
    return (pc.replace_substring(texts, mark, "") if mark else texts).cast(strings.BYTES)
