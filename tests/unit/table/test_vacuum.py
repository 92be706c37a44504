"""Why a vacuum is safe: one interleaving for each sentence of its argument, and one for each way around it.

A hook runs in the middle of the vacuum, after one of its requests, and does what others might do there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from instar.errors import (
    CommitOutcomeUnknownError,
    ConflictError,
    CorruptTableError,
    NotFoundError,
    TableNotFoundError,
)
from instar.state import NewBatch, Place
from instar.state.commands import configure
from instar.storage import DirectoryBlob
from instar.table import (
    Services,
    TableLog,
    begin_write,
    create_table,
    drop_table,
    vacuum_store,
    vacuum_table,
)
from instar.table.layout import chunk_key, lease_key, leases, part_key, rollups, table_root
from instar.table.log.leases import LEASE_MS
from instar.table.log.rollup import write_rollup
from tests.faults import Faults, Outcome, UnreliableBlob, UnreliableConsensus
from tests.tables import World, all_rows, append_parts, find_missing, make_parts, small_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from instar.state import TableState

NAME = "events"


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    with small_numbers():
        yield


@pytest.fixture
def log(world: World) -> TableLog:
    """Return a handle on a table with some parts, two of them replaced, and a rollup."""
    services = world.services()
    log = create_table(services, NAME, "n int")
    for _ in range(3):
        append_parts(services, log, put=True)
    log.checkpoint()
    replace_two(services, log)
    return log


def replace_two(services: Services, log: TableLog) -> list[str]:
    """Compact the two oldest parts into one; return the keys of the two."""
    state = log.load()
    rows = sorted(all_rows(services, state).items())[:2]
    with begin_write(services, log) as writer:
        [part] = make_parts(state.table_id, writer.write_id, 1)
        services.blob.put(part.key, b"x" * part.size)
        size = (sum(row["rows"] for _, row in rows), sum(row["size"] for _, row in rows))
        batch = NewBatch(0, state.upper, state.history.latest_id, (part,))
        writer.replace(state.seqno, [place for place, _ in rows], size, batch)
    return [row["key"] for _, row in rows]


def fresh(world: World) -> TableState:
    """Return what somebody sees who opens the table now."""
    return TableLog(world.services(), NAME).load()


def keys(services: Services, directory: str) -> set[str]:
    """Return what is in a directory of the store."""
    return {stored.key for stored in services.blob.list(directory)}


def interrupted(
    world: World, operation: str, place: str, act: Callable[[], Any], *, before: bool = False
) -> Services:
    """Open the place so that something happens once, after (or before) an operation at a key."""
    pending = [act]

    def hook(done: str, key: str) -> None:
        if done == operation and key.startswith(place) and pending:
            pending.pop()()

    faults = Faults(before=hook) if before else Faults(after=hook)
    services = world.services(
        blob=lambda blob: UnreliableBlob(blob, faults),
        consensus=lambda logs: UnreliableConsensus(logs, faults),
    )
    services_pending.append(pending)
    return services


services_pending: list[list[Callable[[], Any]]] = []


@pytest.fixture(autouse=True)
def _everything_happened() -> Iterator[None]:
    services_pending.clear()
    yield
    assert services_pending in ([], [[]] * len(services_pending)), "a hook was never reached"


# --- what goes, and what stays --------------------------------------------------------------------------


def test_what_a_compaction_replaced_goes_and_the_table_stays_the_same(world: World, log: TableLog) -> None:
    """Replaced parts, old rollups and old chunks are deleted; what the table says is not touched."""
    services = world.services()
    root = table_root(log.load().table_id)
    before = all_rows(services, log.load())
    world.clock.now += LEASE_MS
    report = vacuum_table(services, NAME, grace_ms=0)
    assert all_rows(services, fresh(world)) == before
    assert find_missing(services, fresh(world)) == []
    assert report.objects > 0
    assert len(keys(services, f"{root}/parts")) == len(before) == 2
    assert len(keys(services, f"{root}/rollups")) == 1
    assert keys(services, leases(log.load().table_id)) == set()
    assert report.kept_objects == len(keys(services, root)) - len(keys(services, f"{root}/history"))
    assert report.log_entries == 6


def test_a_second_vacuum_finds_nothing_to_do(world: World, log: TableLog) -> None:
    """A vacuum of a table that nobody used since leaves it byte for byte as it was."""
    services = world.services()
    vacuum_table(services, NAME, grace_ms=0)
    world.clock.now += LEASE_MS
    vacuum_table(services, NAME, grace_ms=0)
    entries = [entry.seqno for entry in log.entries()]
    assert len(entries) == 1
    objects = keys(services, "")
    report = vacuum_table(services, NAME, grace_ms=0)
    assert (report.objects, report.bytes, report.log_entries) == (0, 0, 0)
    assert [entry.seqno for entry in log.entries()] == entries
    assert keys(services, "") == objects


def test_a_dry_run_says_what_a_real_one_does_and_does_nothing(world: World, log: TableLog) -> None:
    """Once a table has its checkpoint, both report the same, and only one of them deletes."""
    services = world.services()
    log.checkpoint()
    world.clock.now += LEASE_MS
    objects, entries = keys(services, ""), list(log.entries())
    planned = vacuum_table(services, NAME, grace_ms=0, dry_run=True)
    assert keys(services, "") == objects
    assert list(log.entries()) == entries
    sizes = {stored.key: stored.size for stored in services.blob.list()}
    done = vacuum_table(services, NAME, grace_ms=0)
    gone = objects - keys(services, "")
    gone = {key for key in gone if not key.startswith("log/")}
    assert planned == done
    assert planned.objects == len(gone) > 0
    assert planned.bytes == sum(sizes[key] for key in gone)


def test_grace_keeps_what_is_younger(world: World, log: TableLog) -> None:
    """With a grace period, neither young objects nor young commits go, though nothing reaches them."""
    services = world.services()
    log.checkpoint()
    age = world.clock.now - int(max(stored.last_modified for stored in world.blob.list()).timestamp() * 1000)
    objects, entries = keys(services, ""), len(list(log.entries()))
    report = vacuum_table(services, NAME, grace_ms=age + 60_000)
    assert (report.objects, report.log_entries) == (0, 0)
    assert keys(services, "") == objects
    assert len(list(log.entries())) == entries


def test_the_parts_of_a_writer_that_died_go_when_its_lease_has_expired(world: World, log: TableLog) -> None:
    """Until then they stay: it might only be slow."""
    services, dead = world.services(), world.services()
    table_id = log.load().table_id
    lease = dead.leases.take(table_id, log.load().seqno, "dead")
    services.blob.put(part_key(table_id, "dead", 0), b"orphan")
    services.blob.put(chunk_key(table_id, "dead", 0), b"orphan")
    vacuum_table(services, NAME, grace_ms=0)
    assert part_key(table_id, "dead", 0) in keys(services, table_root(table_id))
    assert chunk_key(table_id, "dead", 0) in keys(services, table_root(table_id))
    world.clock.now += LEASE_MS + 1
    vacuum_table(services, NAME, grace_ms=0)
    left = keys(services, table_root(table_id))
    assert part_key(table_id, "dead", 0) not in left
    assert chunk_key(table_id, "dead", 0) not in left
    assert lease_key(table_id, lease.id) not in left


def test_a_table_that_was_dropped_leaves_only_the_knowledge_of_it(world: World, log: TableLog) -> None:
    """Parts, chunks and rollups go; the name can be used again, before and after."""
    services = world.services()
    state = log.load()
    drop_table(services, NAME)
    vacuum_table(services, NAME, grace_ms=0)
    assert keys(services, table_root(state.table_id)) == set()
    with pytest.raises(TableNotFoundError):
        TableLog(world.services(), NAME).load()
    anew = create_table(world.services(), NAME, "other string")
    append_parts(services, anew, put=True)
    vacuum_table(services, NAME, grace_ms=0)
    vacuum_store(services, grace_ms=0)
    assert keys(services, table_root(state.table_id)) == set()
    assert find_missing(services, fresh(world)) == []


def test_a_dropped_table_is_kept_for_a_reader_that_holds_it(world: World, log: TableLog) -> None:
    """Whoever was reading when it was dropped reads on, also when its name belongs to another table."""
    reader, services = world.services(), world.services()
    with TableLog(reader, NAME).pinned() as state:
        rows = all_rows(reader, state)
        drop_table(services, NAME)
        vacuum_table(services, NAME, grace_ms=0)
        assert find_missing(reader, state) == []
        create_table(services, NAME, "other string")
        vacuum_table(services, NAME, grace_ms=0)
        vacuum_store(services, grace_ms=0)
        assert find_missing(reader, state) == []
        assert all_rows(world.services(), state) == rows
    vacuum_store(services, grace_ms=0)
    assert keys(services, table_root(state.table_id)) == set()


def test_unfinished_puts_go_only_when_no_put_can_take_so_long(tmp_path: Path) -> None:
    """No grace makes a vacuum take away the file that somebody is just writing."""
    world = World(DirectoryBlob(tmp_path))
    services = world.services()
    create_table(services, NAME, "n int")
    staged = tmp_path / ".staging" / ("0" * 32)
    staged.write_bytes(b"half")
    modified = int(staged.stat().st_mtime * 1000)
    world.clock.now = modified + 1000
    vacuum_store(services, grace_ms=0)
    assert staged.exists()
    world.clock.now = modified + LEASE_MS + 1000
    assert vacuum_store(services, grace_ms=0, dry_run=True).objects == 1
    assert staged.exists()
    assert vacuum_store(services, grace_ms=0).objects == 1
    assert not staged.exists()


# --- "Objects are listed first, then the state is loaded, then leases, then rollups and the state again" ---


def test_a_vacuum_looks_in_the_order_that_its_safety_rests_on(world: World, log: TableLog) -> None:
    """Objects, state, leases, rollups, log."""
    table_id = log.load().table_id
    log.checkpoint()
    faults = Faults()
    services = world.services(
        blob=lambda blob: UnreliableBlob(blob, faults),
        consensus=lambda logs: UnreliableConsensus(logs, faults),
    )
    vacuum_table(services, NAME, grace_ms=0, dry_run=True)
    wanted = [
        ("list", table_root(table_id)),
        ("scan", NAME),
        ("list", leases(table_id)),
        ("list", rollups(table_id)),
        ("scan", NAME),
    ]
    calls = iter(faults.calls)
    assert all(call in calls for call in wanted), faults.calls


# --- "A reader takes its lease first and loads its state after that" ----------------------------------------


def test_a_reader_takes_its_lease_before_it_loads_what_it_reads(world: World, log: TableLog) -> None:
    """A commit between the lease and the load is in what is read, never the other way round."""
    table_id = log.load().table_id
    other = world.services()
    reader = interrupted(
        world, "put", leases(table_id), lambda: append_parts(other, TableLog(other, NAME), put=True)
    )
    with TableLog(reader, NAME).pinned() as state:
        assert state.seqno == log.load().seqno


# --- "If the vacuum saw the lease, it keeps what that state reaches" ---------------------------------------


@pytest.mark.parametrize("vacuums", [1, 2])
def test_what_a_pinned_reader_refers_to_outlives_everything(
    world: World, log: TableLog, vacuums: int
) -> None:
    """However often the table is compacted, rolled up and vacuumed, a reader finds all of its state."""
    reader, services = world.services(), world.services()
    with TableLog(reader, NAME).pinned() as state:
        rows = all_rows(reader, state)
        for _ in range(vacuums):
            for _ in range(5):
                append_parts(services, log, 3, put=True)
                replace_two(services, log)
                log.settle()
            vacuum_table(services, NAME, grace_ms=0)
            assert find_missing(reader, state) == []
        assert all_rows(world.services(), state) == rows
    vacuum_table(services, NAME, grace_ms=0)
    assert find_missing(services, state) != []
    assert find_missing(services, fresh(world)) == []


def test_a_reader_of_a_table_without_rollups_is_held_too(world: World) -> None:
    """A state that was read from the very beginning of the log keeps what came with its commits."""
    services = world.services()
    log = create_table(services, NAME, "n int")
    append_parts(services, log, 2, put=True)
    with TableLog(world.services(), NAME).pinned() as state:
        replace_two(services, log)
        vacuum_table(services, NAME, grace_ms=0)
        vacuum_table(services, NAME, grace_ms=0)
        assert find_missing(services, state) == []


@pytest.mark.parametrize("held", [0, 1, 2, 3, 5])
def test_a_lease_on_a_seqno_that_is_long_gone_costs_no_part(world: World, log: TableLog, held: int) -> None:
    """The parts of the oldest rollup are kept also where the log no longer tells of them."""
    services = world.services()
    world.clock.now += LEASE_MS
    assert vacuum_table(services, NAME, grace_ms=0).log_entries > 0
    append_parts(services, log, put=True)
    with world.services().leases.hold(log.load().table_id, held):
        for _ in range(3):
            vacuum_table(services, NAME, grace_ms=0)
            assert find_missing(services, fresh(world)) == []
            append_parts(services, log, put=True)


# --- "If not, the lease is younger than the first load, so the reader's state is younger too" ---------------


@pytest.mark.parametrize("operation", ["list-objects", "list-leases", "list-rollups", "delete", "truncate"])
@pytest.mark.parametrize("stale", [False, True])
def test_a_reader_that_comes_in_the_middle_of_a_vacuum_misses_nothing(
    world: World, log: TableLog, operation: str, stale: bool
) -> None:
    """At whatever moment, and whether its handle was fresh or had slept since before the last rollup."""
    services = world.services()
    table_id = log.load().table_id
    reader = TableLog(world.services(), NAME)
    if stale:
        reader.load()
        for _ in range(6):
            append_parts(services, log, put=True)
            log.settle()
        replace_two(services, log)
        log.checkpoint()
    name, place = {
        "list-objects": ("list", table_root(table_id)),
        "list-leases": ("list", leases(table_id)),
        "list-rollups": ("list", rollups(table_id)),
        "delete": ("delete", ""),
        "truncate": ("truncate", ""),
    }[operation]
    pins: list[Any] = []
    vacuuming = interrupted(world, name, place, lambda: pins.append(reader.pinned()))
    vacuum_table(vacuuming, NAME, grace_ms=0)
    [pin] = pins
    assert find_missing(services, pin.state) == []
    vacuum_table(world.services(), NAME, grace_ms=0)
    assert find_missing(services, pin.state) == []
    pin.release()


def test_a_reader_whose_first_look_was_before_the_vacuum_and_whose_lease_came_after(
    world: World, log: TableLog
) -> None:
    """A whole vacuum between the first look and the lease: the reader looks again, and so it is safe."""
    table_id = log.load().table_id
    log.checkpoint()
    slow = world.services()

    def meanwhile() -> None:
        replace_two(slow, TableLog(slow, NAME))
        vacuum_table(slow, NAME, grace_ms=0)

    reader = interrupted(world, "put", leases(table_id), meanwhile, before=True)
    with TableLog(reader, NAME).pinned() as state:
        assert find_missing(slow, state) == []
        vacuum_table(slow, NAME, grace_ms=0)
        assert find_missing(slow, state) == []


def test_a_reader_whose_table_began_anew_before_its_lease_is_told(world: World, log: TableLog) -> None:
    """A lease on a table that has ended is no use, and is given back; who looks again finds the new one."""
    table_id = log.load().table_id
    other = world.services()

    def meanwhile() -> None:
        drop_table(other, NAME)
        append_parts(other, create_table(other, NAME, "s string"), 3, put=True)

    reader = interrupted(world, "put", leases(table_id), meanwhile, before=True)
    with pytest.raises(TableNotFoundError):
        TableLog(reader, NAME).pinned()
    assert keys(reader, leases(table_id)) == set()
    with TableLog(reader, NAME).pinned() as state:
        assert state.table_id != table_id
        append_parts(other, TableLog(other, NAME), put=True)
        vacuum_table(other, NAME, grace_ms=0)
        assert find_missing(other, state) == []


# --- "A writer takes its lease before its first object" -----------------------------------------------------


def test_a_write_is_leased_before_its_first_object(world: World, log: TableLog) -> None:
    """Of all that an append of many parts and a rollup put, the lease is first."""
    faults = Faults()
    services = world.services(blob=lambda blob: UnreliableBlob(blob, faults))
    mine = TableLog(services, NAME)
    table_id = mine.load().table_id
    append_parts(services, mine, 5)
    mine.checkpoint()
    puts = [key for operation, key in faults.calls if operation.startswith("put") and "log/" not in key]
    held = leases(table_id)
    [append_lease, chunk, *rest] = puts
    assert append_lease.startswith(held)
    assert "/chunks/" in chunk
    assert rest[0].startswith(held)
    assert rest[-1].startswith(rollups(table_id))


@pytest.mark.parametrize("after", ["objects", "leases", "rollups"])
def test_a_write_that_ends_in_the_middle_of_a_vacuum_loses_nothing(
    world: World, log: TableLog, after: str
) -> None:
    """Its objects were listed; by the time that leases are, it holds one still, or its commit is seen."""
    services = world.services()
    writing = TableLog(services, NAME)
    table_id = writing.load().table_id
    directory = {"objects": table_root(table_id), "leases": leases(table_id), "rollups": rollups(table_id)}
    with begin_write(services, writing) as writer:
        parts = make_parts(table_id, writer.write_id, 5)
        for part in parts:
            services.blob.put(part.key, b"x" * part.size)
        lease = next(iter(services.leases._held.values()))

        def finish() -> None:
            writer.append(parts, 0)
            services.leases.release(lease)

        vacuum_table(interrupted(world, "list", directory[after], finish), NAME, grace_ms=0)
    assert find_missing(services, fresh(world)) == []
    assert len(all_rows(services, fresh(world))) == 7


@pytest.mark.parametrize("after", ["objects", "leases", "rollups"])
def test_a_rollup_that_ends_in_the_middle_of_a_vacuum_loses_nothing(
    world: World, log: TableLog, after: str
) -> None:
    """Its chunks were listed; by the time that leases are, it holds one still, or the rollup is seen."""
    table_id = log.load().table_id
    directory = {"objects": table_root(table_id), "leases": leases(table_id), "rollups": rollups(table_id)}
    append_parts(world.services(), log, 3, put=True)

    class Slow(UnreliableBlob):
        """Puts the rollup in the middle of a vacuum that began when its chunks were there already."""

        def put_if_absent(self, key: str, data: Any) -> bool:  # noqa: ANN401 - bytes of some sort
            if not key.startswith(rollups(table_id)):
                return super().put_if_absent(key, data)
            done: list[bool] = []

            def finish() -> None:
                done.append(self._blob.put_if_absent(key, data))
                for lease in [*rolling.leases._held.values()]:
                    rolling.leases.release(lease)

            vacuum_table(
                interrupted(world, "list", directory[after], finish), NAME, grace_ms=0, dry_run=False
            )
            return done[0]

    rolling = world.services(blob=lambda blob: Slow(blob, Faults()))
    slow = TableLog(rolling, NAME)
    slow.load()
    write_id = "rolling"
    with slow.pinned(write_id) as state:
        rolled = write_rollup(rolling, state, write_id)
    assert find_missing(rolling, rolled) == []
    for handle in (slow, TableLog(world.services(), NAME)):
        with handle.pinned() as pinned:
            assert find_missing(rolling, pinned) == []


def test_a_commit_without_an_answer_leaves_its_lease_to_expire(world: World, log: TableLog) -> None:
    """It may still arrive, so its parts must be there when it does."""
    world.patience = 0.0
    faults = Faults()
    services = world.services(consensus=lambda logs: UnreliableConsensus(logs, faults))
    mine = TableLog(services, NAME)
    mine.load()
    holding = begin_write(services, mine)
    writer = holding.__enter__()
    [part] = make_parts(mine.load().table_id, writer.write_id, 1)
    services.blob.put(part.key, b"x")
    faults._script = [("append", Outcome.NOT_DONE_SILENT)]
    with pytest.raises(CommitOutcomeUnknownError) as caught:
        writer.append([part], 0)
    assert not holding.__exit__(CommitOutcomeUnknownError, caught.value, None)
    other = world.services()
    vacuum_table(other, NAME, grace_ms=0)
    assert other.blob.stat(part.key) is not None
    world.clock.now += LEASE_MS + 1
    vacuum_table(other, NAME, grace_ms=0)
    assert other.blob.stat(part.key) is None


@pytest.mark.parametrize("count", [1, 5], ids=["inline", "chunk"])
@pytest.mark.parametrize("renewed", [False, True])
def test_a_writer_that_slept_past_its_lease_does_not_commit(
    world: World, log: TableLog, count: int, renewed: bool
) -> None:
    """A vacuum may have taken its parts, even if it has renewed its lease when it woke up."""
    services = world.services()
    with begin_write(services, log) as writer:
        parts = make_parts(log.load().table_id, writer.write_id, count)
        for part in parts:
            services.blob.put(part.key, b"x" * part.size)
        world.clock.now += LEASE_MS
        vacuum_table(world.services(), NAME, grace_ms=0)
        if renewed:
            services.leases.renew()
        with pytest.raises(ConflictError, match="write again"):
            writer.append(parts, 0)
        with pytest.raises(ConflictError, match="write again"):
            writer.replace(log.load().seqno, [], (0, 0), NewBatch(0, 1, 0, tuple(parts)))
    assert find_missing(services, fresh(world)) == []


def test_a_rollup_that_slept_past_its_lease_is_not_written(world: World, log: TableLog) -> None:
    """Its chunks may be gone."""
    table_id = log.load().table_id

    def sleep() -> None:
        world.clock.now += LEASE_MS

    services = interrupted(world, "put", f"{table_root(table_id)}/chunks", sleep)
    append_parts(world.services(), log, put=True)
    with pytest.raises(ConflictError, match="write again"):
        TableLog(services, NAME).checkpoint()
    assert find_missing(services, fresh(world)) == []


def test_a_writer_that_is_awake_commits_however_long_it_takes(world: World, log: TableLog) -> None:
    """Its lease was renewed in time, again and again."""
    services = world.services()
    with begin_write(services, log) as writer:
        [part] = make_parts(log.load().table_id, writer.write_id, 1)
        services.blob.put(part.key, b"x" * part.size)
        for _ in range(5):
            world.clock.now += LEASE_MS // 2
            services.leases.renew()
            vacuum_table(world.services(), NAME, grace_ms=0)
        writer.append([part], 0)
    assert find_missing(services, fresh(world)) == []


# --- rollups, which refer to chunks that they have not written --------------------------------------------


def test_a_handle_that_slept_does_not_roll_up_chunks_that_are_gone(world: World, log: TableLog) -> None:
    """A rollup begins with the newest layout, under a lease: chunks that a vacuum took are not in it."""
    services = world.services()
    for _ in range(5):
        append_parts(services, log, 3, put=True)
        log.settle()
    log.checkpoint()
    asleep = TableLog(world.services(), NAME)
    old = asleep.load()
    for _ in range(4):
        replace_two(services, log)
        append_parts(services, log, 5, put=True)
        log.settle()
    vacuum_table(services, NAME, grace_ms=0)
    assert find_missing(services, old) != []
    sleeper = asleep._services
    for _ in range(9):
        append_parts(sleeper, asleep, put=True)
        asleep.settle()
    asleep.checkpoint()
    assert find_missing(services, fresh(world)) == []
    vacuum_table(services, NAME, grace_ms=0)
    assert find_missing(services, fresh(world)) == []


def test_of_two_rollups_at_one_seqno_both_handles_use_the_one_that_is_stored(
    world: World, log: TableLog
) -> None:
    """The chunks of the other are orphans, which nobody refers to and a vacuum takes."""
    table_id = log.load().table_id
    fast = TableLog(world.services(), NAME)
    fast.load()

    slow_services = interrupted(world, "put_if_absent", rollups(table_id), fast._roll, before=True)
    slow = TableLog(slow_services, NAME)
    slow.load()
    slow._roll()
    vacuum_table(world.services(), NAME, grace_ms=0)
    for handle in (fast, slow):
        state = handle.load()
        assert find_missing(slow_services, state) == []
        with handle.pinned() as pinned:
            assert find_missing(slow_services, pinned) == []


def test_a_lease_on_a_layout_that_is_gone_does_not_stop_a_vacuum(world: World, log: TableLog) -> None:
    """Somebody who looked before an earlier vacuum and leased after it has looked again since."""
    services = world.services()
    held = log.load().start.seqno
    for _ in range(4):
        append_parts(services, log, 3, put=True)
        replace_two(services, log)
        log.settle()
    table_id = log.load().table_id
    kept = [*services.blob.list(rollups(table_id))]
    contents = {stored.key: services.blob.get(stored.key) for stored in kept}
    vacuum_table(services, NAME, grace_ms=0)
    for key, data in contents.items():
        services.blob.put(key, data)  # as if rollups had been too young to go, and chunks not
    with world.services().leases.hold(table_id, held):
        vacuum_table(services, NAME, grace_ms=0)
    assert find_missing(services, fresh(world)) == []


def test_a_chunk_that_is_missing_where_it_is_needed_stops_a_vacuum(world: World, log: TableLog) -> None:
    """It would take away parts that only the missing chunk knew."""
    services = world.services()
    log.checkpoint()
    state = TableLog(world.services(), NAME).load()
    services.blob.delete([state.chunks[0].key])
    objects = keys(services, f"{table_root(state.table_id)}/parts")
    with pytest.raises((NotFoundError, CorruptTableError)):
        vacuum_table(world.services(), NAME, grace_ms=0)
    assert keys(services, f"{table_root(state.table_id)}/parts") == objects


@pytest.mark.parametrize("idle", [0, LEASE_MS // 3, LEASE_MS, 10 * LEASE_MS])
def test_a_handle_that_slept_through_a_vacuum_commits_as_ever(world: World, log: TableLog, idle: int) -> None:
    """It never sends a commit to a place that was cut off, where its outcome could not be known."""
    asleep = TableLog(world.services(), NAME)
    seqno = asleep.load().seqno
    services = world.services()
    for _ in range(5):
        append_parts(services, log, put=True)
    world.clock.now += idle
    vacuum_table(services, NAME, grace_ms=0)
    cut = next(log.entries()).seqno > seqno + 1
    assert cut == (idle >= LEASE_MS)
    committed = asleep.commit(lambda state: configure(asleep.check_exists(state), {"skipping": "audit"}))
    assert committed.entry is not None
    assert fresh(world).options == {"skipping": "audit"}


def test_a_table_that_is_dropped_while_it_is_vacuumed_is_no_error(world: World, log: TableLog) -> None:
    """The vacuum goes on with what is left of it."""
    table_id = log.load().table_id
    append_parts(world.services(), log)
    services = interrupted(
        world, "put", leases(table_id), lambda: drop_table(world.services(), NAME), before=True
    )
    vacuum_table(services, NAME, grace_ms=0)
    assert keys(services, f"{table_root(table_id)}/parts") == set()


def test_places_are_for_ever(world: World, log: TableLog) -> None:
    """A compaction that was planned before a vacuum can still be applied after it."""
    services = world.services()
    append_parts(services, log, 4, put=True)
    planned = log.load()
    places = [place for place in all_rows(services, planned) if place.batch == planned.seqno][:2]
    vacuum_table(services, NAME, grace_ms=0)
    with begin_write(services, log) as writer:
        writer.replace(planned.seqno, places, (20, 203), None)
    assert set(all_rows(services, planned)) - set(all_rows(services, log.load())) == set(places)
    assert all(isinstance(place, Place) for place in places)
