"""Leases: taken before anything else, renewed while their holder lives, given back or left to expire."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from instar.errors import CommitOutcomeUnknownError, StorageError, StorageTimeoutError
from instar.table.layout import lease_key, leases
from instar.table.log.leases import LEASE_MS, LeaseKeeper, live_leases
from tests.faults import Faults, Outcome, UnreliableBlob
from tests.tables import list_leases

if TYPE_CHECKING:
    from instar.table import Services
    from tests.tables import World

TABLE = "t" * 32


def expiries(services: Services) -> dict[str, int]:
    """Return when each lease of the table expires."""
    return {lease.id: lease.expires_at for lease in list_leases(services, TABLE)}


def test_a_lease_says_who_holds_what_until_when(world: World) -> None:
    """It lasts a quarter of an hour, and is gone when it was released."""
    services = world.services()
    with services.leases.hold(TABLE, 7, "write") as lease:
        [found] = list_leases(world.services(), TABLE)
        assert found == lease
        assert (found.seqno, found.write_id, found.holder) == (7, "write", "tester")
        assert found.expires_at == world.clock.now + LEASE_MS
    assert expiries(services) == {}


def test_only_what_a_writer_holds_outlives_its_machine(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader ends with its machine, so its lease does not wait for the disk."""
    services = world.services()
    lasting = []
    put = services.blob.put

    def watch(key: str, data: bytes, *, durable: bool = True) -> None:
        lasting.append(durable)
        put(key, data, durable=durable)

    monkeypatch.setattr(services.blob, "put", watch)
    reader, writer = services.leases.take(TABLE, 1), services.leases.take(TABLE, 1, "write")
    lent = services.leases.lend(reader, 5000)
    assert lasting == [False, True, True]
    services.leases.release(reader)
    services.leases.release(writer)
    assert list(live_leases(services, TABLE)) == [lent]


def test_leases_are_renewed_while_they_are_held(world: World) -> None:
    """Only the time of their end changes."""
    services = world.services()
    lease = services.leases.take(TABLE, 1)
    world.clock.now += 1000
    services.leases.renew()
    assert expiries(services) == {lease.id: world.clock.now + LEASE_MS}
    services.leases.release(lease)
    services.leases.renew()
    assert expiries(services) == {}


def test_a_thread_renews_in_time(world: World) -> None:
    """Three times before it would expire, as long as somebody holds one."""
    services = world.services()
    renewed = threading.Event()
    faults = Faults(after=lambda operation, _: renewed.set() if operation == "put" else None)
    object.__setattr__(services, "blob", UnreliableBlob(world.blob, faults))
    keeper = LeaseKeeper(services, duration_ms=30)
    lease = keeper.take(TABLE, 1)
    renewed.clear()
    assert renewed.wait(30)
    keeper.release(lease)
    keeper.close()


def test_a_lease_that_cannot_be_renewed_does_not_stop_the_others(world: World) -> None:
    """Each is tried, and tried again at the next turn."""
    faults = Faults()
    services = world.services(blob=lambda blob: UnreliableBlob(blob, faults))
    first, second = services.leases.take(TABLE, 1), services.leases.take(TABLE, 2)
    before = expiries(services)
    world.clock.now += 1000
    faults._script = [("put", Outcome.NOT_DONE)]
    services.leases.renew()
    after = expiries(services)
    assert after[first.id] == before[first.id]
    assert after[second.id] == before[second.id] + 1000
    services.leases.renew()
    assert set(expiries(services).values()) == {world.clock.now + LEASE_MS}


def test_a_release_is_not_undone_by_a_renewal_under_way(world: World) -> None:
    """A lease that is given back while it is being renewed is gone in the end."""
    released: list[object] = []

    def before(operation: str, key: str) -> None:
        if operation == "put" and key == lease_key(TABLE, lease.id) and not released:
            released.append(key)
            services.leases.release(lease)

    faults = Faults()
    services = world.services(blob=lambda blob: UnreliableBlob(blob, faults))
    lease = services.leases.take(TABLE, 1)
    faults.before = before
    services.leases.renew()
    assert released
    assert expiries(services) == {}


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        (CommitOutcomeUnknownError("t", "c", "no answer"), True),
        (StorageTimeoutError("put", "no answer"), True),
        (StorageError("put", "refused"), False),
        (ValueError("a slip"), False),
        (KeyboardInterrupt(), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_holder_that_fails_gives_its_lease_back_unless_something_may_still_arrive(
    world: World, error: BaseException, kept: bool
) -> None:
    """What arrives late finds what it refers to."""
    services = world.services()
    with pytest.raises(type(error)), services.leases.hold(TABLE, 1, "w"):
        raise error
    assert bool(expiries(services)) == kept
    world.clock.now += 1000
    services.leases.renew()
    assert all(end < world.clock.now + LEASE_MS for end in expiries(services).values())


def test_a_release_that_fails_is_no_error(world: World) -> None:
    """What could not be deleted expires."""
    faults = Faults()
    services = world.services(blob=lambda blob: UnreliableBlob(blob, faults))
    lease = services.leases.take(TABLE, 1)
    faults._script = [("delete", Outcome.NOT_DONE)]
    services.leases.release(lease)
    assert list(expiries(world.services())) == [lease.id]


def test_closing_gives_everything_back(world: World) -> None:
    """Nothing is left to expire of a store that was closed."""
    services = world.services()
    services.leases.take(TABLE, 1)
    services.leases.take(TABLE, 2)
    services.close()
    assert [*world.blob.list(leases(TABLE))] == []


def test_a_forked_process_renews_its_own_leases(world: World) -> None:
    """Threads do not survive a fork, so the child starts one of its own."""
    services = world.services()
    services.leases.take(TABLE, 1)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            object.__setattr__(services, "blob", _Nowhere())
            services.leases.take(TABLE, 2)
            thread = services.leases._thread
            code = 0 if thread is not None and thread.is_alive() else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class _Nowhere:
    """A blob that a forked process may use: the one in memory has threads, which did not come along."""

    def put(self, key: str, data: bytes, *, durable: bool = True) -> None:
        pass


def test_a_lease_that_was_lent_is_held_until_its_own_end(world: World) -> None:
    """Another process may go on when the lender is gone."""
    services = world.services()
    lease = services.leases.take(TABLE, 3)
    copy = services.leases.lend(lease, 5000)
    services.leases.release(lease)
    services.leases.renew()
    assert expiries(services) == {copy.id: world.clock.now + 5000}
    world.services().leases.release(copy)
    assert expiries(services) == {}
