"""Planning a compaction: which parts are worth being rewritten together, and why. Nothing is read here.

A row is rewritten by the ordinary plan only into parts of at least twice as many rows as before, so about
log2(rows of the table / rows of a commit) times at most. Broken order, many retractions and old schemas cause
one more rewrite each.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cmp_to_key, partial
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from instar.parts import compare_bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from instar.parts.rows import Bound
    from instar.state import Place

__all__ = ["Candidate", "CompactionJob", "CompactionReason", "Goals", "plan_compaction"]

MIB: Final = 1024 * 1024


class CompactionReason(StrEnum):
    """Why parts are rewritten, the most urgent reason first."""

    ORDER = "order"
    """Their rows are not in the order of the table."""
    RETRACTIONS = "retractions"
    """Many of their rows have been retracted."""
    OVERLAP = "overlap"
    """They hold rows of the same range, so a lookup has to open them all."""
    CLUSTER = "cluster"
    """Their rows are not laid out together along the curve of `cluster_by`."""
    SMALL = "small"
    """They are far from the size that parts should have."""
    SCHEMA = "schema"
    """They were written under an older schema."""


class Candidate(NamedTuple):
    """What the planner knows about a part. Parts of one run are sorted and do not overlap."""

    place: Place
    rows: int
    size: int
    run: tuple[int, int]
    schema_id: int
    ordered: bool = True
    first: Bound | None = None
    last: Bound | None = None
    retracted: int = 0
    """How many of the rows may go: all that can be read any more have been retracted."""


class CompactionJob(NamedTuple):
    """Parts to be rewritten together, in one commit."""

    reason: CompactionReason
    parts: tuple[Candidate, ...]

    @property
    def rows(self) -> int:
        """The number of rows to read."""
        return sum(part.rows for part in self.parts)

    @property
    def size(self) -> int:
        """The number of bytes to read."""
        return sum(part.size for part in self.parts)


class Goals(NamedTuple):
    """What a table should look like, and how much may be done at once."""

    schema_id: int
    """The latest schema."""
    sorted: bool
    """Whether rows have an order, by `order_by`. If not, they stay as they came."""
    target_bytes: int = 128 * MIB
    job_bytes: int = 4096 * MIB
    job_parts: int = 1_000_000
    fan_in: int = 2
    """How many small parts, or overlapping runs, are worth a rewrite."""
    retracted_share: float = 0.1
    """From which share of retracted rows on a part is rewritten."""
    old_schemas: bool = True
    full: bool = False
    """Rewrite whatever is not ideal, however little is gained for the effort."""
    curve: int | None = None
    """The number of runs along the curve that rows are laid out by, whatever their order, if there is one."""


def plan_compaction(parts: Iterable[Candidate], goals: Goals) -> list[CompactionJob]:
    """Return what to do, the most urgent first. No part is in two jobs."""
    if goals.curve is not None:
        goals = goals._replace(sorted=False)
    left = _in_order(parts, goals)
    jobs: list[CompactionJob] = []
    for find in _ways(goals):
        found = list(find(left, goals))
        taken = {part.place for job in found for part in job.parts}
        left = [part for part in left if part.place not in taken]
        jobs += found
    return jobs


def _ways(goals: Goals) -> tuple[Callable[[Sequence[Candidate], Goals], Iterator[CompactionJob]], ...]:
    """Return what finds something to do, the most urgent first."""
    if goals.curve is not None:
        return (_scattered,) if goals.full else (_retracted, _scattered, _outdated)
    return (_together,) if goals.full and goals.sorted else _WAYS


def _together(parts: Sequence[Candidate], goals: Goals) -> Iterator[CompactionJob]:
    """Leave only what is ideal as it is: no output may overlap another, or a part that stays."""
    known = all(part.schema_id == goals.schema_id and not _is_unordered(part) for part in parts)
    groups = [(group, _reason(group, goals)) for group in (_ranges(parts) if known else [list(parts)])]
    for ideal, neighbours in groupby(groups, key=lambda group: group[1] is None):
        found = [] if ideal else list(neighbours)
        chosen = [part for group, _ in found for part in group]
        reasons = {reason for _, reason in found}
        if len(chosen) > 1 or reasons - {CompactionReason.SMALL}:
            yield from _jobs(next(reason for reason in CompactionReason if reason in reasons), chosen, goals)


def _reason(parts: Sequence[Candidate], goals: Goals) -> CompactionReason | None:
    """Find the most urgent reason to rewrite parts that lie together."""
    if any(_is_unordered(part) for part in parts):
        return CompactionReason.ORDER
    if any(part.retracted for part in parts):
        return CompactionReason.RETRACTIONS
    if len({part.run for part in parts}) > 1:
        return CompactionReason.OVERLAP
    if any(part.schema_id < goals.schema_id for part in parts):
        return CompactionReason.SCHEMA
    return CompactionReason.SMALL if any(_is_small(part, goals) for part in parts) else None


def _is_small(part: Candidate, goals: Goals) -> bool:
    return part.size < goals.target_bytes // 2


def _in_order(parts: Iterable[Candidate], goals: Goals) -> list[Candidate]:
    """Return parts as their rows follow each other; those that are nowhere in the order come first."""
    by_place = sorted(parts)
    if not goals.sorted:
        return by_place
    return sorted(by_place, key=cmp_to_key(_compare))


def _compare(one: Candidate, two: Candidate) -> int:
    return compare_bounds(one.first or (), two.first or ())


def _unordered(parts: Sequence[Candidate], goals: Goals) -> Iterator[CompactionJob]:
    if goals.sorted:
        yield from _jobs(CompactionReason.ORDER, [part for part in parts if _is_unordered(part)], goals)


def _is_unordered(part: Candidate) -> bool:
    return not part.ordered or part.first is None or part.last is None


def _retracted(parts: Sequence[Candidate], goals: Goals) -> Iterator[CompactionJob]:
    share = 0.0 if goals.full else goals.retracted_share
    worth = [part for part in parts if part.retracted and part.retracted >= share * part.rows]
    yield from _jobs(CompactionReason.RETRACTIONS, worth, goals)


def _overlapping(parts: Sequence[Candidate], goals: Goals) -> Iterator[CompactionJob]:
    if not goals.sorted:
        return
    for together in _ranges(parts):
        for window in _cut(together, goals):
            chosen = _worth_merging(window, goals)
            if chosen:
                yield CompactionJob(CompactionReason.OVERLAP, chosen)


def _scattered(parts: Sequence[Candidate], goals: Goals) -> Iterator[CompactionJob]:
    """Put rows together along the curve; a part that is not laid out so is a run of its own."""
    runs = [
        part if part.run[1] == goals.curve else part._replace(run=(part.place.batch, -1 - part.place.ordinal))
        for part in parts
    ]
    for window in _cut(runs, goals):
        chosen = _worth_merging(window, goals)
        worn = any(part.retracted or part.schema_id < goals.schema_id for part in window)
        if goals.full and not chosen and worn:
            chosen = tuple(window)
        if chosen:
            yield CompactionJob(CompactionReason.CLUSTER, chosen)


def _ranges(parts: Sequence[Candidate]) -> Iterator[list[Candidate]]:
    """Divide parts that are in order into groups that do not touch each other."""
    group: list[Candidate] = []
    end: Bound = ()
    for part in parts:
        if group and compare_bounds(part.first or (), end) > 0:
            yield group
            group, end = [], ()
        if not group or compare_bounds(part.last or (), end) > 0:
            end = part.last or ()
        group.append(part)
    if group:
        yield group


def _worth_merging(parts: Sequence[Candidate], goals: Goals) -> tuple[Candidate, ...]:
    """Choose the parts of the runs that together make a run of at least twice the rows of each."""
    by_run = sorted(parts, key=lambda part: part.run)
    runs = [list(run) for _, run in groupby(by_run, key=lambda part: part.run)]
    runs.sort(key=lambda run: sum(part.rows for part in run))
    chosen: list[Candidate] = []
    rows = merged = 0
    for number, run in enumerate(runs):
        own = sum(part.rows for part in run)
        rows += own
        if number and (goals.full or own <= rows - own):
            chosen, merged = [part for some in runs[: number + 1] for part in some], number + 1
    places = {part.place for part in chosen}
    return tuple(part for part in parts if part.place in places) if merged >= goals.fan_in else ()


def _small(parts: Sequence[Candidate], goals: Goals) -> Iterator[CompactionJob]:
    for small, group in groupby(parts, key=partial(_is_small, goals=goals)):
        if not small:
            continue
        for window in _doubling(list(group), goals):
            for piece in _cut(window, goals):
                if len(piece) >= goals.fan_in:
                    yield CompactionJob(CompactionReason.SMALL, tuple(piece))


def _doubling(parts: list[Candidate], goals: Goals) -> Iterator[list[Candidate]]:
    """Cut a sequence where a part has more rows than all others together, until nowhere one has."""
    waiting = [parts]
    while waiting:
        window = waiting.pop()
        if len(window) < goals.fan_in:
            continue
        rows = [part.rows for part in window]
        at = rows.index(max(rows))
        if goals.full or 2 * rows[at] <= sum(rows):
            yield window
        else:
            waiting += [window[at + 1 :], window[:at]]


def _outdated(parts: Sequence[Candidate], goals: Goals) -> Iterator[CompactionJob]:
    if goals.old_schemas or goals.full:
        yield from _jobs(
            CompactionReason.SCHEMA, [part for part in parts if part.schema_id < goals.schema_id], goals
        )


_WAYS: Final = (_unordered, _retracted, _overlapping, _small, _outdated)


def _jobs(reason: CompactionReason, parts: Sequence[Candidate], goals: Goals) -> Iterator[CompactionJob]:
    for piece in _cut(parts, goals):
        yield CompactionJob(reason, tuple(piece))


def _cut(parts: Sequence[Candidate], goals: Goals) -> Iterator[list[Candidate]]:
    """Cut a sequence into pieces that are not larger than they may be; each has at least one part."""
    piece: list[Candidate] = []
    size = 0
    for part in parts:
        if piece and (size + part.size > goals.job_bytes or len(piece) >= goals.job_parts):
            yield piece
            piece, size = [], 0
        piece.append(part)
        size += part.size
    if piece:
        yield piece
