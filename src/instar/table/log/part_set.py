"""`PartSet`: some of the live parts of a state, as columns, and which of all live parts they are.

Plans, filters and reports all speak of parts in this form. Where the columns come from is in `manifest.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from instar.state import Adopted, Part, Place
from instar.state.chunk import ADOPTED, FILES, FIXED_GROUPS, PLACES, TIMES, field_of_group

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyroaring import BitMap

    from instar.schema import History, Schema
    from instar.state.manifest import Columns
    from instar.table.log.sheets import Retractions

__all__ = ["Mask", "PartSet", "PartTimes", "WrittenPart", "keep_rows"]

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]

_ORDINAL_BITS: Final = 32


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
    taken: BitMap | None = None
    """The positions of rows that have been retracted, if there are any."""


@dataclass(frozen=True, eq=False)
class PartSet:
    """Parts in the order of places. It has the groups of columns that were asked for when it was loaded."""

    columns: Columns
    rows: pa.Array
    """How many rows each part has."""
    mask: Mask
    """One for each live part of the state: whether it is in the set."""
    retractions: Retractions | None = None
    """What is retracted of the parts by position, as of the time that they are read."""

    def __len__(self) -> int:
        return len(self.rows)

    def keep(self, kept: Mask) -> PartSet:
        """Return only some of the parts: this very set, if that is all of them."""
        if kept.all():
            return self
        mask = self.mask.copy()
        mask[self.mask] = kept
        columns = keep_rows(self.columns, kept)
        return PartSet(columns, self.rows.filter(pa.array(kept)), mask, self.retractions)

    def take(self, positions: Sequence[int]) -> PartSet:
        """Return the parts at some positions, which are in order."""
        chosen = pa.array(positions, pa.int64())
        mask = np.zeros(len(self.mask), dtype=bool)
        mask[np.flatnonzero(self.mask)[list(positions)]] = True
        columns = {name: batch.take(chosen) for name, batch in self.columns.items()}
        return PartSet(columns, self.rows.take(chosen), mask, self.retractions)

    def less(self, retractions: Retractions) -> PartSet:
        """Return the parts without rows retracted by position; parts without other rows are left out."""
        known = PartSet(self.columns, self.rows, self.mask, retractions or None)
        if not retractions:
            return known
        touched = np.flatnonzero(known.partly)
        rows = self.rows.to_numpy()
        gone = np.zeros(len(self), dtype=bool)
        gone[touched] = [retractions.rows(place) for place in known.places(touched)] == rows[touched]
        return known.keep(~gone)

    @cached_property
    def partly(self) -> Mask:
        """Tell which parts have rows that are retracted by position."""
        if self.retractions is None or not len(self):
            return np.zeros(len(self), dtype=bool)
        places = self.columns[PLACES]
        own = places.column("batch").to_numpy() << _ORDINAL_BITS | places.column("ordinal").to_numpy()
        touched = [place.batch << _ORDINAL_BITS | place.ordinal for place in self.retractions.by_place]
        return np.isin(own, touched)

    @cached_property
    def apart(self) -> tuple[PartSet, PartSet]:
        """The parts that are whole, and those that have rows that are retracted by position."""
        partly = self.partly
        return self.keep(~partly), self.keep(partly)

    def place(self, at: int) -> Place:
        """Return where the part at a position of the set is forever."""
        places = self.columns[PLACES]
        return Place(places.column("batch")[at].as_py(), places.column("ordinal")[at].as_py())

    def places(self, chosen: np.ndarray) -> list[Place]:
        """Return where the parts at some positions of the set are."""
        places = self.columns[PLACES].take(pa.array(chosen, pa.int64()))
        pairs = zip(places.column("batch").to_pylist(), places.column("ordinal").to_pylist(), strict=True)
        return [Place(batch, ordinal) for batch, ordinal in pairs]

    @cached_property
    def rows_left(self) -> pa.Array:
        """How many rows each part has less those that are retracted by position."""
        touched = np.flatnonzero(self.partly)
        if self.retractions is None or not len(touched):
            return self.rows
        left = self.rows.to_numpy().copy()
        left[touched] -= [self.retractions.rows(place) for place in self.places(touched)]
        return pa.array(left, self.rows.type)

    @property
    def row_count(self) -> int:
        """How many rows the parts have together, less those that are retracted by position."""
        count: int = pc.sum(self.rows_left).as_py() or 0
        return count

    @property
    def positions(self) -> dict[int, BitMap]:
        """The rows that are retracted, by the position in the set of the parts that have any."""
        if self.retractions is None:
            return {}
        touched = np.flatnonzero(self.partly)
        places = self.places(touched)
        found = self.retractions.positions(places)
        return {int(at): found[place] for at, place in zip(touched, places, strict=True)}

    @property
    def keys(self) -> list[str]:
        """The keys of the parts."""
        keys: list[str] = self.columns[FILES].column("key").to_pylist()
        return keys

    @property
    def files(self) -> list[tuple[str, int]]:
        """The key and the size of each part."""
        return list(zip(self.keys, self.columns[FILES].column("size").to_pylist(), strict=True))

    @cached_property
    def adopted(self) -> dict[int, Adopted]:
        """The files that others wrote, by their position in the set."""
        column = self.columns[ADOPTED].column(0)
        if column.null_count == len(column):
            return {}
        return {
            at: msgspec.msgpack.decode(data, type=Adopted)
            for at, data in enumerate(column.to_pylist())
            if data is not None
        }

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
        positions, adopted = self.positions, self.adopted
        for at, (file, times) in enumerate(rows):
            part = Part(
                file["key"],
                file["rows"],
                file["size"],
                ts_min=times["ts_min"],
                ts_max=times["ts_max"],
                diff_min=times["diff_min"],
                diff_max=times["diff_max"],
                adopted=adopted.get(at),
            )
            schema = history.schemas[times["schema_id"]]
            yield WrittenPart(part, times["upper"] - 1, schema, positions.get(at))


def keep_rows(columns: Columns, kept: Mask) -> Columns:
    """Return only some rows of columns."""
    if not kept.any():
        return {name: batch.slice(0, 0) for name, batch in columns.items()}
    chosen = pa.array(kept)
    return {name: batch.filter(chosen) for name, batch in columns.items()}
