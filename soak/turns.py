"""Turns of a soak: each has its own random numbers, so that one that found something can be had again."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Turn", "some_turns", "turns_for"]


class Turn(NamedTuple):
    """One turn: its name, `seed:number`, and its random numbers."""

    name: str
    random: random.Random


def turn(seed: int, number: int) -> Turn:
    """Return a turn of a seed, the same every time."""
    name = f"{seed}:{number}"
    return Turn(name, random.Random(name))


def some_turns(count: int, seed: int = 0) -> Iterator[Turn]:
    """Yield so many turns."""
    return (turn(seed, number) for number in range(count))


def turns_for(seconds: float, seed: int) -> Iterator[Turn]:
    """Yield turns until so many seconds have passed, and at least one."""
    end = time.monotonic() + seconds
    number = 0
    while number == 0 or time.monotonic() < end:
        yield turn(seed, number)
        number += 1
