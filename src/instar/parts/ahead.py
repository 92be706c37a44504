"""`map_ahead`: what comes next is made by threads while what came before is used, in the same order."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

__all__ = ["map_ahead"]

Given = TypeVar("Given")
Found = TypeVar("Found")


def map_ahead(function: Callable[[Given], Found], items: Iterable[Given], *, threads: int) -> Iterator[Found]:
    """Yield what a function makes of each item, in order, while as many threads work on the next ones."""
    waiting: deque[Future[Found]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for left in waiting:
                left.cancel()
