"""Functions that change the letters of a string, or cut its ends: what ranges of strings still say then.

All strings in a range begin with what its bounds have in common. Only ASCII letters are followed: what
becomes of others depends on what stands around them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from instar.skipping import strings
from instar.skipping.kernels.outcome import Kernel, Outcome
from instar.skipping.spans import YES, Text, single

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.skipping.expression import Call
    from instar.skipping.strings import Mask, Strings

__all__ = ["cased", "trimmed"]

_SEEN: Final = 32
"""How many bytes of a bound are looked at."""
_ASCII: Final = 0x80
_SPACE: Final = 0x20

_Bytes = npt.NDArray[np.uint8]


def cased(change: Callable[[bytes], bytes], whole: Callable[[Strings], Strings]) -> Kernel:
    """Make a kernel of upper or lower: exact for ASCII, and otherwise by the first letters."""
    table = np.frombuffer(change(bytes(range(256))), np.uint8)
    # The least and the greatest of what the letters from one to another become.
    least = np.array(
        [[table[a : b + 1].min(initial=255) for b in range(_ASCII)] for a in range(_ASCII)], np.uint8
    )
    most = np.array(
        [[table[a : b + 1].max(initial=0) for b in range(_ASCII)] for a in range(_ASCII)], np.uint8
    )

    def kernel(_: Call, text: Text) -> Outcome:
        missing = strings.is_missing(text.hi)
        lo, hi = np.broadcast_arrays(_bytes(text.lo), _bytes(text.hi))
        ends = np.where(missing, 0, _prefix_length((lo == hi) & (lo < _ASCII) & (lo > 0)))
        first, last = (_letter_at(column, ends) for column in (lo, hi))
        known = (first < _ASCII) & (last < _ASCII) & (first <= last) & (ends < _SEEN - 1) & ~missing
        low, high = table[lo], table[hi]
        rows = np.flatnonzero(known)
        low[rows, ends[rows]] = least[first[rows], last[rows]]
        high[rows, ends[rows]] = most[first[rows], last[rows]]
        length = ends + known
        # One more in the last place is above all that begins alike.
        bounded = length > 0
        some = np.flatnonzero(bounded)
        high[some, length[some] - 1] += 1
        bounded &= _letter_at(high, np.maximum(length - 1, 0)) < _ASCII
        below = _cut(low, np.where(first > 0, length, ends))
        above = strings.choose(
            bounded, _cut(np.where(bounded[:, None], high, 0), length), strings.constant(None)
        )
        plain = single(text) & _is_ascii(text.lo)
        same = whole(text.lo)
        return Outcome((Text(strings.choose(plain, same, below), strings.choose(plain, same, above), YES),))

    return kernel


def trimmed(whole: Callable[[Strings], Strings], *, left: bool, right: bool) -> Kernel:
    """Make a kernel of trim: exact for a known string; one that begins with no space keeps its place."""

    def kernel(_: Call, text: Text) -> Outcome:
        lo = _bytes(text.lo)
        starts = lo[:, 0] > _SPACE if left else YES
        low = _cut(lo, _prefix_length(lo > _SPACE)) if right else text.lo
        low = strings.choose(starts, low, strings.constant(b""))
        high = strings.choose(starts, text.hi, strings.constant(None))
        exact, same = single(text), whole(text.lo)
        return Outcome((Text(strings.choose(exact, same, low), strings.choose(exact, same, high), YES),))

    return kernel


def _bytes(column: Strings) -> _Bytes:
    """Return the first bytes of strings as a matrix; past their ends there are zeros."""
    cut = pc.binary_slice(column.fill_null(b""), 0, _SEEN).to_pylist()
    return np.array(cut, f"S{_SEEN}").view(np.uint8).reshape(-1, _SEEN)


def _prefix_length(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Count how many of the first bytes are as wanted, before the first that is not."""
    lengths: npt.NDArray[np.int64] = np.logical_and.accumulate(mask, axis=1).sum(axis=1)
    return lengths


def _letter_at(column: _Bytes, position: npt.NDArray[np.int64]) -> _Bytes:
    return column[np.arange(len(column)), np.minimum(position, _SEEN - 1)]


def _cut(column: _Bytes, length: npt.NDArray[np.int64]) -> Strings:
    """Return rows of bytes as strings of some length."""
    kept = np.where(np.arange(_SEEN) < length[:, None], column, 0).astype(np.uint8)
    return pa.array(np.ascontiguousarray(kept).view(f"S{_SEEN}").ravel().tolist(), strings.BYTES)


def _is_ascii(column: Strings) -> Mask:
    found = pc.string_is_ascii(column.cast(pa.large_string()))
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)
