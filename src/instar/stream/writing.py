"""Writing rows to a stream: stored table by table, then committed to all of them, exactly once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from instar.errors import (
    ConflictError,
    CorruptTableError,
    StorageError,
    StreamNotFoundError,
    TableNotFoundError,
)
from instar.schema import plan_migration
from instar.state.table_state import TOKEN_WINDOW
from instar.storage.frame import decode_record, encode_frame
from instar.stream.batches import MOST_BEHIND, OWN_PREFIX, Intent, Item, begin_batch, end_batch
from instar.stream.handle import RowsOf
from instar.stream.kinds import Kind
from instar.stream.routing import horizon, route
from instar.stream.version import as_version
from instar.table import PartWriter, begin_write
from instar.table.log.part_set import WrittenPart
from instar.table.read.rows import read_written
from instar.table.write.append import INLINE_PARTS, resume_write
from instar.table.write.rows import ATTEMPTS
from instar.table.write.store import StoringPlan, store_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from instar.schema import Schema
    from instar.state import TableState
    from instar.stream.batches import BatchChange, Batches, Move, TableOutcome
    from instar.stream.catalog import VersionRecord
    from instar.stream.handle import StreamHandle, Target
    from instar.stream.period import Period
    from instar.stream.routing import TablePlace
    from instar.stream.version import Version
    from instar.table.write.store import StoredPart

__all__ = [
    "StreamCommit",
    "Written",
    "commit_items",
    "finish_pending",
    "hold_target",
    "migrated",
    "routed_kinds",
    "time_position",
    "write_batches",
]

T = TypeVar("T")
R = TypeVar("R")

INLINE_BYTES: Final = 64 * 1024
"""An intent that takes more is put into an object of its own."""

_WRITERS: Final = 8


class StreamCommit(NamedTuple):
    """The result of a write to a stream."""

    version: Version
    """The version of the rows."""
    rows: int
    """How many rows were written; a row counts once, however many tables have it."""
    tables: tuple[str, ...]
    """The tables that got rows."""
    dropped: tuple[str, ...] = ()
    """The tables that an archiving job dropped."""
    kept: tuple[str, ...] = ()
    """The tables that it kept, because a job has not copied all of their rows yet."""


class Written(NamedTuple):
    """A table that is being written to, and the lease that keeps what is stored for it."""

    target: Target
    writer: PartWriter

    @property
    def plan(self) -> StoringPlan:
        """What a process must know to store rows."""
        return self.writer.plan(self.target.schema)

    def item(self, parts: Sequence[StoredPart]) -> Item:
        """Return what the table gets."""
        target = self.target
        return Item(
            target.name,
            target.place.kind.value,
            target.place.start,
            target.table_id,
            self.writer.write_id,
            target.schema_id,
            target.stream_schema_id,
            tuple(parts),
        )


def write_batches(
    handle: StreamHandle, record: VersionRecord, batches: Iterable[pa.RecordBatch], token: str | None
) -> StreamCommit:
    """Write rows, which are in the layout of their version, to the tables that they belong to."""
    catalog = handle.known()
    version = as_version(record.version)
    done = None if token is None else find_done(handle, token)
    if done is not None:
        return as_commit(done)
    latest = horizon(handle.services.clock())
    periods = routed_kinds(catalog.layout.periods)
    at = time_position(record.schema, catalog.time)
    routed: dict[TablePlace, list[pa.RecordBatch]] = {}
    count = 0
    for batch in batches:
        count += batch.num_rows
        for place, rows in route(batch, at, periods, latest):
            routed.setdefault(place, []).append(rows)
    for attempt in range(ATTEMPTS):
        try:
            return _write_routed(handle, record, routed, count, token)
        except TableNotFoundError as gone:  # dropped between two looks at it
            handle.forget(gone.name)
            if attempt + 1 == ATTEMPTS:
                raise
    return StreamCommit(version, 0, ())  # pragma: no cover -- the loop returns or raises


def routed_kinds(periods: Mapping[Kind, Period]) -> dict[Kind, Period]:
    """Return the kinds that a write fills; jobs fill the others."""
    return {kind: periods[kind] for kind in (Kind.REGULAR, Kind.HOURLY) if kind in periods}


def time_position(schema: Schema, field_id: int) -> int:
    """Return which column of a version has the event time."""
    return next((at for at, field in enumerate(schema.fields) if field.id == field_id), -1)


def _write_routed(
    handle: StreamHandle,
    record: VersionRecord,
    routed: dict[TablePlace, list[pa.RecordBatch]],
    count: int,
    token: str | None,
) -> StreamCommit:
    version = as_version(record.version)
    handle.announce(routed)
    with ExitStack() as held:

        def store(place: TablePlace) -> Item:
            written = hold_target(handle, held, place, RowsOf.version(record))
            migration = migrated(routed[place], record.schema, written.target.schema)
            return written.item(list(store_parts(written.plan, migration, "0")))

        items = run_side_by_side(store, list(routed))
        return commit_items(handle, version, items, count, token)


def run_side_by_side(call: Callable[[T], R], each: Sequence[T]) -> list[R]:
    """Call a function for each of some things, in threads if there are several."""
    if len(each) == 1:
        return [call(each[0])]
    with ThreadPoolExecutor(_WRITERS) as pool:
        return list(pool.map(call, each))


def hold_target(handle: StreamHandle, held: ExitStack, place: TablePlace, rows: RowsOf) -> Written:
    """Open the table for a place, and keep what is about to be stored for it."""
    target = handle.target(place, rows)
    try:
        writer = held.enter_context(begin_write(handle.services, target.log))
    except TableNotFoundError:
        handle.forget(target.name)
        target = handle.target(place, rows, fresh=True)
        writer = held.enter_context(begin_write(handle.services, target.log))
    return Written(target, writer)


def migrated(batches: Iterable[pa.RecordBatch], version: Schema, table: Schema) -> Iterator[pa.RecordBatch]:
    """Bring rows from the schema of their version to that of a table."""
    migration = plan_migration(version, table)
    return (migration.apply(batch) for batch in batches)


def commit_items(
    handle: StreamHandle,
    version: Version,
    items: Sequence[Item],
    count: int,
    token: str | None,
    moved: Sequence[Move] = (),
) -> StreamCommit:
    """Make stored rows part of their tables, all of them or none, and move the cursors of a job with them.

    One table without a token is one commit. Otherwise the intent is recorded first.
    """
    items = [item for item in items if item.parts]
    tables = tuple(sorted(item.name for item in items))
    if token is None and not moved and len(items) <= 1:
        for item in items:
            append_item(handle, item, None, version)
        return StreamCommit(version, count, tables)
    given = token or OWN_PREFIX + handle.services.new_id()
    batches = handle.batches.refresh()
    if batches is not None:
        _finish_laggards(handle, batches)
    intent = _spilled(handle, Intent(given, str(version), count, tables, tuple(items), moved=tuple(moved)))

    def begin(batches: Batches | None) -> Sequence[BatchChange]:
        if batches is not None and batches.closed:
            raise StreamNotFoundError(handle.name, dropped=True)
        for item in items:
            handle.services.leases.check(item.write_id)  # from here on, a vacuum finishes the write first
        return begin_batch(batches, intent)

    handle.batches.commit(begin)
    recorded = handle.batches.known
    found = None if recorded is None else recorded.find(given)
    if found is None:
        raise ConflictError(f"write {given} to stream `{handle.name}` was not recorded; write again")
    finish(handle, given)
    return as_commit(found)


def as_commit(outcome: TableOutcome) -> StreamCommit:
    """Return the result of a write."""
    return StreamCommit(as_version(outcome.version), outcome.rows, outcome.tables)


def find_done(handle: StreamHandle, token: str) -> TableOutcome | None:
    """Find the result of a write with this token; an unfinished one is finished now."""
    batches = handle.batches.refresh()
    found = None if batches is None else batches.find(token)
    if found is not None:
        finish(handle, token)
    return found


def finish_pending(handle: StreamHandle) -> int:
    """Finish every write that somebody left unfinished, and return the number of writes that there were."""
    batches = handle.batches.refresh()
    if batches is None:
        return 0
    for token in batches.pending:
        finish(handle, token)
    return batches.number


def _finish_laggards(handle: StreamHandle, batches: Batches) -> None:
    """Finish writes that tables are about to forget the tokens of."""
    for number, intent in list(batches.pending.values()):
        if batches.number - number >= MOST_BEHIND:
            finish(handle, intent.token)


def finish(handle: StreamHandle, token: str) -> None:
    """Give all tables of a recorded write their rows. Repeating it changes nothing."""
    batches = handle.batches.known
    if batches is None or token not in batches.pending:
        return
    _, intent = batches.pending[token]
    items = _items(handle, intent)
    version = as_version(intent.version)
    run_side_by_side(lambda item: append_item(handle, item, token, version), items)
    handle.batches.commit(lambda batches: end_batch(batches, token))
    if intent.spilled is not None:
        with suppress(StorageError):  # a vacuum of the store takes it
            handle.services.blob.delete([intent.spilled])


def append_item(handle: StreamHandle, item: Item, token: str | None, version: Version) -> None:
    """Give one table its rows; if it was dropped meanwhile, they go to a new table in its place.

    With a token the write is recorded, so it may be that others have finished it long ago: that the table
    does not show it any more, because it was dropped or had many writes since, is no reason to repeat it.
    """

    def is_finished(state: TableState) -> bool:
        return token is not None and len(state.tokens) >= TOKEN_WINDOW and not _is_pending(handle, token)

    try:
        log = handle.open_table(item.name, item.table_id)
        log.bind(item.table_id)
        with ExitStack() as held:
            if token is None:
                writer = resume_write(handle.services, log, item.table_id, item.write_id)
            elif len(item.parts) > INLINE_PARTS:  # more is about to be put
                writer = held.enter_context(begin_write(handle.services, log))
            else:
                writer = resume_write(handle.services, log, item.table_id, handle.services.new_id())
            writer.commit(item.parts, item.schema_id, token=token, is_done=is_finished)
    except TableNotFoundError:
        handle.forget(item.name)
        _store_again(handle, item, token, version)


def _is_pending(handle: StreamHandle, token: str) -> bool:
    """Whether a write is still unfinished."""
    batches = handle.batches.refresh()
    return batches is not None and token in batches.pending


def _store_again(handle: StreamHandle, item: Item, token: str | None, version: Version) -> None:
    """Read back what was stored for a table that is gone, and write it to the current table of its name."""
    schema = handle.load().history.schemas[item.stream_schema_id]
    for _ in range(ATTEMPTS):
        with ExitStack() as held, suppress(TableNotFoundError):  # dropped again
            written = hold_target(handle, held, item.place, RowsOf((version,), item.stream_schema_id))
            if token is not None and not _is_pending(handle, token):
                return

            def rows(to: Schema = written.target.schema) -> Iterator[pa.RecordBatch]:
                for stored in item.parts:
                    yield from read_written(handle.services.blob, WrittenPart(stored.part, 0, schema), to)

            again = list(store_parts(written.plan, rows(), "0"))
            written.writer.commit(again, written.target.schema_id, token=token)
            return
        handle.forget(item.name)
    raise ConflictError(
        f"table `{item.name}` was dropped {ATTEMPTS} times while rows were written to it. "
        + (
            "Nothing was written; write again."
            if token is None
            else "The next call on this stream finishes the write."
        )
    )


def _spilled(handle: StreamHandle, intent: Intent) -> Intent:
    """Put the parts of a large intent into an object of their own, so that the journal stays small."""
    data = msgspec.msgpack.encode(intent.items)
    if len(data) <= INLINE_BYTES:
        return intent
    key = f"streams/{handle.known().stream_id}/batches/{handle.services.new_id()}"
    handle.services.blob.put(key, encode_frame("batch", key, data))
    return replace(intent, items=(), spilled=key)


def _items(handle: StreamHandle, intent: Intent) -> Sequence[Item]:
    if intent.spilled is None:
        return intent.items
    what = f"the intent {intent.spilled}"
    data = handle.services.blob.find(intent.spilled)
    if data is None:
        handle.batches.refresh()  # the process that finished it has deleted it
        batches = handle.batches.known
        if batches is None or intent.token not in batches.pending:
            return ()
        raise CorruptTableError(what, "it is missing, and its write is not finished")
    return decode_record(data, "batch", intent.spilled, tuple[Item, ...], what=what)
