"""What becomes of a commit when the store answers, refuses, stays silent, or answers too late.

Each test scripts the outcome of single requests, so that every way through a commit is taken.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from instar.api import Table
from instar.errors import (
    CommitOutcomeUnknownError,
    ConflictError,
    SchemaMismatchError,
    StorageError,
    StorageTimeoutError,
    TableExistsError,
    TableNotFoundError,
    UpperMismatchError,
)
from instar.state import Appended, Created
from instar.state.commands import configure
from instar.storage import AppendResult, MemoryConsensus
from instar.table import Services, TableLog, begin_write, create_table, drop_table, vacuum_table
from instar.table.log.leases import LEASE_MS
from tests.faults import Faults, Outcome, UnreliableConsensus
from tests.tables import World, append_parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.state import Step, TableState
    from instar.storage import Consensus
    from instar.storage.blob import Data
    from instar.table import Committed

NAME = "sales/orders"
DDL = "user string, amount int"


def faulty(world: World, *script: tuple[str, Outcome], **hooks: Any) -> tuple[Services, Faults]:  # noqa: ANN401 - as Faults takes them
    """Open the place through a consensus that fails by a script, which begins when `faults` says so."""
    faults = Faults(script=script, **hooks)
    return world.services(consensus=lambda logs: UnreliableConsensus(logs, faults)), faults


def commits(world: World) -> list[tuple[Step, ...]]:
    """Return what the log really says, checkpoints left out."""
    return [entry.commit.steps for entry in TableLog(world.services(), NAME).entries()]


def batches(world: World) -> int:
    """Count the appends in the log."""
    return sum(isinstance(step, Appended) for steps in commits(world) for step in steps)


def add_region(services: Services) -> Table:
    """Evolve the table as another process would."""
    table = Table(services, TableLog(services, NAME))
    table.evolve().add_column("region", "string").commit()
    return table


@pytest.fixture
def log(world: World) -> TableLog:
    """Return a handle on a new table."""
    return create_table(world.services(), NAME, DDL)


class LateConsensus:
    """A consensus whose first append is not answered, and is carried out right before the second."""

    def __init__(self, logs: Consensus) -> None:
        self._logs = logs
        self._late: Callable[[], AppendResult] | None = None
        self.sent = 0

    def append(self, key: str, expected_seqno: int | None, data: Data) -> AppendResult:
        """Answer with silence first, and catch up with it later."""
        self.sent += 1
        if self.sent == 1:
            self._late = lambda: self._logs.append(key, expected_seqno, data)
            raise StorageTimeoutError("append", "it will arrive later")
        if self._late is not None:
            late, self._late = self._late, None
            late()
        return self._logs.append(key, expected_seqno, data)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the real one has
        return getattr(self._logs, name)


@pytest.mark.usefixtures("log")
def test_a_commit_that_arrives_late_is_not_sent_twice(world: World) -> None:
    """An attempt that lands after it was looked for is found once it stands in the way of the next."""
    late: list[LateConsensus] = []

    def in_between(logs: Consensus) -> Any:  # noqa: ANN401 - it has all the methods of a consensus
        late.append(LateConsensus(logs))
        return late[0]

    services = world.services(consensus=in_between)
    committed = append_parts(services, TableLog(services, NAME))
    assert late[0].sent == 2
    assert batches(world) == 1
    assert committed.entry is not None
    assert committed.entry.seqno == 1


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize("outcome", [Outcome.DONE_SILENT, Outcome.NOT_DONE_SILENT])
def test_a_silent_append_lands_once(world: World, outcome: Outcome) -> None:
    """Without an answer, the commit is looked for: found, or sent again."""
    services, _ = faulty(world, ("append", outcome))
    committed = append_parts(services, TableLog(services, NAME))
    assert batches(world) == 1
    assert committed.entry is not None
    assert committed.entry.seqno == committed.state.seqno == 1


@pytest.mark.usefixtures("log")
def test_a_refused_append_is_an_error_and_did_not_happen(world: World) -> None:
    """A store that says no is believed at once."""
    services, _ = faulty(world, ("append", Outcome.NOT_DONE))
    with pytest.raises(StorageError) as caught:
        append_parts(services, TableLog(services, NAME))
    assert not isinstance(caught.value, StorageTimeoutError)
    assert batches(world) == 0


def test_a_silent_append_whose_place_was_taken_is_sent_again(world: World, log: TableLog) -> None:
    """If somebody else is at the seqno that got no answer, the commit was lost and goes after it."""
    other = world.services()
    once = iter([None])

    def before(operation: str, _key: str) -> None:
        if operation == "append" and next(once, 1) is None:
            append_parts(other, TableLog(other, NAME))

    services, _ = faulty(world, ("append", Outcome.NOT_DONE_SILENT), before=before)
    mine = TableLog(services, NAME)
    committed = append_parts(services, mine)
    assert committed.entry is not None
    assert committed.entry.seqno == 2
    assert batches(world) == 2


def test_losing_a_race_means_deciding_again(world: World, log: TableLog) -> None:
    """After a mismatch the command sees the new state, and its answer is what is committed."""
    stale = TableLog(world.services(), NAME)
    stale.load()
    services = world.services()
    append_parts(services, TableLog(services, NAME))
    seen: list[int] = []

    def decide(state: TableState | None) -> tuple[Step, ...]:
        current = stale.check_exists(state)
        seen.append(current.seqno)
        return configure(current, {"skipping": "audit"})

    committed = stale.commit(decide)
    assert seen == [0, 1]
    assert committed.state.seqno == 2


def test_losing_a_race_can_leave_nothing_to_do(world: World, log: TableLog) -> None:
    """If another has done the same, nothing is committed and the state says so."""
    stale = Table(world.services(), TableLog(world.services(), NAME))
    assert stale.schema == log.load().history.latest
    update = stale.evolve().add_column("region", "string")
    theirs = add_region(world.services()).schema
    assert stale.compare_and_evolve_schema(0, theirs) == 1
    assert update is not None
    assert [entry.seqno for entry in log.entries()] == [0, 1]


def test_losing_a_race_can_be_an_error(world: World, log: TableLog) -> None:
    """What a command raises on the current state reaches the caller, and nothing is committed."""
    services = world.services()
    with begin_write(services, TableLog(services, NAME)) as writer:
        append_parts(world.services(), log)
        with pytest.raises(UpperMismatchError) as caught:
            writer.append([], 0, expected_upper=0, upper=10)
    assert caught.value.current == log.load().upper
    assert batches(world) == 1


def test_what_a_command_raises_on_an_old_state_does_not_count(world: World, log: TableLog) -> None:
    """A handle that is behind looks again before it passes an error on."""
    stale = Table(world.services(), TableLog(world.services(), NAME))
    assert len(stale.schemas) == 1
    newest = add_region(world.services()).schema
    assert stale.compare_and_evolve_schema(1, newest) == 1
    with pytest.raises(SchemaMismatchError):
        stale.compare_and_evolve_schema(0, log.load().history.schemas[0])


@pytest.mark.usefixtures("log")
def test_an_evolution_finds_its_own_success(world: World) -> None:
    """After a lost reply the answer is the new schema's id, not that somebody else was faster."""
    services, _ = faulty(world, ("append", Outcome.DONE_SILENT))
    table = Table(services, TableLog(services, NAME))
    assert table.evolve().add_column("region", "string").commit() == 1
    assert len(table.schemas) == 2


@pytest.mark.usefixtures("log")
def test_an_evolution_answers_with_its_own_id(world: World) -> None:
    """Even if others have evolved the table further before its lost reply was looked for."""
    other = Table(world.services(), TableLog(world.services(), NAME))
    once = iter([None])

    def after(operation: str, _key: str) -> None:
        if operation == "append" and next(once, 1) is None:
            other.evolve().add_column("later", "string").commit()

    services, _ = faulty(world, ("append", Outcome.DONE_SILENT), after=after)
    table = Table(services, TableLog(services, NAME))
    assert table.evolve().add_column("region", "string").commit() == 1
    assert len(table.schemas) == 3


@pytest.mark.usefixtures("log")
def test_a_drop_finds_its_own_success(world: World) -> None:
    """After a lost reply the table is gone, and that is what was asked for."""
    services, _ = faulty(world, ("append", Outcome.DONE_SILENT))
    drop_table(services, NAME)
    naming = TableLog(world.services(), NAME).find_naming()
    assert naming is not None
    assert naming.ended
    with pytest.raises(TableNotFoundError):
        drop_table(services, NAME)


@pytest.mark.usefixtures("log")
def test_a_commit_that_landed_before_the_table_was_dropped_has_landed(world: World) -> None:
    """What happened later does not turn a success into an error."""
    once = iter([None])

    def after(operation: str, _key: str) -> None:
        if operation == "append" and next(once, 1) is None:
            drop_table(world.services(), NAME)

    services, _ = faulty(world, ("append", Outcome.DONE_SILENT), after=after)
    committed = append_parts(services, TableLog(services, NAME))
    assert committed.entry is not None
    assert committed.entry.seqno == 1
    assert committed.state.dropped


def test_a_creation_finds_its_own_success(world: World) -> None:
    """After a lost reply the table is there, and it is this one."""
    services, _ = faulty(world, ("append", Outcome.DONE_SILENT))
    log = create_table(services, NAME, DDL)
    assert log.load().seqno == 0
    with pytest.raises(TableExistsError):
        create_table(services, NAME, DDL)


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize("outcome", [Outcome.NOT_DONE, Outcome.NOT_DONE_SILENT, Outcome.DONE_SILENT])
@pytest.mark.parametrize("failures", [1, 2, 3])
def test_looking_for_a_commit_survives_a_store_that_stumbles(
    world: World, outcome: Outcome, failures: int
) -> None:
    """A landed commit is never reported as one that did not happen because a look failed."""
    services, faults = faulty(world)
    log = TableLog(services, NAME)
    log.load()
    faults._script = [("append", Outcome.DONE_SILENT), *[("scan", outcome)] * failures]
    committed = log.commit(lambda state: configure(log.check_exists(state), {"skipping": "audit"}))
    assert committed.entry is not None
    assert committed.entry.seqno == 1
    assert len(commits(world)) == 2


@pytest.mark.usefixtures("log")
def test_an_outcome_that_cannot_be_found_out_is_unknown(world: World) -> None:
    """If nothing can be read within the patience, the caller is told to look before retrying."""
    world.patience = 0.0
    services, faults = faulty(world)
    log = TableLog(services, NAME)
    log.load()
    faults._script = [("append", Outcome.DONE_SILENT), *[("scan", Outcome.NOT_DONE)] * 3]
    with pytest.raises(CommitOutcomeUnknownError):
        log.commit(lambda state: configure(log.check_exists(state), {"skipping": "audit"}))
    assert len(commits(world)) == 2


@pytest.mark.usefixtures("log")
def test_a_silent_append_then_a_refusal_is_unknown(world: World) -> None:
    """The first attempt may still arrive, so that the second did not happen is no comfort."""
    world.patience = 0.0
    services, _ = faulty(world, ("append", Outcome.NOT_DONE_SILENT))
    log = TableLog(services, NAME)
    log.load()
    with pytest.raises(CommitOutcomeUnknownError):
        log.commit(lambda state: configure(log.check_exists(state), {"skipping": "audit"}))


def test_a_writer_that_always_loses_gives_up_knowing_that_nothing_was_done(
    world: World, log: TableLog
) -> None:
    """With every attempt refused because others were faster, the outcome is known."""
    world.patience = 0.0
    other = world.services()
    theirs = TableLog(other, NAME)

    def before(operation: str, _key: str) -> None:
        if operation == "append":
            append_parts(other, theirs)

    services, _ = faulty(world, before=before)
    with pytest.raises(ConflictError):
        append_parts(services, TableLog(services, NAME), token="mine")
    assert log.load().find_token("mine") is None


@pytest.mark.usefixtures("log")
def test_an_answer_that_came_with_patience_at_its_end_is_still_looked_for(world: World) -> None:
    """The last thing that a commit does before it gives up is to look."""
    world.patience = 0.0
    services, _ = faulty(world, ("append", Outcome.DONE_SILENT))
    committed = append_parts(services, TableLog(services, NAME))
    assert committed.entry is not None


def test_a_commit_that_was_cut_off_unseen_is_unknown(world: World, log: TableLog) -> None:
    """If the log was truncated past the silent attempt, nobody knows what became of it."""
    other = world.services()

    def after(operation: str, _key: str) -> None:
        if operation == "append":
            faults.after = None
            append_parts(other, TableLog(other, NAME))
            world.clock.now += LEASE_MS
            vacuum_table(other, NAME, grace_ms=0)

    services, faults = faulty(world)
    mine = TableLog(services, NAME)
    mine.load()
    faults._script = [("append", Outcome.DONE_SILENT)]
    faults.after = after
    with pytest.raises(CommitOutcomeUnknownError) as caught:
        mine.commit(lambda state: configure(mine.check_exists(state), {"skipping": "audit"}))
    assert "truncated" in str(caught.value)
    assert mine.load().options == {"skipping": "audit"}


def test_a_commit_is_found_in_the_log_after_a_newer_rollup_was_loaded(world: World, log: TableLog) -> None:
    """A handle that had to start over from a rollup still finds its commit, which the log has."""
    other = world.services()

    def after(operation: str, _key: str) -> None:
        if operation == "append":
            faults.after = None
            append_parts(other, TableLog(other, NAME))
            TableLog(other, NAME).checkpoint()
            with mine._lock:
                mine._reload()

    services, faults = faulty(world)
    mine = TableLog(services, NAME)
    mine.load()
    faults._script = [("append", Outcome.DONE_SILENT)]
    faults.after = after
    committed = mine.commit(lambda state: configure(mine.check_exists(state), {"skipping": "audit"}))
    assert committed.entry is not None
    assert committed.entry.seqno == 1


@pytest.mark.usefixtures("log")
def test_a_token_makes_the_second_call_a_no_op(world: World) -> None:
    """A caller that was told nothing repeats its call, and the batch is there once."""
    first = append_parts(world.services(), TableLog(world.services(), NAME), token="job-7/1")
    services = world.services()
    again = append_parts(services, TableLog(services, NAME), token="job-7/1")
    assert first.entry is not None
    assert again.entry is None
    record = again.state.find_token("job-7/1")
    assert record is not None
    assert record.seqno == first.entry.seqno
    assert batches(world) == 1


@pytest.mark.usefixtures("log")
def test_a_token_is_seen_in_a_race(world: World) -> None:
    """Two callers with one token: the loser of the race finds the winner's batch and adds none."""
    other = world.services()
    theirs = TableLog(other, NAME)
    once = iter([None])

    def before(operation: str, _key: str) -> None:
        if operation == "append" and next(once, 1) is None:
            append_parts(other, theirs, token="t")

    services, _ = faulty(world, before=before)
    again = append_parts(services, TableLog(services, NAME), token="t")
    assert again.entry is None
    assert batches(world) == 1


def test_threads_share_a_handle(world: World, log: TableLog) -> None:
    """Commits of many threads through one handle all land, each once."""
    services = world.services()
    shared = TableLog(services, NAME)
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda number: append_parts(services, shared, token=f"{number}"), range(64)))
    seqnos: set[int] = set()
    for committed in done:
        assert committed.entry is not None
        seqnos.add(committed.entry.seqno)
    assert len(seqnos) == 64
    assert len(log.load().tokens) == 64


def test_a_state_never_goes_back_in_one_handle(world: World, log: TableLog) -> None:
    """A reload that fails half-way leaves the handle with the state that it had."""
    append_parts(world.services(), TableLog(world.services(), NAME))
    services, faults = faulty(world)
    mine = TableLog(services, NAME)
    log.checkpoint()
    append_parts(world.services(), log)
    newest = mine.load()
    faults._script = [("scan", Outcome.NOT_DONE)]
    with mine._lock, pytest.raises(StorageError):
        mine._reload()
    assert mine._state == newest


def test_memory_consensus_serves_tables_too() -> None:
    """The tables of a process can keep their logs in its memory."""
    world = World(consensus=MemoryConsensus())
    create_table(world.services(), NAME, DDL)
    services = world.services()
    committed: Committed = append_parts(services, TableLog(services, NAME))
    assert committed.state.upper == world.clock.now + 1
    assert [type(steps[0]) for steps in commits(world)] == [Created, Appended]
    world.close()
