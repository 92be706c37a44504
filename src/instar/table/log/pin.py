"""`Pin`: a state that is being read, with the lease that keeps what it refers to."""

from __future__ import annotations

import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING

from instar.errors import AdoptedFileError, CorruptTableError, LeaseExpiredError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

    from instar.state import TableState
    from instar.storage import Blob
    from instar.table.log.leases import Lease, LeaseKeeper

__all__ = ["Pin"]


class Pin:
    """A state that is being read. It is held until it is released, or nobody has it any more."""

    def __init__(self, state: TableState, leases: LeaseKeeper, lease: Lease) -> None:
        self.state = state
        self.release = weakref.finalize(self, leases.release, lease)
        self._leases = leases
        self._lease = lease

    @property
    def is_held(self) -> bool:
        """Whether the lease was held all the time, and still is."""
        return not self._leases.has_lapsed(self._lease)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Tell a file that is missing because the lease has expired from one that was lost."""
        try:
            yield
        except AdoptedFileError:
            raise
        except CorruptTableError as error:
            if error.missing and not self.is_held:
                raise LeaseExpiredError(self.state.name) from error
            raise

    def check_files(self, blob: Blob, keys: Iterable[str]) -> None:
        """Raise if the lease has expired and one of some files is missing; usually, nobody looks."""
        if not self.is_held and any(blob.stat(key) is None for key in keys):
            raise LeaseExpiredError(self.state.name)

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
