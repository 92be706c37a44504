"""Restoring: the rows of a table become again what they were, in one commit that can itself be undone.

What came since is retracted by position, without being read. What went since is read from where it still is
and added again. Only where rows were retracted by value are they compared with each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from instar.parts import DIFF, consolidate
from instar.parts.layout import update_schema
from instar.schema import Names, arrow_schema
from instar.state.retractions import whole_part
from instar.table.read.locate import merged_rows
from instar.table.read.rows import read_written
from instar.table.read.snapshot import plan_snapshot, resolve_reader
from instar.table.write.retract import negated
from instar.table.write.rows import RowChange, change_rows
from instar.table.write.store import LocalRows
from instar.table.write.upsert import with_diff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyroaring import BitMap

    from instar.state import Place, TableState
    from instar.table.log.part_set import Mask, PartSet
    from instar.table.log.pin import Pin
    from instar.table.log.table_log import Committed, TableLog
    from instar.table.read.snapshot import SnapshotPlan
    from instar.table.services import Services

__all__ = ["restore_rows"]


def restore_rows(services: Services, log: TableLog, time_in: Callable[[TableState], int]) -> Committed:
    """Make the rows what they were at a time, which is found in the state that is read."""

    def restoring(pin: Pin) -> RowChange:
        return _Restoring(services, pin.state, time_in(pin.state)).change()

    return change_rows(services, log, "restore", restoring)


class _Restoring:
    """What has to change for a table's rows to be what they were, in one state."""

    def __init__(self, services: Services, state: TableState, time: int) -> None:
        reader = resolve_reader(state, None, None)
        self._services = services
        self._state = state
        self._now = plan_snapshot(services.chunks, state, reader, None)
        self._then = plan_snapshot(services.chunks, state, reader, time)
        self._valued: Mask = self._now.merge.mask | self._then.merge.mask

    def change(self) -> RowChange:
        """Return what has to happen; it is only right if nothing else has happened since."""
        pieces = [rows for rows in (self._gone(), self._by_value()) if rows.num_rows]
        rows = LocalRows(pa.concat_tables(pieces)) if pieces else None
        return RowChange(rows, self._come(), by_value=True, restored=self._then.as_of)

    def _come(self) -> dict[Place, BitMap]:
        """Return the places and positions of rows that came since."""
        scan = self._now.scan
        taken, places = scan.positions, {}
        then = self._then.scan.mask
        for at, live in enumerate(_live(scan)):
            if then[live] or self._valued[live]:
                continue
            rows = whole_part(scan.rows[at].as_py())
            places[scan.place(at)] = rows - taken[at] if at in taken else rows
        return places

    def _gone(self) -> pa.Table:
        """Return the rows that went since, by position, to be added again."""
        latest = self._state.history.latest
        found = pa.Table.from_batches(self._read_gone(), schema=arrow_schema(latest))
        return with_diff(found, 1)

    def _read_gone(self) -> Iterator[pa.RecordBatch]:
        blob, latest = self._services.blob, self._state.history.latest
        taken = _by_live(self._now.scan)
        there = self._now.scan.mask
        scan = self._then.scan
        for live, written in zip(_live(scan), scan.written(self._state.history), strict=True):
            if self._valued[live]:
                continue
            if not there[live]:
                yield from read_written(blob, written, latest)
            elif live in taken:
                back = taken[live] if written.taken is None else taken[live] - written.taken
                if back:
                    yield from read_written(blob, written._replace(taken=None), latest, only=back)

    def _by_value(self) -> pa.Table:
        """Return what to add and what to retract of rows that have to be added up."""
        latest = self._state.history.latest
        layout = update_schema(latest, Names.COLUMN, (DIFF,))
        both = [self._counted(self._then), negated(self._counted(self._now))]
        # They are of the same types; a cast would not take null structs whose members may not be null.
        updates = pa.concat_tables([pa.Table.from_arrays(rows.columns, schema=layout) for rows in both])
        return consolidate(updates, latest) if updates.num_rows else updates

    def _counted(self, plan: SnapshotPlan) -> pa.Table:
        """Return the rows that a plan has in parts which one of the plans adds up, and how often."""
        state = self._state
        valued = plan.scan.keep(self._valued[plan.scan.mask])
        batches = [
            batch
            for written in valued.written(state.history)
            for batch in read_written(self._services.blob, written, state.history.latest)
        ]
        rows = with_diff(pa.Table.from_batches(batches, schema=arrow_schema(state.history.latest)), 1)
        if not plan.merge:
            return rows
        merged = merged_rows(self._services, state, plan.merge, plan.as_of)
        return pa.concat_tables([rows, pa.Table.from_arrays(merged.columns, schema=rows.schema)])


def _live(parts: PartSet) -> list[int]:
    """Return the numbers of parts among all that are live."""
    return [int(number) for number in parts.mask.nonzero()[0]]


def _by_live(parts: PartSet) -> dict[int, BitMap]:
    """Return the rows that are retracted, by the number of their part."""
    live = _live(parts)
    return {live[at]: taken for at, taken in parts.positions.items()}
