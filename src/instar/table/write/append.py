"""`PartWriter`: one write to a table, from the state that it began in to the commit that ends it.

Everything that adds rows goes this way: appends, Spark's frames and sinks, deletes and upserts, and
compactions, which replace parts by others. Few parts travel in the commit itself. Many become manifest
chunks first, so that a commit stays small.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace as replace_struct

from instar.errors import SchemaMismatchError, UpperMismatchError, UsageError
from instar.parts import PartLimits
from instar.state import Appended, BatchHeader, Compacted, NewBatch, Place, PlacedPart, Retraction
from instar.state.commands import advance_since, append, check_schema_id, compact, evolve
from instar.state.retractions import encode_bitmap
from instar.table.log.rollup import ChunkWriter
from instar.table.log.sheets import SheetWriter
from instar.table.write.store import plan_storing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from pyroaring import BitMap

    from instar.schema import Schema
    from instar.state import ChunkRef, Part, SheetRef, Step, TableState
    from instar.table.log.table_log import Committed, TableLog
    from instar.table.services import Services
    from instar.table.write.evolving import WriterSchema
    from instar.table.write.store import Rows, StoredPart, StoringPlan

__all__ = ["INLINE_PARTS", "Gone", "PartWriter", "Takes", "begin_write", "move_since", "resume_write"]

INLINE_PARTS: Final = 64
"""A commit carries at most this many parts itself."""

INLINE_BITMAPS: Final = 4096
"""A commit carries retractions itself while their bitmaps together are no longer than this, in bytes."""

MAX_OWN_TIME: Final = 2**62
"""The latest time that rows may have of their own; what is left above is for the writes after them."""


def _allow(_: TableState) -> None:
    """Find nothing wrong."""


class Takes(NamedTuple):
    """Rows to retract by position: of which parts, and the seqno of the state that they were seen in.

    `check` raises if the table has become one in which other rows would have been retracted. `restored` is
    the time whose rows come back by it, if they do.
    """

    positions: Mapping[Place, BitMap]
    planned_at: int
    check: Callable[[TableState], None] = _allow
    restored: int | None = None


class Gone(NamedTuple):
    """Rows of a new part that were retracted before it was written: which part, when, and where they are."""

    ordinal: int
    ts: int
    positions: BitMap


class PartWriter:
    """Stores and commits the parts of one write, while a lease keeps them safe from a vacuum.

    Parts have keys made with `write_id`; they are put under the lease and before they are committed.
    """

    def __init__(self, services: Services, log: TableLog, state: TableState, write_id: str) -> None:
        log.bind(state.table_id)  # parts are no use to a later table of the same name
        self.state = state
        self.write_id = write_id
        self._services = services
        self._log = log
        self._chunks = ChunkWriter(services, state.table_id, write_id)  # one: no two chunks get one key
        self._sheets = SheetWriter(services.blob, state.table_id, write_id)

    def plan(self, schema: Schema, limits: PartLimits | None = None) -> StoringPlan:
        """Return what a process must know to store rows under a schema."""
        return plan_storing(self._services.blob, self.state, self.write_id, schema, limits or PartLimits())

    def write(
        self,
        rows: Rows | None,
        writer: WriterSchema,
        *,
        updates: bool = False,
        token: str | None = None,
        expected_upper: int | None = None,
        discard: bool = False,
        takes: Takes | None = None,
    ) -> Committed:
        """Store rows as parts, if there are any, and commit them as one batch."""
        stored = [] if rows is None else list(rows.store(self.plan(writer.schema), updates=updates))
        return self.commit(
            stored,
            writer.schema_id,
            evolved=writer.schema if writer.is_new else None,
            token=token,
            expected_upper=expected_upper,
            discard=discard,
            takes=takes,
        )

    def commit(
        self,
        stored: Iterable[StoredPart],
        schema_id: int,
        *,
        evolved: Schema | None = None,
        token: str | None = None,
        expected_upper: int | None = None,
        discard: bool = False,
        takes: Takes | None = None,
        is_done: Callable[[TableState], bool] | None = None,
    ) -> Committed:
        """Commit what was stored by the plan of this write as one batch."""
        stored = list(stored)
        parts = [replace_struct(item.part, run=run) for run, item in enumerate(stored)]
        return self.append(
            parts,
            schema_id,
            expected_upper=expected_upper,
            upper=_own_upper(self.state, parts),
            token=token,
            present=frozenset(chain.from_iterable(item.present for item in stored)),
            discard=discard,
            evolved=evolved,
            takes=takes,
            is_done=is_done,
        )

    def append(  # noqa: PLR0913 -- each is something that a write may ask for
        self,
        parts: Sequence[Part],
        schema_id: int,
        *,
        expected_upper: int | None = None,
        upper: int | None = None,
        token: str | None = None,
        present: Collection[int] = (),
        discard: bool = False,
        evolved: Schema | None = None,
        takes: Takes | None = None,
        adopted: tuple[str, Callable[[TableState], None]] | None = None,
        is_done: Callable[[TableState], bool] | None = None,
    ) -> Committed:
        """Append parts as one batch.

        Without `upper`, the batch is put at the end of the table, at the time of the clock or right after
        what is there; with it, the batch ends there. It fails if the table is complete past a time that a
        part has of its own, and with `expected_upper`, if the table moved on.
        With `evolved`, the table evolves to that schema in the same commit, and `schema_id` is its id.
        With `takes`, rows of other parts are retracted, unless others have changed the same parts meanwhile.
        With `adopted`, its key is that of the list of adopted files; it raises if others have made another.
        With `is_done`, nothing is done if it says so of a state that does not show the token.

        A change (one with `takes`) that neither adds nor retracts a row is checked like any other, and then
        there is nothing to do, unless the table evolves. An append without rows moves the upper.
        """
        chunks, inline = self._laid_out(parts, schema_id, evolved)
        retractions, sheets, touched = self._taken(takes)
        earliest = min((part.ts_min for part in parts if part.ts_min is not None), default=None)
        is_idle = takes is not None and token is None and not (parts or retractions or sheets)

        def decide(state: TableState | None) -> tuple[Step, ...]:
            current = self._check(state)
            if token is not None and current.find_token(token) is not None:
                return ()
            if is_done is not None and is_done(current):
                return ()
            if earliest is not None and earliest < current.upper:
                raise UpperMismatchError(current.name, expected=earliest, current=current.upper)
            if takes is not None:
                takes.check(current)
            if adopted is not None:
                adopted[1](current)
            end = max(self._services.clock(), current.upper) + 1 if upper is None else upper
            batch = NewBatch(current.upper, end, schema_id, inline, chunks, retractions, sheets)
            listed = None if adopted is None else adopted[0]
            restored = None if takes is None else takes.restored
            first, after = _evolved(current, schema_id, evolved)
            then = append(
                after,
                Appended(batch, token, touched, listed, restored),
                expected_upper=expected_upper,
                present=present,
                discard=discard,
                planned_at=None if takes is None else takes.planned_at,
            )
            return () if is_idle and not first else (*first, *then)

        return self._log.commit(decide)

    def replace(
        self,
        planned_at: int,
        removed: Collection[Place],
        size: tuple[int, int],
        batch: NewBatch | None,
        gone: Sequence[Gone] = (),
        removed_retracted: int = 0,
    ) -> Committed:
        """Replace parts that a plan at seqno `planned_at` has read; `size` are their rows and bytes.

        `gone` are rows of the new parts that were retracted before; `removed_retracted` is how many rows of
        the old ones were.
        """
        if batch is not None:
            chunks, inline = self._laid_out(batch.parts, batch.schema_id)
            sheets = self._own_sheet(gone)
            batch = NewBatch(batch.lower, batch.upper, batch.schema_id, inline, chunks, (), sheets)
        step = Compacted(tuple(sorted(set(removed))), *size, batch, removed_retracted)

        def decide(state: TableState | None) -> tuple[Step, ...]:
            return compact(self._check(state), planned_at, step)

        return self._log.commit(decide)

    def _taken(
        self, takes: Takes | None
    ) -> tuple[tuple[Retraction, ...], tuple[SheetRef, ...], tuple[Place, ...]]:
        """Return retractions if they are short, otherwise the sheet that they are put in, and its places."""
        if takes is None:
            return (), (), ()
        items = [
            Retraction(place, len(positions), encode_bitmap(positions))
            for place, positions in sorted(takes.positions.items())
            if positions
        ]
        if sum(len(item.bitmap) for item in items) <= INLINE_BITMAPS:
            return tuple(items), (), ()
        return (), (self._sheets.write((0, 0, item) for item in items),), tuple(item.place for item in items)

    def _own_sheet(self, gone: Sequence[Gone]) -> tuple[SheetRef, ...]:
        """Put retractions of parts whose places are not known yet in a sheet, if there are any."""
        if not gone:
            return ()
        sheet = self._sheets.write(
            (0, ts, Retraction(Place(0, ordinal), len(positions), encode_bitmap(positions)))
            for ordinal, ts, positions in gone
        )
        return (replace_struct(sheet, own=True),)

    def _check(self, state: TableState | None) -> TableState:
        """Return a state that the parts can be committed to: they are still there, and so is their table."""
        self._services.leases.check(self.write_id)
        return self._log.check_exists(state)

    def _laid_out(
        self, parts: Sequence[Part], schema_id: int, evolved: Schema | None = None
    ) -> tuple[tuple[ChunkRef, ...], tuple[Part, ...]]:
        """Write chunks if the parts are many; return the chunks, and the parts if they are few."""
        if len(parts) <= INLINE_PARTS:
            return (), tuple(parts)
        current = self._check(self._log.refresh())
        _, state = _evolved(current, schema_id, evolved)
        check_schema_id(state, schema_id)
        header = BatchHeader(0, 0, 0, schema_id)
        placed = [PlacedPart(header, ordinal, part) for ordinal, part in enumerate(parts)]
        return tuple(self._chunks.write_parts(placed, state.history)), ()


def _evolved(state: TableState, schema_id: int, schema: Schema | None) -> tuple[tuple[Step, ...], TableState]:
    """Return the step that makes a schema the latest under an id, and the state after it."""
    if schema is None:
        return (), state
    steps = evolve(state, schema_id - 1, schema)
    history = state.history.evolve(schema, state.name)
    if history.latest_id != schema_id:  # others have come to the same schema by another way
        raise SchemaMismatchError(state.name, expected=schema_id - 1, current=state.history.latest_id)
    return steps, replace(state, history=history)


@contextmanager
def begin_write(services: Services, log: TableLog, state: TableState | None = None) -> Iterator[PartWriter]:
    """Begin a write, in a state that was just loaded: what it puts is safe from a vacuum until it ends."""
    state = log.load() if state is None else state
    write_id = services.new_id()
    with services.leases.hold(state.table_id, state.base.seqno, write_id):
        yield PartWriter(services, log, state, write_id)


def resume_write(services: Services, log: TableLog, table_id: str, write_id: str) -> PartWriter:
    """Go on with a write that was begun elsewhere, and has a lease there."""
    log.bind(table_id)
    return PartWriter(services, log, log.load_known(), write_id)


def move_since(log: TableLog, since: int) -> Committed:
    """Allow times before `since` to be merged."""
    return log.commit(lambda state: advance_since(log.check_exists(state), since))


def _own_upper(state: TableState, parts: Sequence[Part]) -> int | None:
    """Return where a batch with times of its own ends; they must all be to come."""
    times = [(part.ts_min, part.ts_max) for part in parts if part.ts_min is not None]
    if not times:
        return None
    earliest = min(first for first, _ in times)
    if earliest < state.upper:
        raise UsageError(
            f"cannot write to `{state.name}` at time {earliest}: the table is complete up to {state.upper}"
        )
    latest = max(last for _, last in times if last is not None)
    if latest > MAX_OWN_TIME:
        raise UsageError(
            f"cannot write to `{state.name}` at time {latest}: times end at {MAX_OWN_TIME}, so that others "
            "can follow. Use milliseconds since 1970, or smaller numbers"
        )
    return latest + 1
