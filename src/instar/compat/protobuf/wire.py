"""The bytes of many messages at once: each step reads the next field of all of them, with NumPy.

Only what messages ordinarily look like is read here. One that is broken or merely unusual is marked as odd,
and the caller has it read by protobuf's own library. `reader.py` makes columns of what is found.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

__all__ = ["LENGTH", "VARINT", "Messages", "Numbers", "WireFields", "scan", "unpack_fixed", "unpack_varints"]

Numbers = np.ndarray

VARINT: Final = 0
LENGTH: Final = 2
_SIZES: Final = np.array([0, 8, 0, -1, -1, 4, -1, -1])
"""How many bytes a value takes, by wire type, as far as its tag tells; -1 is what we leave to the library."""
_MOST_FIELDS: Final = 256
"""How many fields of one message are read before it counts as odd: a step costs the same for one message."""
_LONGEST_TAG: Final = 5
_LONGEST: Final = 10
_MORE: Final = 0x80
_LARGEST: Final = 2**31 - 1


class Messages(NamedTuple):
    """Messages of one kind that lie in the bytes of records, in the order of these bytes."""

    data: Numbers
    start: Numbers
    end: Numbers
    record: Numbers
    """The record that each message is in."""
    odd: Numbers
    """By record: whether the library must read it."""
    unknown: Numbers
    """By record: whether it has fields that are not known."""

    def mark(self, messages: Numbers) -> None:
        """Leave the records of some messages to the library."""
        self.odd[self.record[messages]] = True


class WireFields(NamedTuple):
    """Fields as messages have them: in which message each is, and what its value is or where it lies."""

    message: Numbers
    number: Numbers
    wire: Numbers
    value: Numbers
    at: Numbers
    size: Numbers

    def choose(self, which: Numbers | slice) -> WireFields:
        """Return some of them, by a mask or by positions."""
        return WireFields(*(column[which] for column in self))


def scan(level: Messages) -> WireFields:
    """Find the fields of all messages, sorted by number and message, in the order that a message has them."""
    live = np.flatnonzero(level.start < level.end)
    at, stop = level.start[live], level.end[live]
    steps: list[WireFields] = []
    for _ in range(_MOST_FIELDS):
        if not live.size:
            break
        tag, after, good = _read_varints(level.data, at, stop)
        wire = (tag & np.uint64(7)).astype(np.intp)
        number = (tag >> np.uint64(3)).astype(np.int64)
        size = _SIZES[wire]
        good &= (size >= 0) & (number > 0) & (after - at <= _LONGEST_TAG) & (tag <= np.uint64(2**32 - 1))
        value, after = _read_values(level.data, (wire == VARINT) | (wire == LENGTH), after, stop, good)
        is_span = wire == LENGTH
        good &= ~is_span | (value <= np.uint64(_LARGEST))
        size = np.where(is_span & good, value.astype(np.int64), size)
        good &= after + size <= stop
        found = WireFields(live, number, wire, value, after, size)
        if not good.all():
            level.mark(live[~good])
            found, stop = found.choose(good), stop[good]
        steps.append(found)
        at = found.at + found.size
        more = at < stop
        live, at, stop = found.message[more], at[more], stop[more]
    level.mark(live)
    if not steps:
        none = np.zeros(0, np.int64)
        return WireFields(none, none, none, np.zeros(0, np.uint64), none, none)
    whole = WireFields(*(np.concatenate(columns) for columns in zip(*steps, strict=True)))
    return whole.choose(np.argsort(whole.number * len(level.start) + whole.message, kind="stable"))


def _read_values(
    data: Numbers, which: Numbers, at: Numbers, stop: Numbers, good: Numbers
) -> tuple[Numbers, Numbers]:
    """Read numbers of variable length where there are some; what does not end is good no longer."""
    if which.all():
        value, after, fine = _read_varints(data, at, stop)
        good &= fine
        return value, after
    value, after = np.zeros(len(at), np.uint64), at.copy()
    value[which], after[which], fine = _read_varints(data, at[which], stop[which])
    good[which] &= fine
    return value, after


def _read_varints(data: Numbers, at: Numbers, stop: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return numbers of variable length, where each ends, and whether it is sound."""
    last = len(data) - 1
    good = at < stop
    byte = data[np.minimum(at, last)]
    value, after = (byte & 0x7F).astype(np.uint64), at + 1
    more = np.flatnonzero(good & (byte >= _MORE))
    for place in range(1, _LONGEST):
        if not more.size:
            break
        where = after[more]
        byte = data[np.minimum(where, last)]
        fine = where < stop[more]
        if place == _LONGEST - 1:
            fine &= byte <= 1  # a number has 64 bits
        good[more[~fine]] = False
        value[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * place)
        after[more] = where + 1
        more = more[fine & (byte >= _MORE)]
    return value, after, good


def _gather(data: Numbers, at: Numbers, size: Numbers) -> tuple[Numbers, Numbers]:
    """Return the bytes of spans, one after another, and the span that each is of."""
    ends = np.cumsum(size)
    total = int(ends[-1]) if len(ends) else 0
    span = np.repeat(np.arange(len(size)), size)
    return data[np.arange(total) + np.repeat(at - (ends - size), size)], span


def unpack_varints(level: Messages, found: WireFields) -> WireFields:
    """Return each number of variable length that lies in a packed field as a field of its own."""
    ended = (found.size == 0) | (level.data[found.at + found.size - 1] < _MORE)
    level.mark(found.message[~ended])
    found = found.choose(ended & (found.size > 0))
    data, span = _gather(level.data, found.at, found.size)
    if not len(data):
        return found
    first = np.concatenate([[0], np.flatnonzero(data < _MORE)[:-1] + 1])
    length = np.diff(first, append=len(data))
    level.mark(found.message[span[first[length >= _LONGEST]]])
    place = np.minimum(np.arange(len(data)) - np.repeat(first, length), _LONGEST - 1)
    value = np.add.reduceat((data & 0x7F).astype(np.uint64) << (7 * place).astype(np.uint64), first)
    each = found.choose(span[first])
    return each._replace(value=value, size=np.zeros(len(value), np.int64))


def unpack_fixed(level: Messages, found: WireFields, width: int) -> WireFields:
    """Return each number of fixed length that lies in a packed field as a field of its own."""
    whole = found.size % width == 0
    level.mark(found.message[~whole])
    found = found.choose(whole)
    counts = found.size // width
    ends = np.cumsum(counts)
    each = found.choose(np.repeat(np.arange(len(counts)), counts))
    within = np.arange(len(each.at)) - np.repeat(ends - counts, counts)
    return each._replace(at=each.at + width * within, size=np.full(len(within), width))
