"""`PlannerObject`: a Python object that Spark takes for one of its own, and how it is told from others.

Spark compares scans to reuse what it has read. It hands over the other one as an object of the JVM, never as
the Python object behind it, so what is equal is decided by what both say of themselves.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final, Self
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Implemented", "PlannerObject"]

_MARK: Final = " object "
_numbers = itertools.count(1)
_objects: WeakValueDictionary[str, PlannerObject] = WeakValueDictionary()


class Implemented:
    """What Py4J asks for: the interfaces that an object implements."""

    def __init__(self, implements: Sequence[str]) -> None:
        self.implements = list(implements)


class PlannerObject:
    """Equal to others that say the same; each has a number of its own, by which it is found again."""

    def __init__(self, implements: Sequence[str]) -> None:
        self.Java = Implemented(implements)
        self._number = next(_numbers)
        self._hash: int | None = None
        _objects[str(self._number)] = self

    @property
    def identity(self) -> str:
        """All that tells this from others of its kind."""
        raise NotImplementedError

    def toString(self) -> str:  # noqa: N802 -- Java's name, here and below
        """Say everything that counts, and the number."""
        return f"{type(self).__name__} {self.identity}{_MARK}{self._number}"

    def hashCode(self) -> int:  # noqa: N802
        """Return the same number for those that are equal."""
        return _java_hash(f"{type(self).__name__} {self.identity}")

    def equals(self, other: Any) -> bool:  # noqa: ANN401 -- a Java object, or None
        """Whether Spark may take one for the other."""
        if other is None:
            return False
        return str(other.toString()).rpartition(_MARK)[0] == f"{type(self).__name__} {self.identity}"

    @classmethod
    def find(cls, java_object: Any) -> Self | None:  # noqa: ANN401 -- a Java object
        """Return the object that Spark knows as this one, if it is of this kind."""
        kind, _, rest = str(java_object.toString()).partition(" ")
        found = _objects.get(rest.rpartition(_MARK)[2])
        return found if isinstance(found, cls) and kind == type(found).__name__ else None


def _java_hash(text: str) -> int:
    """Return a number of 32 bits with a sign, which does not change from process to process."""
    number = 0
    for byte in text.encode():
        number = (31 * number + byte) & 0xFFFF_FFFF
    return number - (1 << 32) if number & 0x8000_0000 else number
