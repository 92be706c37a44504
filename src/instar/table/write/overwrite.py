"""Overwriting without an engine: rows take the place of others, in one commit.

Those that go are found as a delete finds them. Where all of them go, nothing is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from instar.parts import conform, open_stream
from instar.schema import arrow_schema
from instar.state.retractions import whole_part
from instar.table.read.filter import Filter
from instar.table.read.locate import Found, find_rows, merged_rows
from instar.table.read.snapshot import plan_snapshot, resolve_reader
from instar.table.write.retract import negated
from instar.table.write.rows import RowChange, change_rows
from instar.table.write.store import LocalRows
from instar.table.write.upsert import with_diff

if TYPE_CHECKING:
    from pyroaring import BitMap

    from instar.parts import ArrowData
    from instar.state import Place
    from instar.table.log.pin import Pin
    from instar.table.log.table_log import Committed, TableLog
    from instar.table.read.snapshot import SnapshotPlan
    from instar.table.services import Services

__all__ = ["OVERWRITING", "all_positions", "overwrite_local"]

OVERWRITING = "overwrite rows of"
"""What an error calls it."""


def overwrite_local(services: Services, log: TableLog, data: ArrowData, where: str | None) -> Committed:
    """Put rows of this process in the place of those for which a condition is true, or of all."""
    known = log.load_known().history.latest
    given = open_stream(data, known).read_all()  # perhaps it can be read only once

    def replacing(pin: Pin) -> RowChange:
        latest = pin.state.history.latest
        rows = pa.Table.from_batches(conform(given, latest), schema=arrow_schema(latest))
        found = _found(services, pin, where)
        pieces = [with_diff(rows, 1)] if rows.num_rows else []
        by_value = found.by_value is not None and bool(found.by_value.num_rows)
        if found.by_value is not None and by_value:
            pieces.append(negated(found.by_value))
        united = pa.concat_tables(pieces, promote_options="permissive") if pieces else None
        return RowChange(None if united is None else LocalRows(united), found.positions, by_value=by_value)

    return change_rows(services, log, OVERWRITING, replacing)


def all_positions(plan: SnapshotPlan) -> dict[Place, BitMap]:
    """Return where all the rows are that a plan scans."""
    scan, positions = plan.scan, {}
    taken = scan.positions
    for at, count in enumerate(scan.rows.to_pylist()):
        rows = whole_part(count)
        positions[scan.place(at)] = rows - taken[at] if at in taken else rows
    return {place: rows for place, rows in positions.items() if rows}


def _found(services: Services, pin: Pin, where: str | None) -> Found:
    state = pin.state
    if where is not None:
        return find_rows(services, state, Filter.parse(where, state.history.latest, services.clock()))
    plan = plan_snapshot(services.chunks, state, resolve_reader(state, None, None), None)
    merged = merged_rows(services, state, plan.merge, plan.as_of) if plan.merge else None
    return Found(all_positions(plan), merged)
