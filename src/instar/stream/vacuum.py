"""Vacuuming streams: finish what was left unfinished, then delete objects that nothing refers to any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.stream.batches import Batches
from instar.stream.evolver import StreamEvolver
from instar.stream.handle import StreamHandle, list_streams
from instar.stream.writing import finish_pending
from instar.table import VacuumReport

if TYPE_CHECKING:
    from instar.table import Services

__all__ = ["vacuum_streams"]


def vacuum_streams(services: Services, *, grace_ms: int, dry_run: bool = False) -> VacuumReport:
    """Vacuum what streams keep beside their tables.

    It comes before the tables: an unfinished write refers to parts that only its lease has kept.
    """
    report = VacuumReport()
    for name in list_streams(services):
        handle = StreamHandle(services, name)
        catalog = handle.load()
        if not dry_run:
            finish_pending(handle)
        objects = list(services.blob.list(f"streams/{catalog.stream_id}"))
        batches = handle.batches.refresh() or Batches()
        evolution = StreamEvolver(handle).load()
        used = {intent.spilled for _, intent in batches.pending.values()}
        used |= {spill.key for spill in evolution.spilled}
        oldest = services.clock() - grace_ms
        doomed = [each for each in objects if each.key not in used and each.modified_ms <= oldest]
        if not dry_run:
            services.blob.delete(each.key for each in doomed)
        freed, size = (sum(each.size for each in some) for some in (doomed, objects))
        own = (len(doomed), freed, 0, len(objects) - len(doomed), size - freed)
        report = VacuumReport(*(sum(pair) for pair in zip(report, own, strict=True)))
    return report
