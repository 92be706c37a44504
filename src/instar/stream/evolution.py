"""`EvolverState`: the evolver's progress on a stream, and what is next, as pure values and functions.

A pass walks the stale tables, kind by kind and the newest first, and brings them to the stream's version. All
that it needs to continue after a crash, or under another leader, is in this value; nothing here reads a
clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Union

import msgspec

from instar.stream.leadership import Leadership
from instar.stream.version import as_version

if TYPE_CHECKING:
    from instar.stream.catalog import Catalog

__all__ = [
    "BATCH",
    "PERIODS_MS",
    "Action",
    "DeadLetter",
    "EvolutionChange",
    "EvolverState",
    "Failure",
    "Finish",
    "Finished",
    "Led",
    "Progressed",
    "Queued",
    "Refill",
    "Refilled",
    "Rest",
    "Retry",
    "Spill",
    "StampTables",
    "Walk",
    "Walked",
    "apply_evolution",
    "next_action",
]

_HOUR: Final = 60 * 60 * 1000
_APART_MS: Final = _HOUR
"""How far the clocks of two evolvers may be apart."""
PERIODS_MS: Final = (0, _HOUR, 5 * _HOUR, 24 * _HOUR)
"""The pause after a pass: longer each time that nothing was new, up to a day."""

BATCH: Final = 100
"""How many tables are updated between two records of progress."""

MOST_ATTEMPTS: Final = 5
"""After this many failures in one pass, a table waits for the next pass."""

SEVERAL: Final = "several"
"""Stands for a mix of versions of the rules, which no evolver has."""

_FIRST_PAUSE_MS: Final = 60_000
_LONGEST_PAUSE_MS: Final = _HOUR
_MOST_RETRIES: Final = 1000
_MOST_DEAD: Final = 1000
_LONGEST_ERROR: Final = 300


class Queued(msgspec.Struct, frozen=True, array_like=True):
    """A table that waits for its turn."""

    kind: str
    name: str


class Spill(msgspec.Struct, frozen=True, array_like=True):
    """More of the queue, in an object of its own."""

    key: str
    tables: int


class Retry(msgspec.Struct, frozen=True, array_like=True):
    """A table that failed and is tried again later."""

    table: Queued
    attempts: int
    not_before: int
    error: str


class DeadLetter(msgspec.Struct, frozen=True, array_like=True):
    """A table that failed too often in this pass. The next pass begins with it again."""

    table: Queued
    attempts: int
    at: int
    error: str


class Failure(msgspec.Struct, frozen=True, array_like=True):
    """What went wrong with one table."""

    table: Queued
    error: str


class Led(msgspec.Struct, frozen=True, array_like=True, tag="led"):
    """Somebody leads, or leads on."""

    leadership: Leadership


class Walked(msgspec.Struct, frozen=True, array_like=True, tag="walked"):
    """A pass begins: its target, and the stale tables in the order of their turns.

    Tables with a number from `below` on came too late for this pass. `checked` says that no query would
    notice the change, so nothing is queued.
    """

    version: str
    schema_id: int
    below: int
    queue: tuple[Queued, ...]
    spilled: tuple[Spill, ...]
    total: int
    skipped: int
    checked: bool
    verdicts: dict[str, bool]
    rules: str = ""


class Progressed(msgspec.Struct, frozen=True, array_like=True, tag="progressed"):
    """Tables had their turns. `taken` is how many of the queue; `retried` names those tried once more."""

    at: int
    taken: int
    retried: tuple[str, ...]
    stamped: int
    skipped: int
    vanished: int
    failures: tuple[Failure, ...]
    absent: tuple[str, ...]
    verdicts: dict[str, bool]
    rules: str = ""


class Refilled(msgspec.Struct, frozen=True, array_like=True, tag="refilled"):
    """The queue continues with tables that were spilled."""

    queue: tuple[Queued, ...]


class Finished(msgspec.Struct, frozen=True, array_like=True, tag="finished"):
    """The pass has ended."""

    at: int


EvolutionChange = Union[Led, Walked, Progressed, Refilled, Finished]  # noqa: UP007 -- resolved by msgspec


class EvolverState(msgspec.Struct, frozen=True, array_like=True):
    """The evolver's progress. `version` and `schema_id` are the target of the pass, or of the last one.

    `settled` is the first table that the target was not considered for; `checked` the last version that was
    judged to need no change. `verdicts` has, per pair of schemas, whether a query would notice nothing.
    """

    leadership: Leadership | None = None
    version: str | None = None
    schema_id: int = -1
    checked: str | None = None
    running: bool = False
    last_check: int | None = None
    period: int = 0
    below: int = 0
    settled: int = 0
    queue: tuple[Queued, ...] = ()
    spilled: tuple[Spill, ...] = ()
    retries: tuple[Retry, ...] = ()
    dead: tuple[DeadLetter, ...] = ()
    total: int = 0
    stamped: int = 0
    skipped: int = 0
    vanished: int = 0
    failed: int = 0
    passes: int = 0
    absent: tuple[str, ...] = ()
    """Tables that were known before they were created; the next pass looks at them again."""
    verdicts: dict[str, bool] = {}
    left: str | None = None
    """The rules by which tables were left behind the target, if any were; by other rules, they may not be."""

    @property
    def waiting(self) -> int:
        """How many tables wait for their turn."""
        return len(self.queue) + sum(spill.tables for spill in self.spilled) + len(self.retries)

    def aims_at(self, catalog: Catalog) -> bool:
        """Whether the target is the stream's latest version and schema."""
        return (self.version, self.schema_id) == (str(catalog.max_version), catalog.schema_id)

    def is_judged(self, rules: str) -> bool:
        """Whether no table was left behind that these rules have not judged."""
        return self.left in {None, rules}

    def ended_after(self, time: int) -> bool:
        """Whether the last pass ended after a time: if that is yet to come, by a clock that was ahead."""
        return self.last_check is not None and self.last_check > time

    def due_at(self) -> int:
        """Return when the next pass is due if no version is raised."""
        return 0 if self.last_check is None else self.last_check + PERIODS_MS[self.period]


class Rest(NamedTuple):
    """Do nothing until a time."""

    until: int


class Walk(NamedTuple):
    """Begin a pass, or begin it again because the target has moved."""

    retargeted: bool


class StampTables(NamedTuple):
    """Bring these tables forward; `taken` of them are from the queue, the others are tried again."""

    tables: tuple[Queued, ...]
    taken: int


class Refill(NamedTuple):
    """Bring back the next part of the queue."""

    spill: Spill


class Finish(NamedTuple):
    """End the pass."""


Action = Rest | Walk | StampTables | Refill | Finish


def next_action(
    evolution: EvolverState, catalog: Catalog, now: int, batch: int = BATCH, *, rules: str
) -> Action:
    """Say what comes next. A raised version is due at once, in the middle of a pass too.

    So are tables that were left as they are by other rules than those that `rules` names.
    """
    if not evolution.aims_at(catalog):
        return Walk(retargeted=evolution.running)
    if not evolution.running:
        if not evolution.is_judged(rules) or evolution.ended_after(now + _APART_MS):
            return Walk(retargeted=False)
        return Rest(evolution.due_at()) if now < evolution.due_at() else Walk(retargeted=False)
    ripe = [retry.table for retry in evolution.retries if _is_ripe(retry, now)][:batch]
    if evolution.queue or ripe:
        turn = evolution.queue[: batch - len(ripe)]
        return StampTables((*ripe, *turn), len(turn))
    if evolution.spilled:
        return Refill(evolution.spilled[0])
    if evolution.retries:
        return Rest(min(retry.not_before for retry in evolution.retries))
    return Finish()


def _is_ripe(retry: Retry, now: int) -> bool:
    """Whether a table may be tried again; a pause longer than any was made by a clock that was ahead."""
    return retry.not_before <= now or retry.not_before > now + _LONGEST_PAUSE_MS + _APART_MS


def apply_evolution(evolution: EvolverState | None, change: EvolutionChange) -> EvolverState:
    """Fold a change into the state."""
    before = EvolverState() if evolution is None else evolution
    match change:
        case Led(leadership=leadership):
            return msgspec.structs.replace(before, leadership=leadership)
        case Walked():
            return _walked(before, change)
        case Progressed():
            return _progressed(before, change)
        case Refilled(queue=queue):
            return msgspec.structs.replace(before, queue=(*before.queue, *queue), spilled=before.spilled[1:])
        case Finished(at=at):
            return msgspec.structs.replace(
                before,
                running=False,
                last_check=at,
                period=min(before.period + 1, len(PERIODS_MS) - 1),
                settled=before.below,
                passes=before.passes + 1,
            )


def _walked(before: EvolverState, change: Walked) -> EvolverState:
    raised = (change.version, change.schema_id) != (before.version, before.schema_id)
    anew = raised or not before.is_judged(change.rules)
    left = None if anew else before.left
    return msgspec.structs.replace(
        before,
        version=change.version,
        schema_id=change.schema_id,
        checked=change.version if change.checked else before.checked,
        running=True,
        period=0 if raised else before.period,
        below=change.below,
        settled=0 if anew else before.settled,
        queue=change.queue,
        spilled=change.spilled,
        retries=(),
        dead=(),
        absent=(),
        total=change.total,
        stamped=0,
        skipped=change.skipped,
        vanished=0,
        failed=0,
        verdicts=change.verdicts,
        left=_left(left, change.rules) if change.skipped else left,
    )


def _progressed(before: EvolverState, change: Progressed) -> EvolverState:
    attempts = {retry.table.name: retry.attempts for retry in before.retries}
    again = set(change.retried)
    retries = [retry for retry in before.retries if retry.table.name not in again]
    dead = list(before.dead)
    for failure in change.failures:
        tried = attempts.get(failure.table.name, 0) + 1
        error = failure.error[:_LONGEST_ERROR]
        if tried >= MOST_ATTEMPTS or len(retries) >= _MOST_RETRIES:
            dead.append(DeadLetter(failure.table, tried, change.at, error))
        else:
            pause = min(_FIRST_PAUSE_MS * 2 ** (tried - 1), _LONGEST_PAUSE_MS)
            retries.append(Retry(failure.table, tried, change.at + pause, error))
    return msgspec.structs.replace(
        before,
        queue=before.queue[change.taken :],
        retries=tuple(retries),
        dead=tuple(dead[-_MOST_DEAD:]),
        absent=(*before.absent, *change.absent)[-_MOST_DEAD:],
        stamped=before.stamped + change.stamped,
        skipped=before.skipped + change.skipped,
        vanished=before.vanished + change.vanished,
        failed=before.failed + len(dead) - len(before.dead),
        verdicts={**before.verdicts, **change.verdicts},
        left=_left(before.left, change.rules) if change.skipped else before.left,
    )


def _left(before: str | None, rules: str) -> str:
    return rules if before in {None, rules} else SEVERAL


def is_stale(version: str, schema_id: int, catalog: Catalog) -> bool:
    """Whether a table that is stamped so is behind the stream."""
    return schema_id < catalog.schema_id or as_version(version) < catalog.max_version
