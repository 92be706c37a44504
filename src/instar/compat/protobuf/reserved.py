"""Numbers that no field or value may take again, because old records may still hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.compat.judgement import Difference, conditional

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.compat.protobuf.model import ProtobufEnum, ProtobufMessage, Ranges

__all__ = ["covers", "reservations"]


def covers(ranges: Ranges, number: int) -> bool:
    """Whether a number is reserved."""
    return any(first <= number <= last for first, last in ranges)


def reservations(
    old: ProtobufMessage | ProtobufEnum, new: ProtobufMessage | ProtobufEnum, path: str, taken: set[int]
) -> Iterator[Difference]:
    """Name the reservations that are given up, unless a number was taken: that is ruled on where it is."""
    for first, last in old.reserved:
        lost = _uncovered(first, last, new.reserved)
        if lost is not None and lost not in taken:
            span = str(first) if first == last else f"{first} to {last}"
            why = f"number {lost} is free again, and old records may still hold it under a deleted field"
            yield Difference(path, f"reservation dropped: {span}", wire=conditional(why))


def _uncovered(first: int, last: int, ranges: Ranges) -> int | None:
    """Return the first number of a span that no range covers."""
    at = first
    for start, end in ranges:
        if start <= at <= end:
            at = end + 1
    return at if at <= last else None
