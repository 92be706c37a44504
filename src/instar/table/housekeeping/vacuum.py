"""Vacuum: delete what nothing can reach any more, while readers and writers continue.

Deleted are parts that a compaction replaced, parts of writes that never committed, chunks and rollups
that newer ones have replaced, expired leases, and everything of dropped tables; the log is cut off below
the oldest rollup that somebody may need. What a clone refers to stays. Why this is safe:

- Objects are listed first, then the state is loaded, then leases, then rollups and the state again.
- A reader takes its lease first and loads its state after that. If the vacuum saw the lease, it keeps
  what that state reaches. If not, the lease is younger than the first load, so the reader's state is
  younger too, and what the first state does not reach never comes back.
- A writer takes its lease before its first object. An object that was listed has a lease that is seen, or
  its write has ended: then its commit or rollup, if there is one, is seen in the second look. If it ended
  without an answer, and may still arrive, it has left its lease to expire.
- A rollup refers to chunks of the layout before it, so writing one means reading that layout too.
- Ages are by the clock of the store, of leases too. A vacuum first makes sure that the clock
  of the machine is not ahead of the store's (`check_clock`).
- A writer whose lease expired while it was asleep does not commit. A reader finds that objects are missing,
  which is an error. `grace` keeps everything that is younger.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from instar.errors import StorageError, TableNotFoundError, UsageError
from instar.state.commands import remove
from instar.table.housekeeping.reach import Reach, find_cloned, held_leases
from instar.table.layout import TABLES, archives, lease_key, recorded_queries, table_of, table_root
from instar.table.log.archive import archive_entries
from instar.table.log.leases import LEASE_MS, live_leases
from instar.table.log.table_log import TableLog
from instar.table.log.tables import log_keys

if TYPE_CHECKING:
    from collections.abc import Iterable

    from instar.state import Step, TableState
    from instar.storage import StoredObject
    from instar.table.services import Services

__all__ = ["Settle", "VacuumReport", "check_clock", "vacuum_store", "vacuum_table"]

Settle = Callable[["TableState"], None]
"""Makes commits to a table that are certain to come but are not in its log yet, as a stream has them."""

_NO_TABLE: Final = "0" * 32
"""The id of no table: one place for all probes, so that directories of them do not pile up."""


class VacuumReport(NamedTuple):
    """What a vacuum deleted, or would delete, and what it left."""

    objects: int = 0
    bytes: int = 0
    log_entries: int = 0
    kept_objects: int = 0
    kept_bytes: int = 0


def vacuum_table(
    services: Services,
    key: str,
    *,
    grace_ms: int,
    dry_run: bool = False,
    table_id: str | None = None,
    settle: Settle | None = None,
) -> VacuumReport:
    """Vacuum the table that has a log, dropped or not; the table itself is the same before and after.

    With a table's id, only that one is meant, and not a later table of the same name. A table that was
    dropped is kept for the grace period as it was, and while somebody reads it, so that it can be brought
    back; then a commit says that it cannot any more, and after that it is deleted. Of its log, that commit
    stays: a writer who has slept meanwhile finds it, and a new table of that name continues after it.
    `settle` is called once objects are listed.
    """
    log = TableLog(services, key)
    state = log.refresh()
    if state is None or state.table_id != (table_id or state.table_id):
        raise TableNotFoundError(key, dropped=state is not None)
    log.bind(state.table_id)
    oldest = services.clock() - grace_ms
    if not dry_run and not state.dropped:
        # It may be dropped just now; and where nothing can be written, deleting is needed most.
        with suppress(TableNotFoundError, StorageError):
            log.checkpoint()
        state = log.refresh() or state
    if not dry_run and state.dropped:
        with suppress(TableNotFoundError, StorageError):
            state = _give_up(services, log, state, oldest)
    gone = state.removed or (dry_run and state.dropped and state.dropped_at <= oldest)
    objects = list(services.blob.list(table_root(state.table_id)))
    if settle is not None and not dry_run:
        settle(state)
    sweep = Reach(services, log, state.table_id, gone=gone)
    sweep.reach_clones()
    # These stay as long as the table is there.
    kept = (f"{archives(state.table_id)}/", f"{recorded_queries(state.table_id)}/")
    doomed = [
        stored
        for stored in objects
        if stored.modified_ms <= oldest
        and not sweep.reaches(stored.key)
        and (gone or not stored.key.startswith(kept))
    ]
    cut = sweep.cut(oldest)
    report = _report(objects, doomed)._replace(log_entries=sweep.count_entries(cut))
    if not dry_run:
        services.blob.delete(stored.key for stored in doomed)
        if not gone and sweep.count_entries(cut):
            archive_entries(services, log, state.table_id, cut)
        services.consensus.truncate(services.log_key(key), cut)
    return report


def _give_up(services: Services, log: TableLog, dropped: TableState, oldest: int) -> TableState:
    """Say that a table which was dropped long enough ago cannot come back, and return its state.

    Nobody may be reading it: readers take leases before they load a state, and this one says that it is
    dropped. After that commit, only the name of the table is known.
    """
    if dropped.removed or held_leases(services, dropped.table_id, dropped):
        return dropped

    def decide(state: TableState | None) -> tuple[Step, ...]:
        if state is None or state.table_id != log.table_id or not state.dropped:
            raise TableNotFoundError(log.name)  # it has come back just now, or there is another
        # If it came back and was dropped again meanwhile, somebody may be reading it.
        is_same = state.commit_id == dropped.commit_id
        return remove(state) if is_same and state.dropped_at <= oldest else ()

    with suppress(TableNotFoundError):  # there is nothing to do
        return log.commit(decide).state
    state = log.refresh()
    if state is None or state.table_id != log.table_id:
        raise TableNotFoundError(log.name)
    return state


def vacuum_store(services: Services, *, grace_ms: int, dry_run: bool = False) -> VacuumReport:
    """Vacuum what belongs to no table: former tables of a name that was used again, and unfinished puts."""
    now = services.clock()
    objects = list(services.blob.list(TABLES))
    former = {table_of(stored.key) for stored in objects} - _known_tables(services)
    held = {table_id for table_id in former if next(live_leases(services, table_id), None) is not None}
    if former - held:
        former -= _known_tables(services)  # a clone may have begun before its lease was looked for
    strays = [stored for stored in objects if table_of(stored.key) in former]
    cloned = {table_id: find_cloned(services, table_id) for table_id in former - held}
    # Nobody holds a lease for a put in progress, and there may be one.
    unfinished = list(services.blob.list_unfinished())
    doomed = [
        *(
            stored
            for stored in strays
            if stored.modified_ms <= now - grace_ms
            and table_of(stored.key) not in held
            and not cloned[table_of(stored.key)].reaches(stored.key)
        ),
        *(stored for stored in unfinished if stored.modified_ms <= now - max(grace_ms, LEASE_MS)),
    ]
    if not dry_run:
        services.blob.delete(stored.key for stored in doomed)
    return _report([*strays, *unfinished], doomed)


def _known_tables(services: Services) -> set[str]:
    """Return the ids of all tables that have a log, dropped or not."""
    states = (TableLog(services, key).refresh() for key in log_keys(services))
    return {state.table_id for state in states if state is not None}


def check_clock(services: Services) -> None:
    """Raise if this machine's clock is ahead of the store's: what is young would look old, and be deleted.

    The store tells its time by when it received a small object, which belongs to no table.
    """
    if services.most_ahead_ms is None:
        return
    now = services.clock()
    probe = lease_key(_NO_TABLE, f"clock-{services.new_id()}")
    services.blob.put(probe, b"")
    stored = services.blob.stat(probe)
    services.blob.delete([probe])
    ahead = 0 if stored is None else now - stored.modified_ms
    if ahead > services.most_ahead_ms:
        raise UsageError(
            f"cannot vacuum: the clock of this machine is {ahead / 60_000:.0f} minutes ahead of the store's, "
            "so files that are being written would look old. Nothing was deleted; set the clock right first."
        )


def _report(objects: Iterable[StoredObject], doomed: list[StoredObject]) -> VacuumReport:
    sizes = {stored.key: stored.size for stored in objects}
    freed = sum(stored.size for stored in doomed)
    return VacuumReport(len(doomed), freed, 0, len(sizes) - len(doomed), sum(sizes.values()) - freed)
