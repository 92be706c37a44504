"""Deleting rows without an engine: what a condition is true for is retracted by position, in one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from instar.parts import DIFF
from instar.table.read.filter import Filter
from instar.table.read.locate import find_rows
from instar.table.write.rows import RowChange, change_rows
from instar.table.write.store import LocalRows

if TYPE_CHECKING:
    import pyarrow as pa

    from instar.table.log.pin import Pin
    from instar.table.log.table_log import Committed, TableLog
    from instar.table.read.locate import Found
    from instar.table.services import Services

__all__ = ["delete_local", "negated", "retracting"]


def delete_local(services: Services, log: TableLog, where: str) -> Committed:
    """Retract the rows for which a condition is true."""

    def retraction(pin: Pin) -> RowChange:
        condition = Filter.parse(where, pin.state.history.latest, services.clock())
        return retracting(find_rows(services, pin.state, condition))

    return change_rows(services, log, "delete from", retraction)


def retracting(found: Found) -> RowChange:
    """Return the change that takes rows which were found."""
    rows = found.by_value
    if rows is None or not rows.num_rows:
        return RowChange(None, found.positions)
    return RowChange(LocalRows(negated(rows)), found.positions, by_value=True)


def negated(rows: pa.Table) -> pa.Table:
    """Return rows with negative diffs."""
    at = rows.schema.get_field_index(DIFF)
    return rows.set_column(at, rows.schema.field(at), pc.negate(rows.column(DIFF)))
