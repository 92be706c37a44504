"""The evolver's queue beyond what its state may hold: the rest waits in objects of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from instar.storage.frame import decode_record, encode_record
from instar.stream.evolution import Queued, Spill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from instar.storage import Blob
    from instar.table import Services

__all__ = ["load_spill", "spill_queue"]

MOST_PATHS: Final = 60_000
MOST_BYTES: Final = 16 * 1024 * 1024
"""What a state may hold: so many tables, in so many bytes."""

_OTHER_BYTES: Final = 2 * 1024 * 1024
"""What is left of them for the rest of a state: a thousand failures and as many dead letters."""
_FRAMING: Final = 8
_SPILL_PATHS: Final = 20_000


def spill_queue(
    services: Services, stream_id: str, queue: Sequence[Queued]
) -> tuple[tuple[Queued, ...], tuple[Spill, ...]]:
    """Return what of a queue a state may hold, and where the rest was put."""
    size = 0
    kept = 0
    for table in queue[:MOST_PATHS]:
        size += len(table.name.encode()) + len(table.kind) + _FRAMING
        if size > MOST_BYTES - _OTHER_BYTES:
            break
        kept += 1
    spills = []
    for at in range(kept, len(queue), _SPILL_PATHS):
        tables = tuple(queue[at : at + _SPILL_PATHS])
        key = f"streams/{stream_id}/queues/{services.new_id()}"
        services.blob.put(key, encode_record("queue", key, tables))
        spills.append(Spill(key, len(tables)))
    return tuple(queue[:kept]), tuple(spills)


def load_spill(blob: Blob, spill: Spill) -> tuple[Queued, ...]:
    """Read back a part of a queue."""
    what = f"the queue {spill.key}"
    return decode_record(blob.get(spill.key), "queue", spill.key, tuple[Queued, ...], what=what)
