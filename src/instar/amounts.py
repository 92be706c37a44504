"""Counts, sizes and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = ["format_bytes", "format_count", "format_time"]

_KIB: Final = 1024
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def format_count(number: int, one: str = "", many: str = "") -> str:
    """Print a number with its thousands apart, and with what it counts."""
    noun = one if number == 1 else many or (one and f"{one}s")
    return f"{number:,} {noun}".rstrip()


def format_bytes(number: int) -> str:
    """Print a size in the unit that suits it."""
    size = float(number)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < _KIB:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= _KIB
    return f"{size:.1f} TiB"


def format_time(milliseconds: int) -> str:
    """Print milliseconds since 1970 as a time in UTC, which `as_of` takes; of no year, as they are."""
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return str(milliseconds)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{milliseconds % 1000:03d}"
