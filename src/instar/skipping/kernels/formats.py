"""Dates and times as text, where the text is in the order of time: digits from the year down.

Only years of four digits are, from 1 to 9999; around them nothing is said.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from instar.skipping import exact, strings
from instar.skipping.exact import Ints, constant
from instar.skipping.expression import Call, Literal
from instar.skipping.functions import Function
from instar.skipping.kernels import calendar
from instar.skipping.kernels.outcome import Outcome, unknown
from instar.skipping.representation import name_of
from instar.skipping.spans import YES, Mask, Span, Text, Whole
from instar.skipping.zones import DAY, HOUR, MINUTE, SECOND, to_local

if TYPE_CHECKING:
    from instar.skipping.expression import Expression
    from instar.skipping.strings import Strings

__all__ = ["date_text", "format_seconds", "format_timestamp", "is_in_order", "marks_of"]

_PATTERN: Final = re.compile(
    r"yyyy(?:([-/ .:_]?)MM(?:([-/ .:_]?)dd(?:([-/ .:_]?)HH(?:([-/ .:_]?)mm(?:([-/ .:_]?)ss)?)?)?)?)?"
)
"""Fields of time in their order, and the marks between them."""
_PLACES: Final = ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16), (17, 19))
"""Where these fields are in `2025-01-31 23:59:59`."""
_ISO: Final = ("-", "-")
_CLOCKS: Final = {"HH": (HOUR, 24), "mm": (MINUTE, 60), "ss": (SECOND, 60)}
_PARTS: Final = {"MM": calendar.cyclic(calendar.months_of, 12), "dd": calendar.day_of_month}
"""Patterns of a single field that goes round."""

_FIRST, _LAST = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31 in days."""


def marks_of(pattern: str) -> tuple[str, ...] | None:
    """Return what stands between the fields of a pattern, if these are a year and smaller units in order."""
    match = _PATTERN.fullmatch(pattern)
    return None if match is None else tuple(mark for mark in match.groups() if mark is not None)


def is_in_order(value: Expression) -> bool:
    """Tell whether an expression writes times, or a field of them, all alike and in their order."""
    if not isinstance(value, Call):
        return False
    if value.function not in ("date_format", "from_unixtime"):
        return value.function == Function.CAST and name_of(value.args[0].type) == "date"
    pattern = value.args[1].value if isinstance(value.args[1], Literal) else None
    return isinstance(pattern, str) and (pattern in (*_CLOCKS, *_PARTS) or marks_of(pattern) is not None)


def date_text(_: Call, span: Whole) -> Outcome:
    """Cast a date to a string."""
    return _texts(exact.multiply(span.lo, constant(86_400)), exact.multiply(span.hi, constant(86_400)), _ISO)


def format_timestamp(call: Call, span: Whole, _: Span) -> Outcome:
    """Format a timestamp by a pattern."""
    return _formatted(call, *to_local(span.lo, span.hi, calendar.zone_of(call)))


def format_seconds(call: Call, span: Whole, _: Span) -> Outcome:
    """Format a number of seconds since 1970 by a pattern."""
    lo, hi = (exact.multiply(column, constant(SECOND)) for column in (span.lo, span.hi))
    if exact.peak(lo) >= 1 << 62 or exact.peak(hi) >= 1 << 62:
        return unknown(call)
    return _formatted(call, *to_local(lo, hi, call.zone))


def _formatted(call: Call, lo: Ints, hi: Ints) -> Outcome:
    pattern = call.args[1]
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return unknown(call)
    if pattern.value in _CLOCKS:
        unit, count = _CLOCKS[pattern.value]
        found = calendar.cyclic(lambda column: exact.floor_divide(column, constant(unit)), count, first=0)
        return _two_digits(found(call, Whole(lo, hi, YES)))
    if pattern.value in _PARTS:
        day = constant(DAY)
        days = Whole(exact.floor_divide(lo, day), exact.floor_divide(hi, day), YES)
        return _two_digits(_PARTS[pattern.value](call, days))
    marks = marks_of(pattern.value)
    if marks is None:
        return unknown(call)
    second = constant(SECOND)
    return _texts(exact.floor_divide(lo, second), exact.floor_divide(hi, second), marks)


def _two_digits(outcome: Outcome) -> Outcome:
    """Write what goes round in two digits, which are in the order of numbers."""
    spans = [
        Text(_padded(span.lo), _padded(span.hi), span.some)
        for span in outcome.spans
        if isinstance(span, Whole)
    ]
    return Outcome(tuple(spans))


def _padded(numbers: Ints) -> Strings:
    texts = np.char.zfill(np.clip(numbers, 0, 99).astype(np.int64).astype("U2"), 2)
    return pa.array(texts, pa.large_string()).cast(strings.BYTES)


def _texts(lo: Ints, hi: Ints, marks: tuple[str, ...]) -> Outcome:
    first, last = _FIRST * (DAY // SECOND), (_LAST + 1) * (DAY // SECOND) - 1
    known = np.asarray((lo >= first) & (hi <= last), np.bool_)
    low = strings.choose(known, _text(lo, known, marks), strings.constant(b""))
    high = strings.choose(known, _text(hi, known, marks), strings.constant(None))
    return Outcome((Text(low, high, YES),))


def _text(seconds: Ints, known: Mask, marks: tuple[str, ...]) -> Strings:
    safe = np.where(known, seconds, 0).astype(np.int64).astype("datetime64[s]")
    whole = pa.array(np.datetime_as_string(safe, unit="s").astype("U19"), pa.large_string())
    pieces = [pc.utf8_slice_codeunits(whole, *place) for place in _PLACES[: len(marks) + 1]]
    texts = pieces[0]
    for mark, piece in zip(marks, pieces[1:], strict=True):
        texts = pc.binary_join_element_wise(texts, piece, pa.scalar(mark, pa.large_string()))
    return texts.cast(strings.BYTES)
