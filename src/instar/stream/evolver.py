"""The evolver's runner: takes the lead, does what `next_action` says, and records each step.

One table is one short commit, so no writer ever waits. Commits of all share the disk, though, so the evolver
rests between batches. Every step may be repeated: a table that has its stamp
is left alone, and an evolver that has lost the lead finds out when it records what it did.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from instar.errors import InstarError, LeadershipLostError, StorageError, UsageError
from instar.stream import metrics
from instar.stream.commands import forget_table
from instar.stream.evolution import (
    BATCH,
    Action,
    EvolutionChange,
    EvolverState,
    Failure,
    Finish,
    Finished,
    Led,
    Progressed,
    Queued,
    Refill,
    Refilled,
    Rest,
    StampTables,
    Walk,
    Walked,
    apply_evolution,
    is_stale,
    next_action,
)
from instar.stream.journal import Codec, Journal
from instar.stream.judging import Judge, QueryJudge
from instar.stream.leadership import LEAD_MS, claim_lead
from instar.stream.queue import load_spill, spill_queue
from instar.stream.stamp import load_stamp, stamp_table
from instar.stream.walk import Verdicts, stale_tables
from instar.stream.writing import finish_pending, run_side_by_side
from instar.table.log.tables import INTERNAL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from threading import Event

    from instar.state import Step, TableState
    from instar.stream.catalog import Catalog
    from instar.stream.handle import StreamHandle
    from instar.stream.judging import TableJudgement
    from instar.stream.version import Version

__all__ = ["SHARE", "PassReport", "Standby", "StreamEvolver"]

SHARE: Final = 0.2
"""The share of the time that an evolver works: it is in no hurry, but writers are."""

_LONGEST_REST: Final = 1.0
"""Seconds between two batches: where a batch takes long, it is not a disk that it waits for."""

_EVOLVER: Final = f"{INTERNAL}evolver/"

_CODEC: Final = Codec[EvolverState, EvolutionChange](
    "evolution",
    EvolutionChange,
    EvolverState,
    apply_evolution,
    lambda evolution: evolution,
    lambda image: image,  # type: ignore[arg-type, return-value]
)


class Standby(NamedTuple):
    """Another evolver leads until a time, or longer if it renews its lead."""

    holder: str
    until: int


class PassReport(NamedTuple):
    """What an evolver did for one stream, or for all of a store."""

    passes: int = 0
    """Passes that finished."""
    stamped: int = 0
    """Tables that were brought to a newer version."""
    skipped: int = 0
    """Tables that were left as they are, because no query would notice."""
    failed: int = 0
    """Attempts on a table that failed; it is tried again later."""
    vanished: int = 0
    """Tables that were gone when their turn came."""
    waiting: int = 0
    """Tables that still wait for their turn."""

    def plus(self, other: PassReport) -> PassReport:
        """Add up two reports."""
        return PassReport(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class _Turn(NamedTuple):
    """The outcome for one table."""

    stamped: bool = False
    skipped: bool = False
    vanished: bool = False
    absent: bool = False
    error: str | None = None


class StreamEvolver:
    """Brings the tables of one stream to its latest version. Only `step` and `run` change anything."""

    def __init__(
        self,
        handle: StreamHandle,
        judge: Judge | None = None,
        *,
        holder: str | None = None,
        batch: int = BATCH,
        lead_ms: int = LEAD_MS,
        share: float = SHARE,
    ) -> None:
        if not 0 < share <= 1:
            raise UsageError(f"an evolver cannot work for {share} of the time: give more than 0, up to 1")
        services = handle.services
        self._handle = handle
        self._clock = services.clock
        self._judge = QueryJudge() if judge is None else judge
        self._holder = holder or f"{services.author()}/{services.new_id()[:8]}"
        self._batch = batch
        self._lead_ms = lead_ms
        self._share = share
        self._own: Journal[EvolverState, EvolutionChange] | None = None
        self._fence: int | None = None

    @property
    def _journal(self) -> Journal[EvolverState, EvolutionChange]:
        if self._own is None:
            key = _EVOLVER + self._handle.known().key
            self._own = Journal(self._handle.services, key, _CODEC)
        return self._own

    @property
    def stream(self) -> str:
        """The name of the stream."""
        return self._handle.name

    def load(self) -> EvolverState:
        """Return the evolver's state, whichever process leads."""
        return self._journal.refresh() or EvolverState()

    def plan(self) -> tuple[EvolverState, Catalog, Action]:
        """Return what is next, and what that follows from. Two reads, however many tables there are."""
        catalog = self._handle.load()
        evolution = self.load()
        return evolution, catalog, self._next(evolution, catalog)

    def _next(self, evolution: EvolverState, catalog: Catalog) -> Action:
        return next_action(evolution, catalog, self._clock(), self._batch, rules=self._judge.rules)

    def judge_all(self, catalog: Catalog) -> list[tuple[list[Version], TableJudgement]]:
        """Judge every older schema of a stream beside its latest, with the versions that brought it."""
        latest = catalog.schema
        found = []
        for schema_id, schema in enumerate(catalog.history.schemas[:-1]):
            versions = [
                version
                for version in sorted(catalog.versions)
                if catalog.versions[version].schema_id == schema_id
            ]
            found.append((versions, self._judge.judge(schema, latest)))
        return found

    def run(
        self, progress: Callable[[EvolverState], None] | None = None, stop: Event | None = None
    ) -> tuple[PassReport, Rest | Standby]:
        """Do everything that is due now, or until `stop` is set; return what was done, and what is next."""
        report = PassReport()
        while True:
            began = time.monotonic()
            try:
                done, outcome = self.step()
            except LeadershipLostError as lost:
                outcome, done = Standby(lost.holder, self._clock() + self._lead_ms), PassReport()
            report = report.plus(done)
            if progress is not None:
                progress(self._journal.known or EvolverState())
            if stop is not None and stop.is_set():
                outcome = Rest(self._clock())
            if isinstance(outcome, Rest | Standby):
                self._resign()
                metrics.LEADING.labels(self.stream).set(0)
                return report._replace(waiting=self._known().waiting), outcome
            if isinstance(outcome, StampTables) and self._known().waiting:
                self._rest(time.monotonic() - began, stop)

    def _rest(self, worked: float, stop: Event | None) -> None:
        """Pause after some work, as long as its share of the time requires."""
        seconds = min(worked * (1 / self._share - 1), _LONGEST_REST)
        if seconds and stop is not None:
            stop.wait(seconds)
        elif seconds:
            time.sleep(seconds)

    def step(self) -> tuple[PassReport, Action | Standby]:
        """Take one step, so small that a crash loses only the work of that step."""
        evolution, catalog, action = self.plan()
        if isinstance(action, Rest):
            return PassReport(), action
        rival = self._lead(evolution)
        if rival is not None:
            return PassReport(), rival
        finish_pending(self._handle)
        match action:
            case Walk():
                self._walk(catalog)
                return PassReport(skipped=self._known().skipped), action
            case StampTables():
                return self._stamp(catalog, action), action
            case Refill(spill=spill):
                tables = load_spill(self._handle.services.blob, spill)
                self._record(Refilled(tables))
                self._delete(spill.key)
                return PassReport(), action
            case Finish():
                self._record(Finished(self._clock()))
                metrics.PASSES.labels(self.stream).inc()
                return PassReport(passes=1), action

    def _known(self) -> EvolverState:
        return self._journal.known or EvolverState()

    def _lead(self, evolution: EvolverState) -> Standby | None:
        """Take the lead or keep it; return the holder if it is somebody else."""
        current = evolution.leadership
        rival, renewed = claim_lead(current, self._holder, self._fence, self._clock(), self._lead_ms)
        if rival is not None:
            return Standby(rival.holder, rival.expires_at)
        if renewed is None:
            return None

        def decide(state: EvolverState | None) -> Sequence[EvolutionChange]:
            found = None if state is None else state.leadership
            if found != current:
                holder = "nobody" if found is None else found.holder
                raise LeadershipLostError(self.stream, holder)
            return (Led(renewed),)

        led = self._journal.commit(decide)
        self._fence = None if led is None or led.leadership is None else led.leadership.fence
        metrics.LEADING.labels(self.stream).set(1)
        return None

    def _resign(self) -> None:
        """Let others lead at once, since there is nothing to do for a while; otherwise the lead lapses."""
        current, now = self._known().leadership, self._clock()
        if current is None or (current.holder, current.fence) != (self._holder, self._fence):
            return
        if current.expires_at > now:
            with suppress(LeadershipLostError, StorageError):
                self._record(Led(msgspec.structs.replace(current, expires_at=now)))

    def _record(self, change: EvolutionChange) -> None:
        """Record a step, unless somebody else leads by now."""

        def decide(state: EvolverState | None) -> Sequence[EvolutionChange]:
            found = None if state is None else state.leadership
            if found is None or found.holder != self._holder or found.fence != self._fence:
                raise LeadershipLostError(self.stream, "nobody" if found is None else found.holder)
            return (change,)

        self._journal.commit(decide)
        metrics.WAITING.labels(self.stream).set(self._known().waiting)

    def _walk(self, catalog: Catalog) -> None:
        """Begin a pass: collect what is stale, unless no query would notice any of it."""
        before = self._known()
        verdicts = Verdicts(catalog, self._judge, before.verdicts)
        stale = stale_tables(catalog, before, self._judge.rules)
        checked = bool(stale) and verdicts.all_compatible()
        queue = () if checked else stale
        kept, spilled = spill_queue(self._handle.services, catalog.stream_id, queue)
        self._record(
            Walked(
                str(catalog.max_version),
                catalog.schema_id,
                catalog.counter,
                kept,
                spilled,
                len(queue),
                len(stale) if checked else 0,
                checked,
                verdicts.known,
                self._judge.rules,
            )
        )
        for spill in before.spilled:
            self._delete(spill.key)
        if checked:
            metrics.SKIPPED.labels(self.stream).inc(len(stale))

    def _stamp(self, catalog: Catalog, action: StampTables) -> PassReport:
        verdicts = Verdicts(catalog, self._judge, self._known().verdicts)
        turns = run_side_by_side(lambda table: self._turn(catalog, table, verdicts), action.tables)
        retried = tuple(table.name for table in action.tables[: len(action.tables) - action.taken])
        failures = tuple(
            Failure(table, turn.error)
            for table, turn in zip(action.tables, turns, strict=True)
            if turn.error is not None
        )
        report = PassReport(
            stamped=sum(turn.stamped for turn in turns),
            skipped=sum(turn.skipped for turn in turns),
            failed=len(failures),
            vanished=sum(turn.vanished for turn in turns),
        )
        self._record(
            Progressed(
                self._clock(),
                action.taken,
                retried,
                report.stamped,
                report.skipped,
                report.vanished,
                failures,
                tuple(table.name for table, turn in zip(action.tables, turns, strict=True) if turn.absent),
                verdicts.known,
                self._judge.rules,
            )
        )
        for counter, count in (
            (metrics.STAMPED, report.stamped),
            (metrics.SKIPPED, report.skipped),
            (metrics.FAILED, report.failed),
            (metrics.VANISHED, report.vanished),
        ):
            counter.labels(self.stream).inc(count)
        return report

    def _turn(self, catalog: Catalog, table: Queued, verdicts: Verdicts) -> _Turn:
        """Bring one table to the target, by its state now, not when it was queued."""
        try:
            log, state = self._handle.find_table(table.name)
            if state is None or not state.is_at(table.name):
                return self._missing(catalog, table, state)
            stamp = load_stamp(state, catalog)
            if not is_stale(stamp.version, stamp.schema_id, catalog):
                return _Turn()
            if verdicts.compatible(stamp.schema_id):
                return _Turn(skipped=True)

            def decide(state: TableState | None) -> tuple[Step, ...]:
                if state is None or state.dropped:
                    return ()
                return stamp_table(state, catalog, fence=self._fence)

            return _Turn(stamped=log.commit(decide).entry is not None)
        except LeadershipLostError:
            raise
        except InstarError as error:
            return _Turn(error=f"{type(error).__name__}: {error}")

    def _missing(self, catalog: Catalog, table: Queued, state: TableState | None) -> _Turn:
        """Let the stream forget a table that was dropped; one that is about to be created stays known."""
        record = catalog.tables.get(table.name)
        if record is None or state is None or state.table_id != record.table_id:
            return _Turn(vanished=True, absent=record is not None)
        gone = record.table_id
        self._handle.commit(lambda found: forget_table(found, table.name, gone))
        return _Turn(vanished=True)

    def _delete(self, key: str) -> None:
        with suppress(StorageError):  # a vacuum of the store takes it
            self._handle.services.blob.delete([key])
