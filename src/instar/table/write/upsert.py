"""Upserts: rows of a table with a key take the place of those that have the same key."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from instar.errors import ConflictError, UsageError
from instar.parts import DIFF, conform, key_stats, needed_types, open_stream
from instar.parts.layout import path_to
from instar.schema import arrow_schema, format_path
from instar.table.read.locate_keys import find_keys, key_schema
from instar.table.read.snapshot import KeyBounds, plan_keys, plan_snapshot, resolve_reader
from instar.table.write.evolving import Evolution, check_former, resolve_writer
from instar.table.write.retract import negated
from instar.table.write.rows import RowChange, change_rows, parts_since
from instar.table.write.store import LocalRows

if TYPE_CHECKING:
    from instar.parts import ArrowData
    from instar.state import TableState
    from instar.table.log.manifest import ChunkReader
    from instar.table.log.pin import Pin
    from instar.table.log.table_log import Committed, TableLog
    from instar.table.services import Services

__all__ = [
    "check_key",
    "check_keys_since",
    "evolving_by",
    "key_paths",
    "repeated_key",
    "upsert_local",
    "with_diff",
]


def upsert_local(
    services: Services, log: TableLog, data: ArrowData, evolution: Evolution | None = None
) -> Committed:
    """Add rows of this process in place of those that have the same key."""
    known = log.load_known().history.latest
    given = open_stream(data, known).read_all()  # perhaps it can be read only once

    def replacing(pin: Pin) -> RowChange:
        state = pin.state
        writer = None
        if evolution is not None:
            allowed = evolving_by(evolution, state, needed_types(given.schema, given))
            writer = resolve_writer(state, given.schema, evolution=allowed)
        else:
            check_former(state.history, given.column_names, "Rename the columns of the data as in the table")
        latest = state.history.latest if writer is None else writer.schema
        rows = pa.Table.from_batches(conform(given, latest), schema=arrow_schema(latest))
        keys = KeyBounds(key_stats(rows, latest, state.key), rows.num_rows)
        whole = plan_snapshot(services.chunks, state, resolve_reader(state, None, None), None)
        plan = plan_keys(services.chunks, whole, keys)
        own = [latest.fields.index(field) for field in key_schema(latest, state.key).fields]
        found = find_keys(services, plan, rows.select(own), state.key)
        if found.repeated:
            raise repeated_key(state)
        pieces = [with_diff(rows, 1)]
        if found.by_value is not None and found.by_value.num_rows:
            pieces.append(negated(found.by_value))
        united = pa.concat_tables(pieces, promote_options="permissive") if rows.num_rows else None
        added = None if united is None else LocalRows(united)
        check = partial(check_keys_since, services.chunks, state, keys)
        return RowChange(added, found.positions, len(pieces) > 1, check, writer)

    return change_rows(services, log, "upsert into", replacing)


def evolving_by(evolution: Evolution, state: TableState, needs: pa.Schema) -> Evolution:
    """Return how far an upsert may change the schema of a table: the key stays as it is."""
    fixed = [format_path(path) for path in key_paths(state)]
    return evolution._replace(needs=needs, fixed=fixed)


def check_keys_since(chunks: ChunkReader, seen: TableState, keys: KeyBounds, current: TableState) -> None:
    """Raise if somebody has meanwhile added rows that may have one of the keys."""
    latest = current.history.latest
    if keys.may_be_in(parts_since(chunks, seen, current, keys.fields(latest)), latest).any():
        raise ConflictError(f"others have added rows to `{current.name}` that may have the same keys")


def check_key(state: TableState) -> None:
    """Raise if a table has no key."""
    if not state.key:
        raise UsageError(
            f"`{state.name}` has no key, so there is nothing to upsert by: create it with key=[…], or append"
        )


def key_paths(state: TableState) -> list[tuple[str, ...]]:
    """Return the names that lead to each column of the key."""
    return [path_to(state.history.latest.fields, field_id) for field_id in state.key]


def repeated_key(state: TableState) -> UsageError:
    """Return the error for data in which two rows have the same key."""
    keys = ", ".join(format_path(path) for path in key_paths(state))
    return UsageError(
        f"the data for `{state.name}` has the same key ({keys}) more than once. Leave one row for each key."
    )


def with_diff(rows: pa.Table, diff: int) -> pa.Table:
    """Return rows with how often each is added."""
    counts = pa.array(np.full(rows.num_rows, diff, np.int64))
    return rows.append_column(pa.field(DIFF, pa.int64(), nullable=False), counts)
