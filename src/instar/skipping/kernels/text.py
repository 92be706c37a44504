"""Functions of strings: prefixes keep the order of bytes, most else does not.

A value that is known exactly is treated exactly where Arrow and Spark agree on what to do with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from instar.skipping import strings
from instar.skipping.expression import Literal
from instar.skipping.kernels.outcome import Outcome, any_value, predicate, unknown
from instar.skipping.kernels.patterns import read_anchored, read_pattern
from instar.skipping.representation import limits, name_of
from instar.skipping.spans import YES, Mask, Text, Whole, single

if TYPE_CHECKING:
    from instar.skipping.expression import Call
    from instar.skipping.strings import Strings

__all__ = [
    "concat",
    "contains",
    "ends_with",
    "length",
    "like",
    "matches",
    "prefix",
    "starts_with",
    "substring",
]

_SECOND_BYTE: Final = b"\x80"
_FIRST_BYTE: Final = b"\xc0"
"""Bytes from the one to below the other go on with a character that began before."""
_LONGEST: Final = 256
"""The longest bound of which all beginnings are looked at."""


def starts_with(call: Call, text: Text, _: Text) -> Outcome:
    """Compare a prefix: all strings that have it lie side by side in the order of bytes."""
    wanted = _literal(call, 1)
    if wanted is None:
        return any_value(call)
    return predicate(*_prefix_masks(text, wanted))


def ends_with(call: Call, text: Text, _: Text) -> Outcome:
    """Compare a suffix, which only a string that is known exactly decides."""
    wanted = _literal(call, 1)
    return any_value(call) if wanted is None else _known_only(text, pc.ends_with, wanted)


def contains(call: Call, text: Text, _: Text) -> Outcome:
    """Search for a piece, which only a string that is known exactly decides."""
    wanted = _literal(call, 1)
    return any_value(call) if wanted is None else _known_only(text, pc.match_substring, wanted)


def like(call: Call, text: Text, *_: Text) -> Outcome:
    """Match a pattern: what stands before its first wildcard is a prefix of every match."""
    wanted = _literal(call, 1)
    escape = _literal(call, 2) if len(call.args) > 2 else None  # noqa: PLR2004 -- the third
    found = (
        None if wanted is None else read_pattern(wanted.decode(), None if escape is None else escape.decode())
    )
    if found is None:
        return unknown(call)
    true, false = _prefix_masks(text, found.prefix.encode())
    if found.rest == "":
        known = strings.constant(found.prefix.encode())
        same = _equal_masks(text, known)
        return predicate(*same)
    return predicate(true, false if found.rest == "%" else YES)


def matches(call: Call, text: Text, _: Text) -> Outcome:
    """Match a regular expression: if it is anchored, what it begins with is a prefix of every match."""
    wanted = _literal(call, 1)
    found = None if wanted is None else read_anchored(wanted.decode())
    if found is None:
        return unknown(call)
    masks = [_prefix_masks(text, prefix.encode()) for prefix in found.prefixes]
    true = np.logical_or.reduce([own for own, _ in masks])
    false = np.logical_and.reduce([own for _, own in masks])
    return predicate(true, text.some if found.more else false)


def prefix(call: Call, text: Text, _: Whole) -> Outcome:
    """Take the first characters, or bytes of a binary: in order if the whole is."""
    size = _number(call, 1)
    return any_value(call) if size is None else _cut(call, text, 0, size)


def substring(call: Call, text: Text, *_: Whole) -> Outcome:
    """Take characters from the middle, counted from 1: in order if all strings begin with the same ones."""
    start, size = _number(call, 1), _number(call, 2)
    if start is None or size is None or start < 0:
        return any_value(call)
    return _cut(call, text, max(start - 1, 0), size)


def _cut(call: Call, text: Text, skipped: int, size: int) -> Outcome:
    is_binary = name_of(call.type) == "binary"
    cut, count = (pc.binary_slice, pc.binary_length) if is_binary else (_characters, _count)
    lo, hi = (cut(column, skipped, skipped + max(size, 0)) for column in (text.lo, text.hi))
    if skipped == 0:
        return Outcome((Text(lo, hi, YES),))
    first, last = (cut(column, 0, skipped) for column in (text.lo, text.hi))
    alike = ~strings.is_missing(last) & ~strings.strictly_below(first, last)
    alike = alike & np.asarray(count(first).to_numpy(zero_copy_only=False) == skipped, np.bool_)
    low = strings.choose(alike, lo, strings.constant(b""))
    return Outcome((Text(low, strings.choose(alike, hi, strings.constant(None)), YES),))


def concat(_: Call, *texts: Text) -> Outcome:
    """Join strings: as long as all before are known exactly, the bounds of the next one count."""
    lo, hi, exact = texts[0].lo, texts[0].hi, single(texts[0])
    for text in texts[1:]:
        # What follows a string that is not known exactly may stand in any place after it.
        above = strings.constant(None) if exact.all() else _highest(lo, hi, text.hi)
        lo, hi = (
            strings.choose(exact, _joined(lo, text.lo), lo),
            strings.choose(exact, _joined(hi, text.hi), above),
        )
        exact = exact & single(text)
    return Outcome((Text(lo, hi, YES),))


def _highest(lo: Strings, hi: Strings, after: Strings) -> Strings:
    """Return what no string from one to another comes above if something up to a bound follows it.

    A string that is less than its upper bound in some letter stays so. Others begin the bound, and then what
    follows counts: `a` with `z` after it comes above `ab` with `z` after it.
    """
    longest = pc.max(pc.binary_length(hi)).as_py() or 0
    if longest > _LONGEST:
        return strings.constant(None)
    second, first = strings.constant(_SECOND_BYTE), strings.constant(_FIRST_BYTE)
    highest = _joined(hi, after)
    for size in range(longest):
        begun, letter = pc.binary_slice(hi, 0, size), pc.binary_slice(hi, size, size + 1)
        # No string ends in the middle of a character.
        inside = strings.not_above(second, letter) & strings.strictly_below(letter, first)
        possible = strings.not_above(lo, begun) & ~strings.is_missing(hi) & ~inside
        if possible.any():
            highest = strings.choose(possible, strings.greater_bound(highest, _joined(begun, after)), highest)
    return highest


def length(call: Call, text: Text) -> Outcome:
    """Count characters, or bytes of a binary: known if the string is, and at least one if it is not empty."""
    count = pc.binary_length if name_of(call.args[0].type) == "binary" else _count
    exact = single(text)
    known = np.asarray(count(text.lo).to_numpy(zero_copy_only=False), np.int64)
    lo = np.where(exact, known, np.minimum(known, 1))
    return Outcome((Whole(lo, np.where(exact, known, limits(call.type)[1]), YES),))


def _prefix_masks(text: Text, wanted: bytes) -> tuple[Mask, Mask]:
    first, past = strings.constant(wanted), strings.constant(strings.successor(wanted))
    true = strings.not_above(first, text.hi) & strings.strictly_below(text.lo, past)
    inside = strings.not_above(first, text.lo)
    last = strings.strictly_below(
        strings.choose(strings.is_missing(text.hi), strings.constant(b""), text.hi), past
    )
    bounded = last & ~(strings.is_missing(text.hi) & ~strings.is_missing(past))
    return text.some & true, text.some & ~(inside & bounded)


def _equal_masks(text: Text, known: Strings) -> tuple[Mask, Mask]:
    equal = strings.not_above(text.lo, known) & strings.not_above(known, text.hi)
    return text.some & equal, text.some & ~(single(text) & equal)


def _known_only(text: Text, test: Any, wanted: bytes) -> Outcome:  # noqa: ANN401 -- a function of Arrow
    exact = single(text)
    found = np.asarray(test(text.lo, pattern=wanted).to_numpy(zero_copy_only=False), np.bool_)
    return predicate(text.some & (found | ~exact), text.some & (~found | ~exact))


def _number(call: Call, position: int) -> int | None:
    arg = call.args[position]
    return arg.value if isinstance(arg, Literal) and isinstance(arg.value, int) else None


def _literal(call: Call, position: int) -> bytes | None:
    arg = call.args[position]
    if not isinstance(arg, Literal) or arg.value is None:
        return None
    return (
        arg.value.encode()
        if isinstance(arg.value, str)
        else arg.value
        if isinstance(arg.value, bytes)
        else None
    )


def _joined(left: Strings, right: Strings) -> Strings:
    """Join bytes with bytes; a missing bound stays missing."""
    size = max(len(left), len(right))
    left, right = (column if len(column) == size else pa.repeat(column[0], size) for column in (left, right))
    return pc.binary_join_element_wise(left, right, pa.scalar(b"", strings.BYTES), null_handling="emit_null")


def _characters(column: Strings, start: int, stop: int) -> Strings:
    return pc.utf8_slice_codeunits(column.cast(pa.large_string()), start, stop).cast(strings.BYTES)


def _count(column: Strings) -> Strings:
    return pc.utf8_length(column.cast(pa.large_string()))
