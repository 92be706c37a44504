"""Reading a snapshot in process: the rows of a plan as Arrow batches, without an engine."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from instar.parts.ahead import map_ahead
from instar.parts.read import AHEAD_BYTES, SMALL_PART
from instar.table.read.rows import filter_plan, matching_rows, merge_updates, read_updates, read_written
from instar.table.read.settle import settle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from instar.schema import History, Schema
    from instar.storage import Blob
    from instar.table.log.part_set import PartSet, WrittenPart
    from instar.table.read.audit import Policy
    from instar.table.read.filter import Filter
    from instar.table.read.snapshot import SnapshotPlan
    from instar.table.services import Services

__all__ = ["read_filtered", "read_snapshot"]

_THREADS: Final = 4


def read_snapshot(
    services: Services, plan: SnapshotPlan, condition: Filter | None = None, *, ahead: bool = True
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a snapshot under the reader's schema; what must be consolidated comes last.

    If parts were left out because of a condition, it has to be given: other rows may not add up. Without
    `ahead`, no part is opened before its rows are asked for.
    """
    plan = settle(services, plan, condition)
    history = plan.state.history
    yield from _scan(services.blob, plan.scan, history, plan.reader.schema, ahead=ahead)
    if plan.merge:
        updates = read_updates(services.blob, plan.merge.written(history), history.latest)
        yield from merge_updates(updates, history.latest, plan.as_of, plan.reader.schema, condition)


def read_filtered(
    services: Services, plan: SnapshotPlan, condition: Filter, policy: Policy, *, ahead: bool = True
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a snapshot for which a condition is true, opening only parts that may have any."""
    chosen = filter_plan(services, plan, condition, policy)
    for batch in read_snapshot(services, chosen, condition, ahead=ahead):
        yield from matching_rows(batch, chosen.reader.schema, condition, plan.reader.schema)


def _scan(
    blob: Blob, parts: PartSet, history: History, reader: Schema, *, ahead: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of parts in order, while threads read the next ones where that is faster."""
    is_quick = parts.bytes <= SMALL_PART * len(parts) and blob.location("parts").startswith("/")
    in_threads = ahead and not is_quick and len(parts) > 1

    def read(written: WrittenPart) -> Iterable[pa.RecordBatch]:
        batches = read_written(blob, written, reader, ahead=ahead)
        share = min(1, len(reader.fields) / max(1, len(written.schema.fields)))
        return list(batches) if in_threads and written.part.size * share <= AHEAD_BYTES else batches

    all_written = parts.written(history)
    yield from chain.from_iterable(
        map_ahead(read, all_written, threads=_THREADS) if in_threads else map(read, all_written)
    )
