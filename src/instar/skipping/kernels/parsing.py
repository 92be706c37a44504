"""Strings read as numbers, dates and times.

A string is read if it is the only one of a part, or if all of them come from a function that writes times in
their order. From others anything may come: somewhere between two strings there is always one that is no date.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from instar.schema import Primitive
from instar.skipping import strings
from instar.skipping.columns import held_value
from instar.skipping.exact import compact
from instar.skipping.expression import Literal
from instar.skipping.functions import Mode
from instar.skipping.kernels.formats import is_in_order, marks_of
from instar.skipping.kernels.outcome import Outcome, fitted, unknown
from instar.skipping.literals import fold_string
from instar.skipping.representation import Representation, name_of, representation_of
from instar.skipping.spans import Mask, Real, Text, Whole, full_span, restrict, single
from instar.skipping.zones import to_utc

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.schema import Type
    from instar.skipping.expression import Call
    from instar.skipping.spans import Span
    from instar.skipping.strings import Strings

__all__ = ["read_by_pattern", "read_text"]

_LOCAL: Final = Primitive("timestamp_ntz")
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 -- a local time
_FIRST: Final = ("1970", "1", "1", "0", "0", "0")
_MOST: Final = 20_000
"""The most different strings that are read, because they are read one by one."""

_Read = tuple[Any, Any] | None
"""The least and the greatest value that a string may mean, as spans hold them, or None if it is not plain."""


def read_text(call: Call, text: Text) -> Outcome:
    """Cast a string."""
    if representation_of(call.type) not in (Representation.WHOLE, Representation.REAL):
        return unknown(call)
    if not is_in_order(call.args[0]):
        return _read(call, text, single(text), lambda own: _folded(own, call.type, call.zone))
    instants = name_of(call.type) == "timestamp"
    type_ = _LOCAL if instants else call.type
    return _read(
        call, text, ~strings.is_missing(text.hi), lambda own: _folded(own, type_, None), local=instants
    )


def read_by_pattern(call: Call, text: Text, _: Text) -> Outcome:
    """Read a date or a time that is written by a pattern."""
    pattern = call.args[1]
    marks = (
        marks_of(pattern.value) if isinstance(pattern, Literal) and isinstance(pattern.value, str) else None
    )
    if marks is None:
        return unknown(call)
    shape = re.compile(r"(\d{4})" + "".join(re.escape(mark) + r"(\d\d)" for mark in marks), re.ASCII)
    return _read(call, text, single(text), lambda own: _dated(own, shape), local=True)


def _read(
    call: Call, text: Text, known: Mask, read: Callable[[str], _Read], *, local: bool = False
) -> Outcome:
    """Read both bounds where they are known, perhaps as local times. Other strings may come to anything."""
    columns = [_values(column, known, read, end) for end, column in enumerate((text.lo, text.hi))]
    known = known & columns[0][1] & columns[1][1]
    span = _span(columns[0][0], columns[1][0], call.type, known)
    others = full_span(call.type, ~known)
    if not local or not isinstance(span, Whole):
        return Outcome((span, others), ~known, ~known)
    fits = fitted(*to_utc(span.lo, span.hi, call.zone, either=True), call.type, Mode.UNKNOWN, wraps=True)
    spans = tuple(restrict(own, known) for own in fits.spans)
    return Outcome((*spans, others), ~known | fits.null, ~known | fits.fail)


def _values(
    column: Strings, known: Mask, read: Callable[[str], _Read], end: int
) -> tuple[npt.NDArray[Any], Mask]:
    """Read each different string once; return an end of what each may mean, and where it is known."""
    wanted = strings.choose(known, column, strings.constant(None)).dictionary_encode()
    found = [None if len(wanted.dictionary) > _MOST else read(own) for own in _decoded(wanted.dictionary)]
    found.append(None)
    places = wanted.indices.fill_null(len(found) - 1).to_numpy(zero_copy_only=False)
    values = np.array([0 if own is None else own[end] for own in found], object)
    return values[places], np.array([own is not None for own in found])[places]


def _span(lo: npt.NDArray[Any], hi: npt.NDArray[Any], type_: Type, known: Mask) -> Span:
    if representation_of(type_) is Representation.WHOLE:
        return Whole(compact(lo), compact(hi), known)
    first, last = lo.astype(np.float64), hi.astype(np.float64)
    nan = np.isnan(first)
    return Real(np.where(nan, 0.0, first), np.where(nan, 0.0, last), known & ~nan, known & nan)


def _folded(text: str, type_: Type, zone: str | None) -> _Read:
    found = fold_string(text, type_, zone)
    if found is None or found.value is None:
        return None
    low = held_value(found.value, type_)
    return low, low if found.upto is None else held_value(found.upto, type_)


def _dated(text: str, shape: re.Pattern[str]) -> _Read:
    match = shape.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (
        int(part) for part in (*match.groups(), *_FIRST[shape.groups :])
    )
    try:
        since = dt.datetime(year, month, day, hour, minute, second) - _EPOCH  # noqa: DTZ001 -- a local time
    except ValueError:
        return None
    micros = since // dt.timedelta(microseconds=1)
    return micros, micros


def _decoded(column: Strings) -> list[str]:
    return [own.decode("utf-8", "replace") for own in column.to_pylist()]
