"""Reading a snapshot in process: the rows of a plan as Arrow batches, without an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.table.read.rows import filter_plan, matching_rows, merge_updates, read_updates, read_written
from instar.table.read.settle import settle

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from instar.table.read.audit import Policy
    from instar.table.read.filter import Filter
    from instar.table.read.snapshot import SnapshotPlan
    from instar.table.services import Services

__all__ = ["read_filtered", "read_snapshot"]


def read_snapshot(
    services: Services, plan: SnapshotPlan, condition: Filter | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a snapshot under the reader's schema; what must be consolidated comes last.

    If parts were left out because of a condition, it has to be given: other rows may not add up.
    """
    plan = settle(services, plan, condition)
    history = plan.state.history
    for written in plan.scan.written(history):
        yield from read_written(services.blob, written, plan.reader.schema, ahead=True)
    if plan.merge:
        updates = read_updates(services.blob, plan.merge.written(history), history.latest)
        yield from merge_updates(updates, history.latest, plan.as_of, plan.reader.schema, condition)


def read_filtered(
    services: Services, plan: SnapshotPlan, condition: Filter, policy: Policy
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a snapshot for which a condition is true, opening only parts that may have any."""
    chosen = filter_plan(services, plan, condition, policy)
    for batch in read_snapshot(services, chosen, condition):
        yield from matching_rows(batch, chosen.reader.schema, condition, plan.reader.schema)
