"""`Pin`: a state that is being read, with the lease that keeps what it refers to."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from instar.state import TableState
    from instar.table.log.leases import Lease, LeaseKeeper

__all__ = ["Pin"]


class Pin:
    """A state that is being read. It is held until it is released, or nobody has it any more."""

    def __init__(self, state: TableState, leases: LeaseKeeper, lease: Lease) -> None:
        self.state = state
        self.release = weakref.finalize(self, leases.release, lease)
        self._leases = leases
        self._lease = lease

    def lend(self, duration_ms: int) -> Lease:
        """Hold the state for another process too: for so long, or until it gives the lease back."""
        return self._leases.lend(self._lease, duration_ms)

    def __enter__(self) -> TableState:
        return self.state

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.release.detach() is not None:
            self._leases.end(self._lease, error)
