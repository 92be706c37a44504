"""`PartSet`: some of the live parts of a state, as columns, and which of all live parts they are.

Plans, filters and reports all speak of parts in this form. Where the columns come from is in `manifest.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from instar.state import Part
from instar.state.chunk import FILES, FIXED_GROUPS, TIMES, field_of_group

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from instar.schema import History, Schema
    from instar.state.manifest import Columns

__all__ = ["Mask", "PartSet", "PartTimes", "WrittenPart", "keep_rows"]

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


class PartTimes(NamedTuple):
    """The earliest and the latest time in each part, and whether all its diffs are +1."""

    earliest: np.ndarray
    latest: np.ndarray
    plain: Mask


class WrittenPart(NamedTuple):
    """A part to read: the time of its batch, and the schema that it was written under."""

    part: Part
    ts: int
    schema: Schema


@dataclass(frozen=True, eq=False)
class PartSet:
    """Parts in the order of places. It has the groups of columns that were asked for when it was loaded."""

    columns: Columns
    rows: pa.Array
    """How many rows each part has."""
    mask: Mask
    """One for each live part of the state: whether it is in the set."""

    def __len__(self) -> int:
        return len(self.rows)

    def keep(self, kept: Mask) -> PartSet:
        """Return only some of the parts: this very set, if that is all of them."""
        if kept.all():
            return self
        mask = self.mask.copy()
        mask[self.mask] = kept
        return PartSet(keep_rows(self.columns, kept), self.rows.filter(pa.array(kept)), mask)

    def take(self, positions: Sequence[int]) -> PartSet:
        """Return the parts at some positions, which are in order."""
        chosen = pa.array(positions, pa.int64())
        mask = np.zeros(len(self.mask), dtype=bool)
        mask[np.flatnonzero(self.mask)[list(positions)]] = True
        columns = {name: batch.take(chosen) for name, batch in self.columns.items()}
        return PartSet(columns, self.rows.take(chosen), mask)

    @property
    def keys(self) -> list[str]:
        """The keys of the parts."""
        keys: list[str] = self.columns[FILES].column("key").to_pylist()
        return keys

    @property
    def files(self) -> list[tuple[str, int]]:
        """The key and the size of each part."""
        return list(zip(self.keys, self.columns[FILES].column("size").to_pylist(), strict=True))

    @property
    def bytes(self) -> int:
        """The size of all parts together."""
        return pc.sum(self.columns[FILES].column("size")).as_py() or 0

    @property
    def bounds(self) -> dict[int, pa.RecordBatch]:
        """The statistics of each field that was asked for, by its id."""
        return {
            field_of_group(name): batch for name, batch in self.columns.items() if name not in FIXED_GROUPS
        }

    @property
    def times(self) -> PartTimes:
        """The times and diffs of the parts."""
        times = self.columns[TIMES]
        own = pc.subtract(times.column("upper"), 1)
        earliest = pc.coalesce(times.column("ts_min"), own).to_numpy()
        latest = pc.coalesce(times.column("ts_max"), own).to_numpy()
        plain = (times.column("diff_min").to_numpy() == 1) & (times.column("diff_max").to_numpy() == 1)
        return PartTimes(earliest, latest, plain)

    def written(self, history: History) -> Iterator[WrittenPart]:
        """Yield the parts one by one, with what it takes to read them."""
        rows = zip(self.columns[FILES].to_pylist(), self.columns[TIMES].to_pylist(), strict=True)
        for file, times in rows:
            part = Part(
                file["key"],
                file["rows"],
                file["size"],
                ts_min=times["ts_min"],
                ts_max=times["ts_max"],
                diff_min=times["diff_min"],
                diff_max=times["diff_max"],
            )
            yield WrittenPart(part, times["upper"] - 1, history.schemas[times["schema_id"]])


def keep_rows(columns: Columns, kept: Mask) -> Columns:
    """Return only some rows of columns."""
    if not kept.any():
        return {name: batch.slice(0, 0) for name, batch in columns.items()}
    chosen = pa.array(kept)
    return {name: batch.filter(chosen) for name, batch in columns.items()}
