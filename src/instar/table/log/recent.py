"""`Recent`: values that were used last, up to a limit on what they weigh, for many threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["Recent"]

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """Keeps values that never change. The one that was used last stays, however much it weighs."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._weight = 0
        self._lock = threading.Lock()

    def __contains__(self, key: Hashable) -> bool:
        """Whether a value is kept; this is no use of it."""
        return key in self._kept

    def find(self, key: Hashable) -> Value | None:
        """Return a value, if it is kept."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def keep(self, key: Hashable, value: Value, weight: int) -> None:
        """Keep a value, and let go of those that were not used for the longest time."""
        with self._lock:
            if key in self._kept:
                return  # another thread was faster
            self._kept[key] = value, weight
            self._weight += weight
            while self._weight > self._limit and len(self._kept) > 1:
                _, (_, freed) = self._kept.popitem(last=False)
                self._weight -= freed
