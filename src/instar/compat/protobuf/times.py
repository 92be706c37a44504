"""Times and durations of protobuf in microseconds."""

from __future__ import annotations

from typing import Final

import numpy as np

__all__ = ["TIMES", "as_micros"]

_MICROS: Final = 1_000_000
_BILLION: Final = 10**9
_LONGEST: Final = 315_576_000_000

TIMES: Final = {
    "google.protobuf.Timestamp": (-62_135_596_800, 253_402_300_799),
    "google.protobuf.Duration": (-_LONGEST, _LONGEST),
}
"""The messages that are times, and the first and the last second that each may have."""


def as_micros(
    seconds: np.ndarray, nanos: np.ndarray, bounds: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return microseconds, and which of them are wrong; what is finer is cut off, toward the past."""
    wrong = (seconds < bounds[0]) | (seconds > bounds[1]) | (np.abs(nanos) >= _BILLION)
    return np.where(wrong, 0, seconds) * _MICROS + nanos // 1000, wrong
