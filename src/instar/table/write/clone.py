"""Clones: a table that begins with what another one holds, past and present, without copying its files.

The clone's metadata is its own: chunks and sheets are written again, with places below all that the clone
will have. Its files are those of the other table, which is told of the clone first, so that no vacuum of it
takes them. Until the clone begins, a lease under its own id keeps what was written of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from instar.errors import ConflictError, UsageError
from instar.state import Cloned, Start, encode_rollup
from instar.state.chunk import FIXED_GROUPS, PLACES
from instar.state.commands import create_clone
from instar.state.manifest import stats_fields
from instar.state.parts import Place
from instar.state.retractions import Retraction, encode_bitmap
from instar.storage.frame import encode_frame
from instar.table.layout import clone_key, rollup_key, rollups
from instar.table.log.clone_notes import CloneNote, put_clone_note
from instar.table.log.manifest import load_parts
from instar.table.log.rollup import ChunkWriter
from instar.table.log.sheets import SheetWriter, load_retractions
from instar.table.log.tables import begin_table, check_table_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.state import ChunkRef, SheetRef, Step, TableState
    from instar.state.manifest import Columns
    from instar.table.log.table_log import Decide, TableLog
    from instar.table.services import Services

__all__ = ["clone_table"]


def clone_table(services: Services, log: TableLog, name: str) -> TableLog:
    """Make a table that holds what another one holds now, and return its log."""
    check_table_name(name)
    clone_id, commit_id = services.new_id(), services.new_id()
    log.checkpoint()
    with services.leases.hold(clone_id, 0, clone_id), log.pinned(clone_id) as state:
        if state.labels:
            raise UsageError(f"cannot clone `{state.name}`: it belongs to a stream, which names its tables")
        cloned = _Cloning(services, state, clone_id).state(name, commit_id)

        def decide(own: TableLog) -> Decide:
            _tell(services, state, CloneNote(clone_id, own.key))
            return lambda before: _begin(services, state, before, cloned)

        return begin_table(services, name, clone_id, decide, commit_id).log


def _tell(services: Services, state: TableState, note: CloneNote) -> None:
    """Tell every table whose files the clone will have."""
    for owner in (state.table_id, *state.origins):
        put_clone_note(services, owner, note)


def _begin(
    services: Services, source: TableState, before: TableState | None, cloned: TableState
) -> tuple[Step, ...]:
    """Write the rollup of the clone for its place in the log, and answer with the commit that begins it."""
    seqno = 0 if before is None else before.seqno + 1
    step = Cloned(cloned.table_id, source.name, source.seqno, source.history.latest_id, source.upper)
    steps = create_clone(before, cloned.name, step)
    services.leases.check(cloned.table_id)
    for owner in cloned.origins:
        if services.blob.stat(clone_key(owner, cloned.table_id)) is None:
            raise ConflictError(
                f"cannot clone `{source.name}`: it took so long that a vacuum has come between. Try again."
            )
    rolled = replace(
        cloned,
        seqno=seqno,
        start=Start(seqno, rollup=True),
        folded=seqno,
        removals_since=seqno,
        touches_since=seqno,
    )
    data = encode_frame("rollup", f"{rolled.table_id}@{seqno}", encode_rollup(rolled))
    key = rollup_key(rolled.table_id, seqno)
    services.blob.put(key, data)
    # One of an attempt that others were faster than would be taken for a later rollup of the clone.
    former = [stored.key for stored in services.blob.list(rollups(rolled.table_id)) if stored.key != key]
    services.blob.delete(former)
    return steps


class _Cloning:
    """The metadata of one state, as a clone has it."""

    def __init__(self, services: Services, state: TableState, clone_id: str) -> None:
        self._services = services
        self._state = state
        self._clone_id = clone_id
        self._shift = state.seqno + 1
        """Places of the clone's own commits begin at 0: those that it begins with are below."""

    def state(self, name: str, commit_id: str) -> TableState:
        """Return the state of the clone, except for its place in a log."""
        return replace(
            self._state,
            name=name,
            table_id=self._clone_id,
            chunks=tuple(self._chunks()),
            sheets=tuple(self._sheets()),
            tail=(),
            removals=(),
            touches=(),
            tokens=(),
            commit_id=commit_id,
            renaming=None,
            pointer=None,
            origins=(self._state.table_id, *self._state.origins),
        )

    def _chunks(self) -> Iterator[ChunkRef]:
        state, history = self._state, self._state.history
        writer = ChunkWriter(self._services, self._clone_id, self._clone_id)
        fields = list(stats_fields(history.latest))
        pieces = [replace(state, chunks=(ref,), tail=()) for ref in state.chunks]
        for piece in (*pieces, replace(state, chunks=())):
            parts = load_parts(self._services.chunks, piece, fields, tuple(FIXED_GROUPS))
            if len(parts):
                yield writer.write(self._shifted(parts.columns), history)

    def _shifted(self, columns: Columns) -> Columns:
        places = columns[PLACES]
        moved = pc.subtract(places.column("batch"), self._shift)
        arrays = [moved if field.name == "batch" else places.column(field.name) for field in places.schema]
        return {**columns, PLACES: pa.RecordBatch.from_arrays(arrays, schema=places.schema)}

    def _sheets(self) -> Iterator[SheetRef]:
        found = load_retractions(self._services.chunks.sheets, self._state)
        gone = self._state.unfolded()
        wanted = [own for place, group in found.by_place.items() if place not in gone for own in group]
        if not wanted:
            return
        writer = SheetWriter(self._services.blob, self._clone_id, self._clone_id)
        yield writer.write(
            (
                own.batch - self._shift,
                own.ts,
                Retraction(self._moved(own.place), own.rows, encode_bitmap(bitmap)),
            )
            for own, bitmap in found.read(wanted)
        )

    def _moved(self, place: Place) -> Place:
        return Place(place.batch - self._shift, place.ordinal)
