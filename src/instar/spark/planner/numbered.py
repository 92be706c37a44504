"""`Numbered`: Python objects that are found again by a number, which Java holds in their place."""

from __future__ import annotations

import itertools
from typing import Self
from weakref import WeakValueDictionary

__all__ = ["Numbered"]

_numbers = itertools.count(1)
_objects: WeakValueDictionary[str, Numbered] = WeakValueDictionary()


class Numbered:
    """An object with a number of its own."""

    def __init__(self) -> None:
        self.number = str(next(_numbers))
        _objects[self.number] = self

    @classmethod
    def find(cls, number: str | None) -> Self | None:
        """Return the object of a number, if it is of this kind."""
        found = None if number is None else _objects.get(number)
        return found if isinstance(found, cls) else None
