"""Leases: small objects that protect what a reader or writer is using from a vacuum.

A lease is not a commit. It holds a seqno, for a reader, or the id of a write whose parts are not
committed yet; it is renewed while its holder lives and expires otherwise.

Without permission to write, a reader has no lease. A vacuum does not know about such a reader, to whom what
it deletes is an error.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Final

import msgspec

from instar.errors import (
    CommitOutcomeUnknownError,
    ConflictError,
    CorruptTableError,
    StorageDeniedError,
    StorageError,
    StorageTimeoutError,
    UsageError,
)
from instar.storage.frame import decode_record, encode_record
from instar.table.layout import lease_key, leases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.table.services import Services

__all__ = ["LEASE_MS", "Lease", "LeaseKeeper", "find_lease", "live_leases"]

LEASE_MS: Final = 15 * 60 * 1000
"""How long a lease lasts without being renewed."""


class Lease(msgspec.Struct, frozen=True, array_like=True):
    """What somebody is using: states from `seqno` on, and objects that the write `write_id` makes."""

    id: str
    table_id: str
    seqno: int
    write_id: str | None
    expires_at: int
    holder: str
    time: int | None = None
    """A time that its holder may read as of, which `since` does not pass meanwhile."""


class LeaseKeeper:
    """Takes leases, renews those that are held from one background thread, and releases them."""

    def __init__(self, services: Services, duration_ms: int = LEASE_MS) -> None:
        self._services = services
        self._duration = duration_ms
        self._held: dict[str, Lease] = {}
        self._lapsed: set[str] = set()  # held, but for some time nobody could know
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def hold(self, table_id: str, seqno: int, write_id: str | None = None) -> Iterator[Lease]:
        """Hold a lease. A reader takes it first and then loads the state to read."""
        lease = self.take(table_id, seqno, write_id)
        try:
            yield lease
        except BaseException as error:
            self.end(lease, error)
            raise
        self.end(lease)

    def take(self, table_id: str, seqno: int, write_id: str | None = None, time: int | None = None) -> Lease:
        """Take a lease that is renewed until it is released."""
        if self._stop.is_set():
            raise UsageError("the store was closed, so its leases would not be renewed: open it again")
        holder, lease_id = self._services.author(), self._services.new_id()
        lease = Lease(lease_id, table_id, seqno, write_id, 0, holder, time)
        try:
            lease = self._renewed(lease)
        except StorageDeniedError:
            if write_id is not None:
                raise
            return lease
        with self._lock:
            self._held[lease.id] = lease
            if self._thread is None or not self._thread.is_alive():  # threads do not survive a fork
                self._thread = threading.Thread(target=self._renew_for_ever, daemon=True)
                with suppress(RuntimeError):  # a process that is about to end starts no more threads
                    self._thread.start()
        return lease

    def lend(self, lease: Lease, duration_ms: int) -> Lease:
        """Copy a lease for others: nobody renews it, and its user releases it."""
        copy = msgspec.structs.replace(lease, id=self._services.new_id())
        return self._put(copy, duration_ms) if lease.expires_at else copy

    def grant(self, table_id: str, seqno: int, write_id: str, duration_ms: int) -> Lease:
        """Make a lease for a write that others finish: it is not renewed, and they release it."""
        lease = Lease(self._services.new_id(), table_id, seqno, write_id, 0, self._services.author())
        return self._put(lease, duration_ms)

    def check(self, write_id: str) -> None:
        """Raise if a lease for this write has ever expired: a vacuum may have deleted what it has stored."""
        now = self._services.clock()
        with self._lock:
            mine = [lease for lease in self._held.values() if lease.write_id == write_id]
            lapsed = any(lease.expires_at <= now or lease.id in self._lapsed for lease in mine)
        if lapsed:
            raise ConflictError(
                f"write {write_id} was interrupted for longer than its lease lasts, and a vacuum may have "
                "removed its parts. Nothing was committed; write again."
            )

    def has_lapsed(self, lease: Lease) -> bool:
        """Whether a lease has lapsed since it was taken: a vacuum may not have seen it."""
        with self._lock:
            held = self._held.get(lease.id)
            return held is None or held.expires_at <= self._services.clock() or lease.id in self._lapsed

    def end(self, lease: Lease, error: BaseException | None = None) -> None:
        """Release a lease, unless its holder failed with a request that got no answer and may still arrive.

        Then it is left to expire, so that what the request refers to is there when it does.
        """
        if isinstance(error, CommitOutcomeUnknownError | StorageTimeoutError):
            self._forget(lease)
        else:
            self.release(lease)

    def release(self, lease: Lease) -> None:
        """Release a lease; if it cannot be deleted, it expires."""
        self._forget(lease)
        with suppress(StorageError):
            self._services.blob.delete([lease_key(lease.table_id, lease.id)])

    def renew(self) -> None:
        """Renew all held leases now; one that cannot be renewed does not stop the others."""
        with self._lock:
            held = list(self._held.values())
        for lease in held:
            if lease.expires_at <= self._services.clock():
                self._lapsed.add(lease.id)
            try:
                renewed = self._renewed(lease)
            except StorageError:
                continue  # there are two more turns before it expires
            with self._lock:
                released = lease.id not in self._held
                if not released:
                    self._held[lease.id] = renewed
            if released:
                self.release(lease)

    def close(self) -> None:
        """Release all leases and stop renewing."""
        self._stop.set()
        with self._lock:
            held = list(self._held.values())
        for lease in held:
            self.release(lease)

    def _forget(self, lease: Lease) -> None:
        """Renew a lease no longer."""
        with self._lock:
            self._held.pop(lease.id, None)
            self._lapsed.discard(lease.id)

    def _renewed(self, lease: Lease) -> Lease:
        # A reader that renews its lease ends with the machine that it reads on.
        return self._put(lease, self._duration, durable=lease.write_id is not None)

    def _put(self, lease: Lease, duration_ms: int, *, durable: bool = True) -> Lease:
        renewed = msgspec.structs.replace(lease, expires_at=self._services.clock() + duration_ms)
        data = encode_record("lease", lease.id, renewed)
        self._services.blob.put(lease_key(lease.table_id, lease.id), data, durable=durable)
        return renewed

    def _renew_for_ever(self) -> None:
        while not self._stop.wait(self._duration / 3000):
            self.renew()


def live_leases(services: Services, table_id: str) -> Iterator[Lease]:
    """Yield the leases of a table that have not expired.

    A lease that was put a short time ago lives, whatever the clock of its holder says. One that cannot be
    read is an error until it must have expired, because nobody knows what it holds.
    """
    now = services.clock()
    for stored in services.blob.list(leases(table_id)):
        is_young = stored.modified_ms + LEASE_MS > now
        with nullcontext() if is_young else suppress(CorruptTableError):
            lease = find_lease(services, stored.key)
            if lease is not None and (is_young or lease.expires_at > now):
                yield lease


def find_lease(services: Services, key: str) -> Lease | None:
    """Read a lease, expired or not, if it has not been given back."""
    data = services.blob.find(key)
    if data is None:
        return None
    what = f"lease {key}"
    return decode_record(data, "lease", key.rpartition("/")[2], Lease, what=what)
