"""Asking for many things at once: most of the time goes by in waiting for answers.

What does things in the background of a program, and when, is not here.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["map_in_threads"]

Given = TypeVar("Given")
Found = TypeVar("Found")


def map_in_threads(
    function: Callable[[Given], Found], items: Sequence[Given], *, threads: int
) -> list[Found]:
    """Return what a function makes of each item, several at once. Doing it twice must do no harm.

    A process that is about to end starts no more threads; then it is one after the other.
    """
    if len(items) <= 1:
        return [function(item) for item in items]
    try:
        with ThreadPoolExecutor(min(threads, len(items))) as pool:
            running = [pool.submit(function, item) for item in items]
    except RuntimeError:
        return [function(item) for item in items]
    return [one.result() for one in running]
