"""Durations as people write them."""

from __future__ import annotations

import re
from typing import Final

from instar.errors import UsageError

__all__ = ["is_duration", "parse_duration"]

_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"(\d{1,9})(ms|s|m|h|d)", re.ASCII)


def is_duration(text: str) -> bool:
    """Tell whether a text is a number and a unit, and nothing else."""
    return _DURATION.fullmatch(text) is not None


def parse_duration(text: str) -> int:
    """Read a duration such as `90s`, `24h` or `7d`, and return milliseconds."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"{text!r} is not a duration: write a number and a unit, such as 90s, 30m, 24h or 7d"
        )
    return int(match[1]) * _UNITS[match[2]]
