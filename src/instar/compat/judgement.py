"""What a comparison of two versions says: differences, each with a ruling on every question that it touches.

All of it are plain values that can be stored. How a ruling is found is in the modules of the formats.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

__all__ = [
    "RULES_VERSION",
    "Axis",
    "Difference",
    "Judgement",
    "Level",
    "Ruling",
    "conditional",
    "safe",
    "unsafe",
]

RULES_VERSION: Final = 2
"""Grows whenever a rule changes, so that no stored judgement outlives the rules that it was made by."""


class Level(Enum):
    """An answer: yes, no, or only under a condition that schemas do not show."""

    SAFE = "safe"
    CONDITIONAL = "conditional"
    UNSAFE = "unsafe"


class Axis(Enum):
    """The three questions.

    *wire*: is every record of the old version read under the new one, with the same values?
    *query*: does a query over tables of both versions find the same columns with the same types?
    *semantic*: do names and values still mean the same?
    """

    WIRE = "wire"
    QUERY = "query"
    SEMANTIC = "semantic"


class Ruling(msgspec.Struct, frozen=True):
    """An answer with its reason."""

    level: Level
    reason: str


def safe(reason: str) -> Ruling:
    """Answer yes."""
    return Ruling(Level.SAFE, reason)


def conditional(reason: str) -> Ruling:
    """Answer that it depends on something that schemas do not show, and say on what."""
    return Ruling(Level.CONDITIONAL, reason)


def unsafe(reason: str) -> Ruling:
    """Answer no."""
    return Ruling(Level.UNSAFE, reason)


class Difference(msgspec.Struct, frozen=True):
    """One thing that the new version does differently; a question that it does not touch has no ruling.

    `path` has the names of the new version, or of the old one for what is gone.
    """

    path: str
    what: str
    wire: Ruling | None = None
    query: Ruling | None = None
    semantic: Ruling | None = None

    def on(self, axis: Axis) -> Ruling | None:
        """Return the ruling on one question."""
        return {Axis.WIRE: self.wire, Axis.QUERY: self.query, Axis.SEMANTIC: self.semantic}[axis]


_RANK: Final = {level: rank for rank, level in enumerate(Level)}


class Judgement(msgspec.Struct, frozen=True):
    """Everything that one version does differently from another.

    `old` and `new` are fingerprints. There is no answer about the wire (None) where the versions have no
    encoding of their own, such as columns in DDL, or not the same one.
    """

    old: str
    new: str
    rules: int
    has_wire: bool
    differences: tuple[Difference, ...]

    @property
    def wire(self) -> Level | None:
        """The worst ruling about the wire."""
        return self.level(Axis.WIRE)

    @property
    def query(self) -> Level:
        """The worst ruling about queries."""
        return self.level(Axis.QUERY) or Level.SAFE

    @property
    def semantic(self) -> Level:
        """The worst ruling about meaning."""
        return self.level(Axis.SEMANTIC) or Level.SAFE

    @property
    def wire_safe(self) -> bool:
        """Whether every old record is certain to be read with the same values."""
        return self.wire in {None, Level.SAFE}

    @property
    def query_compatible(self) -> bool:
        """Whether no query over tables of both versions can notice."""
        return self.query is Level.SAFE

    @property
    def keeps_meaning(self) -> bool:
        """Whether no name and no value is known or suspected to mean something else."""
        return self.semantic is Level.SAFE

    def level(self, axis: Axis) -> Level | None:
        """Return the worst ruling on one question."""
        if axis is Axis.WIRE and not self.has_wire:
            return None
        rulings = (difference.on(axis) for difference in self.differences)
        levels = (ruling.level for ruling in rulings if ruling is not None)
        return max(levels, key=_RANK.__getitem__, default=Level.SAFE)
