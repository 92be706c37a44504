"""Time zones: from instants to local times and back, for ranges, by the offsets that a zone really had.

Local time does not grow with time: it jumps back in autumn and leaves gaps in spring. Transitions are
exact from 1970 to 2037, where all sources agree; outside, and in a zone that is not known, an offset may
be anything up to 18 hours, which is the most that Java has.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from instar.skipping import exact
from instar.skipping.exact import Ints, constant

__all__ = ["DAY", "HOUR", "MINUTE", "SECOND", "is_known", "midnights_to_utc", "to_local", "to_utc"]

SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

_MOST: Final = 18 * HOUR
_FIRST: Final = 0
_LAST: Final = int(dt.datetime(2037, 12, 31, tzinfo=dt.UTC).timestamp()) * SECOND
_FIXED = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::([0-5]\d))?", re.ASCII)
_ZERO: Final = frozenset(["UTC", "Z", "GMT", "UT", "Etc/UTC", "Etc/GMT", "Etc/UCT", "UCT", "Zulu"])
_STEP: Final = 12 * 3600

Columns = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Shift:
    """A function that adds a different number in each stretch between breaks."""

    breaks: Columns
    shifts: Columns

    def apply(self, lo: Columns, hi: Columns) -> tuple[Columns, Columns]:
        """Return the least and the greatest value over ranges."""
        first = np.searchsorted(self.breaks, lo, side="right")
        last = np.searchsorted(self.breaks, hi, side="right")
        low, high = lo + self.shifts[first], hi + self.shifts[last]
        if not len(self.breaks):
            return low, high
        # Where a range crosses breaks, it also starts and ends a stretch there.
        starts = np.minimum.accumulate((self.breaks + self.shifts[1:])[::-1])[::-1]
        ends = np.maximum.accumulate(self.breaks - 1 + self.shifts[:-1])
        crosses = last > first
        low = np.where(crosses, np.minimum(low, starts[np.minimum(first, len(starts) - 1)]), low)
        high = np.where(crosses, np.maximum(high, ends[np.maximum(last - 1, 0)]), high)
        return low, high


@dataclass(frozen=True)
class Zone:
    """A zone's transitions, as three shifts; `fixed` if it never had any."""

    local: Shift
    early: Shift
    """From local time back, by the earlier of two offsets; what falls into a gap is moved on by it."""
    late: Shift
    """The same, by the later of two offsets."""
    fixed: bool
    gaps: npt.NDArray[Any]
    """Gaps around a midnight: (first local time in it, first after it, the instant of the transition)."""


def is_known(zone: str | None) -> bool:
    """Tell whether there is such a zone for sure, in Spark too."""
    return _find_zone(zone) is not None


def to_local(lo: Ints, hi: Ints, zone: str | None) -> tuple[Ints, Ints]:
    """Return the range of local times over ranges of instants."""
    known = _find_zone(zone)
    if known is None:
        return exact.subtract(lo, constant(_MOST)), exact.add(hi, constant(_MOST))
    return _within(known.local, lo, hi, known.fixed)


def to_utc(lo: Ints, hi: Ints, zone: str | None, *, either: bool = False) -> tuple[Ints, Ints]:
    """Return the range of instants over ranges of local times.

    An ambiguous time is the earlier instant, or, if `either`, one of the two.
    """
    known = _find_zone(zone)
    if known is None:
        return exact.subtract(lo, constant(_MOST)), exact.add(hi, constant(_MOST))
    low, high = _within(known.early, lo, hi, known.fixed)
    if either and not known.fixed:
        low2, high2 = _within(known.late, lo, hi, known.fixed)
        return np.minimum(low, low2), np.maximum(high, high2)
    return low, high


def midnights_to_utc(lo: Ints, hi: Ints, zone: str | None) -> tuple[Ints, Ints]:
    """Return the range of instants at which days begin, which may be later than midnight."""
    low, high = to_utc(lo, hi, zone)
    known = _find_zone(zone)
    if known is None:
        return low, high
    for start, end, instant in known.gaps:
        # A day that begins inside a gap begins at the transition, not moved on by the gap.
        inside = np.asarray((lo < end) & (hi > start), np.bool_)
        low = np.where(inside, np.minimum(low, instant), low)
    return low, high


def _within(shift: Shift, lo: Ints, hi: Ints, fixed: bool) -> tuple[Ints, Ints]:  # noqa: FBT001
    """Shift exactly where transitions are known, and by anything possible elsewhere."""
    if fixed:
        offset = constant(int(shift.shifts[0]))
        return exact.add(lo, offset), exact.add(hi, offset)
    inside = np.asarray((lo >= _FIRST + 2 * _MOST) & (hi <= _LAST - 2 * _MOST), np.bool_)
    safe_lo = np.where(inside, lo, _LAST // 2).astype(np.int64)
    safe_hi = np.where(inside, hi, _LAST // 2).astype(np.int64)
    low, high = shift.apply(safe_lo, safe_hi)
    if inside.all():
        return low, high
    return (
        np.where(inside, low, exact.subtract(lo, constant(_MOST))),
        np.where(inside, high, exact.add(hi, constant(_MOST))),
    )


@cache
def _find_zone(name: str | None) -> Zone | None:
    if name in _ZERO:
        return _fixed_zone(0)
    match = _FIXED.fullmatch(name or "")
    if match is not None:
        sign, hours, minutes = match.groups()
        offset = int(hours) * HOUR + int(minutes or 0) * MINUTE
        return _fixed_zone(offset if sign == "+" else -offset) if offset <= _MOST else None
    if "/" not in (name or "") or (name or "").startswith(("posix/", "right/")):
        return None  # three letters mean different things to different people, and Java has no folders
    try:
        zone = ZoneInfo(name or "")
    except (LookupError, ValueError, OSError):
        return None
    return _make_zone(*_transitions(zone))


def _fixed_zone(offset: int) -> Zone:
    none = np.zeros(0, np.int64)
    local = Shift(none, np.array([offset], np.int64))
    back = Shift(none, np.array([-offset], np.int64))
    return Zone(local, back, back, fixed=True, gaps=np.zeros((0, 3), np.int64))


def _transitions(zone: ZoneInfo) -> tuple[list[int], list[int]]:
    """Find when the offset changes by looking twice a day, and then closer where it did."""
    instants: list[int] = []
    offsets = [_offset(zone, 0)]
    for second in range(0, _LAST // SECOND, _STEP):
        after = _offset(zone, second + _STEP)
        if after == offsets[-1]:
            continue
        low, high = second, second + _STEP
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _offset(zone, middle) == offsets[-1] else (low, middle)
        instants.append(high)
        offsets.append(after)
    return instants, offsets


def _offset(zone: ZoneInfo, second: int) -> int:
    offset = dt.datetime.fromtimestamp(second, zone).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


def _make_zone(instants: list[int], offsets: list[int]) -> Zone | None:
    when = np.array(instants, np.int64) * SECOND
    offset = np.array(offsets, np.int64) * SECOND
    before, after = offset[:-1], offset[1:]
    early, late = when + np.maximum(before, after), when + after
    if any((np.diff(breaks) <= 0).any() for breaks in (early, late)):
        return None
    # Only gaps that a midnight falls into: elsewhere days begin as usual.
    gap = (when + after - 1) // DAY * DAY > when + before
    gaps = np.stack([(when + before)[gap], (when + after)[gap], when[gap]], axis=1)
    shifts = Shift(when, offset), Shift(early, -offset), Shift(late, -offset)
    return Zone(*shifts, fixed=False, gaps=gaps)
