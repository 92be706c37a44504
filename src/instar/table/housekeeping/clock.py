"""Whether this machine's clock may be trusted to tell how old an object of the store is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.errors import UsageError
from instar.table.layout import lease_key

if TYPE_CHECKING:
    from instar.table.services import Services

__all__ = ["check_clock"]


def check_clock(services: Services) -> None:
    """Raise if this machine's clock is ahead of the store's: what is young would look old, and be deleted.

    The store tells its time by when it received a small object, which belongs to no table.
    """
    if services.most_ahead_ms is None:
        return
    now = services.clock()
    probe = lease_key(services.new_id(), "clock")
    services.blob.put(probe, b"")
    stored = services.blob.stat(probe)
    services.blob.delete([probe])
    ahead = 0 if stored is None else now - stored.modified_ms
    if ahead > services.most_ahead_ms:
        raise UsageError(
            f"cannot vacuum: the clock of this machine is {ahead / 60_000:.0f} minutes ahead of the store's, "
            "so files that are being written would look old. Nothing was deleted; set the clock right first."
        )
