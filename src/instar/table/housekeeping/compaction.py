"""Compaction: rewrites parts together, sorted, under the latest schema, and replaces them.

Nobody notices: every read as of any time from `since` on gives the same rows before and after. Rows keep
their times as far as these can still be told apart. Rows that are retracted stay so, by their new positions.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from msgspec.structs import replace as replace_struct

from instar.errors import AdoptedFileError, PartsGoneError
from instar.parts import clustered_run, decode_row
from instar.schema import preserves_order
from instar.state import NewBatch, Place
from instar.state.chunk import FILES, PLACES, ROWS, TIMES
from instar.table.housekeeping.plan import Candidate, Goals, plan_compaction
from instar.table.housekeeping.rewrite import Input, Output, Work, carry_over
from instar.table.log.manifest import load_parts
from instar.table.log.sheets import Retractions, load_retractions
from instar.table.write.append import Gone, begin_write
from instar.table.write.rows import ATTEMPTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyroaring import BitMap

    from instar.state import TableState
    from instar.table.housekeeping.plan import CompactionJob
    from instar.table.log.table_log import Committed, TableLog
    from instar.table.services import Services
    from instar.table.write.append import PartWriter

__all__ = [
    "CompactionReport",
    "Input",
    "Output",
    "Rewrite",
    "Work",
    "compact_table",
    "find_goals",
    "find_work",
    "list_candidates",
]


class Rewrite(Protocol):
    """Reads, sorts and stores: in process, or on executors."""

    def __call__(self, work: Work, /) -> Iterable[Output]:
        """Store the rows of the inputs as new parts."""


class CompactionReport(NamedTuple):
    """What a compaction did."""

    jobs: int = 0
    """How many groups of parts were rewritten, each in its own commit."""
    overtaken: int = 0
    """How many were not, because others had replaced their parts meanwhile."""
    parts_before: int = 0
    parts_after: int = 0
    rows: int = 0
    """The updates that were read."""
    bytes_before: int = 0
    bytes_after: int = 0

    def __add__(self, other: object) -> CompactionReport:
        if not isinstance(other, CompactionReport):
            return NotImplemented
        return CompactionReport(*(one + two for one, two in zip(self, other, strict=True)))


def find_goals(state: TableState, *, full: bool = False) -> Goals:
    """Return the goals for a table."""
    alive = frozenset(state.history.latest.field_ids())
    curve = clustered_run(state.cluster_by) if alive.intersection(state.cluster_by) else None
    return Goals(state.history.latest_id, sorted=bool(state.order_by), full=full, curve=curve)


def find_work(services: Services, state: TableState, goals: Goals) -> list[CompactionJob]:
    """Return what a compaction of a state would do, the most urgent first."""
    return plan_compaction(list_candidates(services, state), goals)


def compact_table(
    services: Services,
    log: TableLog,
    rewrite: Rewrite,
    *,
    goals: Callable[[TableState], Goals] = find_goals,
    choose: Callable[[TableState], list[CompactionJob]] | None = None,
    lanes: int = 1,
    tell: Callable[[int, int], None] | None = None,
) -> CompactionReport:
    """Do the work, several jobs at once. `tell` gets how many bytes are done, and how many there are.

    With `choose`, the jobs are its, whatever the goals. An adopted file that cannot be read stops only its
    own job, and is an error when all others are done.
    """
    report = CompactionReport()
    failures: list[AdoptedFileError] = []

    def run(job: CompactionJob) -> CompactionReport:
        try:
            return _run(services, log, state, inputs, rewrite, job)
        except AdoptedFileError as error:
            failures.append(error)
            return CompactionReport()

    with log.pinned() as state:
        jobs = find_work(services, state, goals(state)) if choose is None else choose(state)
        size = sum(job.size for job in jobs)
        done = 0
        tell = tell or _say_nothing
        tell(done, size)
        inputs = _inputs(services, state, [part for job in jobs for part in job.parts])
        for job, result in _in_lanes(run, jobs, lanes):
            report += result
            done += job.size
            tell(done, size)
    if failures:
        raise failures[0]
    return report


def _in_lanes(
    run: Callable[[CompactionJob], CompactionReport], jobs: Sequence[CompactionJob], lanes: int
) -> Iterator[tuple[CompactionJob, CompactionReport]]:
    """Yield what became of each job. One lane is this thread: pools take nothing while a process ends."""
    if lanes == 1:
        yield from ((job, run(job)) for job in jobs)
        return
    with ThreadPoolExecutor(lanes) as pool:
        running = {pool.submit(run, job): job for job in jobs}
        try:
            for finished in as_completed(running):
                yield running[finished], finished.result()
        finally:
            for job in running:
                job.cancel()  # nothing is begun any more when one has failed, or nobody waits for the others


def _say_nothing(_done: int, _size: int) -> None:
    """Report no progress."""


def list_candidates(services: Services, state: TableState) -> Iterator[Candidate]:
    """Yield what the planner must know about each live part."""
    live = load_parts(services.chunks, state, (), (PLACES, TIMES, FILES, ROWS))
    retracted = load_retractions(services.chunks.sheets, state, as_of=state.since)
    latest = state.history.latest
    keeps_order = [preserves_order(schema, latest, state.order_by) for schema in state.history.schemas]
    for places, times, file, rows in zip(
        *(live.columns[name].to_pylist() for name in (PLACES, TIMES, FILES, ROWS)), strict=True
    ):
        place = Place(places["batch"], places["ordinal"])
        yield Candidate(
            place,
            file["rows"],
            file["size"],
            (places["batch"], places["run"]),
            times["schema_id"],
            places["ordered"] and keeps_order[times["schema_id"]],
            None if rows["first_row"] is None else decode_row(rows["first_row"]),
            None if rows["last_row"] is None else decode_row(rows["last_row"]),
            retracted.rows(place),
        )


def _run(
    services: Services,
    log: TableLog,
    state: TableState,
    inputs: Mapping[Place, Input],
    rewrite: Rewrite,
    job: CompactionJob,
) -> CompactionReport:
    """Rewrite the parts of one job, and swap them unless somebody else has replaced one of them."""
    with begin_write(services, log) as writer:
        chosen = tuple(inputs[part.place] for part in job.parts)
        work = Work(chosen, state.since, writer.plan(state.history.latest))
        outputs = list(rewrite(work))
        try:
            _swap(services, log, writer, state, work, outputs)
        except PartsGoneError:
            services.blob.delete([output.part.key for output in outputs])
            return CompactionReport(overtaken=1)
    return CompactionReport(
        1,
        0,
        len(work.inputs),
        len(outputs),
        job.rows,
        job.size,
        sum(output.part.size for output in outputs),
    )


def _inputs(services: Services, state: TableState, parts: Sequence[Candidate]) -> dict[Place, Input]:
    """Return how to read the parts of all jobs; metadata is loaded once, however many jobs there are."""
    chosen = {part.place: part for part in parts}
    live = load_parts(services.chunks, state, (), (PLACES, TIMES, FILES))
    places = [Place(row["batch"], row["ordinal"]) for row in live.columns[PLACES].to_pylist()]
    mine = live.keep(np.array([place in chosen for place in places], dtype=bool))
    taken = _taken(load_retractions(services.chunks.sheets, state), chosen)
    chosen_places = (place for place in places if place in chosen)
    return {
        place: Input(place, chosen[place].run, written, chosen[place].ordered, tuple(taken.get(place, ())))
        for place, written in zip(chosen_places, mine.written(state.history), strict=True)
    }


def _taken(
    retractions: Retractions, places: Iterable[Place], *, after: int | None = None
) -> dict[Place, list[tuple[int, BitMap]]]:
    """Return what has been retracted of some parts, all or by commits after a seqno."""
    wanted = [
        found
        for place in places
        for found in retractions.by_place.get(place, ())
        if after is None or found.batch > after
    ]
    taken: dict[Place, list[tuple[int, BitMap]]] = {}
    for found, positions in retractions.read(wanted):
        taken.setdefault(found.place, []).append((found.ts, positions))
    return taken


def _swap(
    services: Services,
    log: TableLog,
    writer: PartWriter,
    state: TableState,
    work: Work,
    outputs: Sequence[Output],
) -> Committed:
    """Commit the swap. What was retracted of the inputs meanwhile is retracted by value of the outputs."""
    places = [item.place for item in work.inputs]
    old = [item.written.part for item in work.inputs]
    size = sum(part.rows for part in old), sum(part.size for part in old)
    parts = [output.part for output in outputs]
    gone = [Gone(at, *taken) for at, output in enumerate(outputs) for taken in output.gone]
    retracted = sum(len(positions) for item in work.inputs for _, positions in item.gone)
    seen = state.seqno
    for _ in range(ATTEMPTS):
        batch = NewBatch(0, state.upper, state.history.latest_id, tuple(parts)) if parts else None
        try:
            return writer.replace(seen, places, size, batch, gone, retracted)
        except PartsGoneError:
            newer = log.load()
            if _replaced(newer, places, since=seen):
                raise
            late = _taken(load_retractions(services.chunks.sheets, newer), places, after=seen)
            runs = 1 + max((part.run for part in parts), default=-1)  # these are runs of their own
            carried = carry_over(work, late, f"late-{newer.seqno}")
            parts += [replace_struct(part, run=runs + part.run) for part in carried]
            retracted += sum(len(positions) for taken in late.values() for _, positions in taken)
            seen = newer.seqno
    raise PartsGoneError(state.name, planned_at=seen, why="others kept retracting rows of its parts")


def _replaced(state: TableState, places: Iterable[Place], *, since: int) -> bool:
    """Whether some parts may have been replaced after a seqno."""
    late = frozenset[Place]().union(*(removal.places for removal in state.removals if removal.seqno > since))
    return since < state.removals_since or not late.isdisjoint(places)
