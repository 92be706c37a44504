"""`Settled`: what was found out about retractions by value, kept for the next reader of the same parts."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from pyroaring import BitMap

    from instar.state import Place

__all__ = ["Positions", "Settled"]

Positions = Mapping["Place", "BitMap"]
"""Rows, by the place of their part."""


class Settled:
    """What was found out, for the plans that were settled last: parts never change."""

    _KEPT: Final = 8

    def __init__(self) -> None:
        self._found: OrderedDict[Hashable, Positions | None] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: Hashable, find_out: Callable[[], Positions | None]) -> Positions | None:
        """Return what is known, or find it out."""
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
        found = find_out()
        with self._lock:
            self._found[key] = found
            while len(self._found) > self._KEPT:
                self._found.popitem(last=False)
        return found
