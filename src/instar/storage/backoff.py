"""How long to wait before trying again, so that many who collide do not collide again.

Whether trying again is right is for the caller to know.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["pauses"]


def pauses(first: float = 0.001, longest: float = 0.25) -> Iterator[float]:
    """Yield pauses in seconds forever: each random, up to a bound that doubles from `first` to `longest`.

    Drawing from the whole interval, instead of only near its end, spreads out those who collided.
    """
    bound = first
    while True:
        yield random.uniform(0, bound)  # noqa: S311 - nobody gains by guessing it
        bound = min(bound * 2, longest)
