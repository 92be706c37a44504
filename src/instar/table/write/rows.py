"""Writing rows: appending them, and changing existing rows, which is tried again after a conflict.

Rows may be in this process or on Spark: their class decides who stores them.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from instar.errors import ConflictError, UsageError, WriterFencedError
from instar.state.chunk import PLACES, TIMES
from instar.state.commands import check_token
from instar.storage.backoff import pauses
from instar.table.log.manifest import load_parts
from instar.table.log.table_log import Committed
from instar.table.write.append import PartWriter, Takes, begin_write
from instar.table.write.evolving import Evolution, WriterSchema, resolve_writer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyroaring import BitMap

    from instar.schema import Field
    from instar.state import Place, TableState
    from instar.table.log.manifest import ChunkReader
    from instar.table.log.part_set import PartSet
    from instar.table.log.pin import Pin
    from instar.table.log.table_log import TableLog
    from instar.table.services import Services
    from instar.table.write.store import Rows

__all__ = ["ATTEMPTS", "RowChange", "WriteOptions", "append_rows", "change_rows", "parts_since"]

ATTEMPTS: Final = 5
"""How often a change to existing rows is computed at least, whatever time that takes."""


class WriteOptions(NamedTuple):
    """How to write rows; `Table.append` says what each means."""

    token: str | None = None
    evolve: bool = False
    dropped: str = "refuse"
    schema_id: int | None = None
    updates: bool = False
    expected_upper: int | None = None
    former_names: bool = False

    def check(self) -> None:
        """Raise unless these can be meant."""
        if self.dropped not in {"refuse", "discard"}:
            raise UsageError(
                f"dropped={self.dropped!r}: use 'refuse' or 'discard' for values of dropped columns"
            )
        if self.former_names and not self.evolve:
            raise UsageError("former_names=True only has a meaning with evolve=True: give both, or neither")
        check_token(self.token)

    def evolution(self, rows: Rows) -> Evolution | None:
        """Return how far rows may change the schema, if they may."""
        return Evolution(self.former_names, rows.needs) if self.evolve else None


def append_rows(services: Services, log: TableLog, rows: Rows, options: WriteOptions) -> Committed:
    """Store rows and commit them, unless their token says that this has been done."""
    token, updates = options.token, options.updates
    state = log.load()
    if token is not None and state.find_token(token) is not None:
        return Committed(state, None)
    evolution = options.evolution(rows)
    writer = resolve_writer(state, rows.schema, options.schema_id, evolution=evolution, updates=updates)
    with begin_write(services, log, state) as write:
        return write.write(
            rows,
            writer,
            updates=updates,
            token=token,
            expected_upper=options.expected_upper,
            discard=options.dropped == "discard",
        )


def _allow(_: TableState) -> None:
    """Find nothing wrong."""


class RowChange(NamedTuple):
    """What becomes of rows: some are retracted by position, others are added or, by value, retracted.

    `rows` may have `_diff`. Where they retract by value, nothing at all may have happened to the table since.
    """

    rows: Rows | None
    positions: Mapping[Place, BitMap] = {}
    by_value: bool = False
    check: Callable[[TableState], None] = _allow
    """Raises if the table has become one in which this would change other rows."""
    writer: WriterSchema | None = None
    """What the rows are written under, if not the latest schema."""
    restored: int | None = None
    """The time whose rows come back by this, if they do."""


def change_rows(
    services: Services, log: TableLog, doing: str, change_of: Callable[[Pin], RowChange]
) -> Committed:
    """Commit changes to exactly the rows that they were computed from; try again if these may have changed.

    Appends of others are no matter. `doing` is what an error calls it: 'delete from', or 'upsert into'. It
    continues as long as a commit would, because others may be compacting all the time.
    """
    deadline = time.monotonic() + services.patience
    for attempt, pause in enumerate(pauses(), 1):
        write_id = services.new_id()
        pin = log.pinned(write_id)
        with pin as state:
            change = change_of(pin)
            writer = change.writer or WriterSchema(state.history.latest, state.history.latest_id)
            if change.rows is not None and change.writer is None:
                writer = resolve_writer(state, change.rows.schema, updates=True)
            write = PartWriter(services, log, state, write_id)
            check = partial(_check_since, services.chunks, state, change)
            takes = Takes(change.positions, state.seqno, check, change.restored)
            expected = state.upper if change.by_value else None
            try:
                return write.write(change.rows, writer, updates=True, expected_upper=expected, takes=takes)
            except (ConflictError, WriterFencedError):
                # Somebody wrote, or dropped a column that the rows to retract have values in.
                if attempt >= ATTEMPTS and time.monotonic() > deadline:
                    break
        time.sleep(pause)
    raise ConflictError(
        f"cannot {doing} `{log.name}`: others changed it during all {attempt} attempts. Try again."
    )


def parts_since(
    chunks: ChunkReader, seen: TableState, current: TableState, fields: Sequence[Field] = ()
) -> PartSet:
    """Return the parts that came since a state was seen, with the bounds of fields of the latest schema.

    Parts that came and were replaced meanwhile are not among them, but those in their place are.
    """
    folded = current.chunks if current.folded > seen.seqno else ()
    later = replace(
        current,
        chunks=tuple(chunk for chunk in folded if chunk.last.batch > seen.seqno),
        tail=tuple(batch for batch in current.tail if batch.header.seqno > seen.seqno),
    )
    found = load_parts(chunks, later, fields, (PLACES, TIMES))
    return found.keep(found.columns[PLACES].column("batch").to_numpy() > seen.seqno)


def _check_since(chunks: ChunkReader, seen: TableState, change: RowChange, current: TableState) -> None:
    """Raise if others have retracted by value since, which may be of rows that are to be retracted here."""
    if current.seqno == seen.seqno:
        return
    if change.positions:
        times = parts_since(chunks, seen, current).columns[TIMES]
        if (times.column("diff_min").to_numpy() < 0).any():
            raise ConflictError(f"others have retracted rows of `{current.name}` by value meanwhile")
    change.check(current)
