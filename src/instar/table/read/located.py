"""Rows that were found, with all their values: read from where they are, or known by value."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from instar.parts import DIFF
from instar.parts.read import ROW
from instar.schema import arrow_schema
from instar.table.read.rows import read_written
from instar.table.read.snapshot import plan_snapshot, resolve_reader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from instar.state import Place, TableState
    from instar.table.services import Services

__all__ = ["LocatedRows", "read_located"]


class LocatedRows(NamedTuple):
    """Rows under the latest schema: for each, the number of its place and its position there.

    Rows without a place have the number -1; they are known by value, with `counts` copies.
    """

    rows: pa.Table
    places: Sequence[Place]
    part: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    def keep(self, mask: npt.NDArray[np.bool_]) -> LocatedRows:
        """Return some of the rows."""
        rows = self.rows.filter(pa.array(mask))
        return LocatedRows(rows, self.places, self.part[mask], self.row[mask], self.counts[mask])

    def positions(self) -> dict[Place, BitMap]:
        """Return where those rows are that have a place."""
        return {
            self.places[number]: BitMap(self.row[self.part == number].astype(np.uint32))
            for number in np.unique(self.part[self.part >= 0])
        }

    def by_value(self) -> pa.Table:
        """Return the rows without a place, with `_diff`, the number of copies."""
        mask = self.part < 0
        counts = pa.array(self.counts[mask])
        field = pa.field(DIFF, pa.int64(), nullable=False)
        return self.rows.filter(pa.array(mask)).append_column(field, counts)


def read_located(
    services: Services, state: TableState, positions: Mapping[Place, BitMap], by_value: pa.Table | None
) -> LocatedRows:
    """Read the rows at some positions, and put those that are known by value behind them."""
    latest = state.history.latest
    plan = plan_snapshot(services.chunks, state, resolve_reader(state, None, None), None)
    places = [plan.scan.place(at) for at in range(len(plan.scan))] if positions else []
    kept = np.array([place in positions for place in places], dtype=bool)
    wanted = plan.scan.keep(kept).written(state.history) if places else iter(())
    chosen = [place for place in places if place in positions]
    batches: list[pa.RecordBatch] = []
    parts: list[npt.NDArray[np.int64]] = []
    width = range(len(latest.fields))
    for number, written in enumerate(wanted):
        only = positions[chosen[number]]
        for batch in read_written(services.blob, written, latest, numbered=True, only=only):
            batches.append(batch)
            parts.append(np.full(batch.num_rows, number))
    layout = arrow_schema(latest)
    rows = pa.Table.from_batches([batch.select(width) for batch in batches], schema=layout)
    row = np.concatenate([np.zeros(0, np.int64), *(batch.column(ROW).to_numpy() for batch in batches)])
    part = np.concatenate([np.zeros(0, np.int64), *parts])
    counts = np.ones(rows.num_rows, np.int64)
    if by_value is not None and by_value.num_rows:
        more = by_value.num_rows
        own = pa.Table.from_arrays(by_value.drop_columns([DIFF]).columns, schema=layout)
        rows = pa.concat_tables([rows, own])
        row = np.concatenate([row, np.zeros(more, np.int64)])
        part = np.concatenate([part, np.full(more, -1)])
        counts = np.concatenate([counts, by_value.column(DIFF).to_numpy()])
    return LocatedRows(rows.combine_chunks(), chosen, part, row, counts)
