"""Writes that touch several tables: an intent is recorded first, and anybody can finish what it began.

Rows are stored before, where nobody sees them. The record of the intent is the moment at which the write has
happened; after it, every table gets its rows under the token of the write, at most once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Union

import msgspec

from instar.errors import ConflictError
from instar.stream.kinds import Kind
from instar.stream.routing import TablePlace
from instar.table.write.store import StoredPart

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = [
    "Batches",
    "BatchesImage",
    "Begun",
    "Closed",
    "Ended",
    "Intent",
    "Item",
    "Move",
    "TableOutcome",
    "apply_batch_change",
    "batches_image",
    "begin_batch",
    "close_batches",
    "end_batch",
    "restore_batches",
]

REMEMBERED: Final = 1000
"""How many finished writes are remembered by the tokens that callers gave, and how many others."""

OWN_PREFIX: Final = "write/"
"""What the tokens of writes begin with that were given none."""

SINK_PREFIX: Final = "@sink/"
"""What the tokens of micro-batches begin with; they end in a number, which only grows for the rest of it."""

MOST_BEHIND: Final = 100
"""An unfinished write is finished by others before so many have begun after it: tables forget tokens too."""


class Item(msgspec.Struct, frozen=True, array_like=True):
    """What one table gets: parts that are stored, and what they were written under."""

    name: str
    kind: str
    start: int | None
    table_id: str
    write_id: str
    schema_id: int
    stream_schema_id: int
    parts: tuple[StoredPart, ...]

    @property
    def place(self) -> TablePlace:
        """The place that the table is for."""
        return TablePlace(Kind(self.kind), self.start)


class Move(msgspec.Struct, frozen=True, array_like=True):
    """How far a job has come with one table: it had read its rows up to a time, and now up to a later one."""

    cursor: str
    expected: int
    time: int


class Intent(msgspec.Struct, frozen=True, array_like=True):
    """A write to several tables. Many parts are in an object of their own, `spilled`.

    A job moves its cursors in the same moment, so that it reads no row twice.
    """

    token: str
    version: str
    rows: int
    tables: tuple[str, ...]
    items: tuple[Item, ...] = ()
    spilled: str | None = None
    moved: tuple[Move, ...] = ()


class TableOutcome(msgspec.Struct, frozen=True, array_like=True):
    """The result of a write."""

    number: int
    token: str
    version: str
    rows: int
    tables: tuple[str, ...]


class Begun(msgspec.Struct, frozen=True, array_like=True, tag="begun"):
    """A write has happened, and its tables are about to get their rows."""

    intent: Intent


class Ended(msgspec.Struct, frozen=True, array_like=True, tag="ended"):
    """All tables of a write have their rows."""

    token: str


class Closed(msgspec.Struct, frozen=True, array_like=True, tag="closed"):
    """The stream is about to be dropped, and no write begins any more; or writes may begin again."""

    closed: bool


BatchChange = Union[Begun, Ended, Closed]  # noqa: UP007 -- resolved by msgspec


@dataclass(frozen=True)
class Batches:
    """The writes of a stream: how many there were, which are unfinished, and the last that are finished."""

    number: int = 0
    pending: Mapping[str, tuple[int, Intent]] = field(default_factory=dict)
    done: Mapping[str, TableOutcome] = field(default_factory=dict)
    cursors: Mapping[str, int] = field(default_factory=dict)
    """The progress of jobs, by job and table."""
    closed: bool = False
    sinks: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """The last micro-batch of each sink that is finished: its number and its version."""

    def find(self, token: str) -> TableOutcome | None:
        """Find the result of a write with a token, finished or not.

        For a micro-batch that was finished long ago, only that is known.
        """
        if token in self.pending:
            number, intent = self.pending[token]
            return _outcome(number, intent)
        found = self.done.get(token)
        sink = _sink_of(token)
        if found is None and sink is not None and sink[0] in self.sinks:
            last, version = self.sinks[sink[0]]
            return TableOutcome(-1, token, version, 0, ()) if sink[1] <= last else None
        return found

    def since(self, number: int) -> Iterator[TableOutcome]:
        """Yield the writes from a number on, as far as they are remembered."""
        for begun, intent in self.pending.values():
            if begun >= number:
                yield _outcome(begun, intent)
        yield from (outcome for outcome in self.done.values() if outcome.number >= number)


class BatchesImage(msgspec.Struct, frozen=True, array_like=True):
    """The writes of a stream as bytes have them."""

    number: int
    pending: tuple[tuple[int, Intent], ...]
    done: tuple[TableOutcome, ...]
    cursors: dict[str, int]
    closed: bool = False
    sinks: dict[str, tuple[int, str]] = {}


def batches_image(batches: Batches) -> BatchesImage:
    """Return the writes of a stream as they are stored."""
    return BatchesImage(
        batches.number,
        tuple(batches.pending.values()),
        tuple(batches.done.values()),
        dict(batches.cursors),
        batches.closed,
        dict(batches.sinks),
    )


def restore_batches(image: BatchesImage) -> Batches:
    """Return the writes of a stream that were stored."""
    pending = {intent.token: (number, intent) for number, intent in image.pending}
    done = {outcome.token: outcome for outcome in image.done}
    return Batches(image.number, pending, done, image.cursors, image.closed, image.sinks)


def begin_batch(batches: Batches | None, intent: Intent) -> Sequence[BatchChange]:
    """Record an intent, unless there was a write with its token; raise if another job moved its cursors."""
    known = Batches() if batches is None else batches
    if known.find(intent.token) is not None:
        return ()
    for move in intent.moved:
        if known.cursors.get(move.cursor, -1) != move.expected:
            raise ConflictError(
                f"another job has moved {move.cursor} meanwhile. Nothing was written twice; "
                "run the job again."
            )
    return (Begun(intent),)


def close_batches(batches: Batches | None, *, closed: bool) -> Sequence[BatchChange]:
    """Let no more writes begin, or let them begin again."""
    return () if (batches or Batches()).closed == closed else (Closed(closed),)


def end_batch(batches: Batches | None, token: str) -> Sequence[BatchChange]:
    """Note that a write is finished."""
    return (Ended(token),) if batches is not None and token in batches.pending else ()


def apply_batch_change(batches: Batches | None, change: BatchChange) -> Batches:
    """Fold a change into the writes of a stream."""
    before = Batches() if batches is None else batches
    match change:
        case Begun(intent=intent):
            pending = {**before.pending, intent.token: (before.number, intent)}
            moved = {move.cursor: move.time for move in intent.moved}
            cursors = {**before.cursors, **moved} if moved else before.cursors
            return replace(before, number=before.number + 1, pending=pending, cursors=cursors)
        case Ended(token=token):
            number, intent = before.pending[token]
            left = {other: value for other, value in before.pending.items() if other != token}
            done = {**before.done, token: _outcome(number, intent)}
            alike = [other for other in done if _is_own(other) == _is_own(token)]
            for other in alike[:-REMEMBERED]:
                del done[other]
            sink = _sink_of(token)
            sinks = before.sinks if sink is None else {**before.sinks, sink[0]: (sink[1], intent.version)}
            return replace(before, pending=left, done=done, sinks=sinks)
        case Closed(closed=closed):
            return replace(before, closed=closed)


def _is_own(token: str) -> bool:
    return token.startswith(OWN_PREFIX)


def _sink_of(token: str) -> tuple[str, int] | None:
    """Return the sink that a micro-batch came through, and the number of the batch."""
    sink, _, number = token.rpartition("/")
    return (sink, int(number)) if token.startswith(SINK_PREFIX) and number.isdecimal() else None


def _outcome(number: int, intent: Intent) -> TableOutcome:
    return TableOutcome(number, intent.token, intent.version, intent.rows, intent.tables)
