"""Choosing rows of a part by their positions in the file: all but some, or only some."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from instar.errors import CorruptTableError

if TYPE_CHECKING:
    import numpy.typing as npt
    from pyroaring import BitMap

    from instar.state import Part

__all__ = ["RowChoice"]


@dataclass(frozen=True)
class RowChoice:
    """Which rows of a part are read: those at some positions, or those at all others."""

    positions: BitMap
    only: bool = False

    def check(self, part: Part) -> None:
        """Raise if a position is behind the end of the part."""
        if self.positions and self.positions.max() >= part.rows:
            why = f"its row {self.positions.max()} is retracted, and it has {part.rows} rows"
            raise CorruptTableError(f"part {part.key}", why)

    def wants_none(self, first: int, rows: int) -> bool:
        """Whether no row from a position on, of so many, is chosen."""
        if self.only:
            return self.positions.range_cardinality(first, first + rows) == 0
        return self.positions.range_cardinality(first, first + rows) == rows

    def mask(self, first: int, rows: int) -> npt.NDArray[np.bool_] | None:
        """Tell which rows from a position on are chosen; None if they all are."""
        low, high = np.searchsorted(self._sorted, (first, first + rows))
        if low == high and not self.only:
            return None
        chosen = np.full(rows, not self.only)
        chosen[self._sorted[low:high] - first] = self.only
        return chosen

    @cached_property
    def _sorted(self) -> npt.NDArray[np.int64]:
        return np.frombuffer(self.positions.to_array(), np.uint32).astype(np.int64)
