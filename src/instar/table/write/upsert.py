"""Upserts: rows of a table with a key take the place of those that have the same key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from instar.errors import UsageError
from instar.parts import DIFF, conform, key_stats, open_stream, rank_rows
from instar.parts.layout import locate
from instar.schema import arrow_schema, format_path
from instar.schema.types import member_fields
from instar.table.read.rows import read_snapshot
from instar.table.read.snapshot import plan_keys, plan_snapshot, resolve_reader
from instar.table.write.rows import change_rows
from instar.table.write.store import LocalRows

if TYPE_CHECKING:
    from instar.parts import ArrowData
    from instar.schema import Field
    from instar.state import TableState
    from instar.table.log.pin import Pin
    from instar.table.log.table_log import Committed, TableLog
    from instar.table.services import Services

__all__ = ["check_key", "key_paths", "repeated_key", "upsert_local"]


def upsert_local(services: Services, log: TableLog, data: ArrowData) -> Committed:
    """Add rows of this process in place of those that have the same key."""
    given = open_stream(data).read_all()  # perhaps it can be read only once

    def replacing(pin: Pin) -> LocalRows:
        latest = pin.state.history.latest
        rows = pa.Table.from_batches(conform(given, latest), schema=arrow_schema(latest))
        return LocalRows(_replacing(services, pin.state, rows))

    return change_rows(services, log, "upsert into", replacing)


def check_key(state: TableState) -> None:
    """Raise if a table has no key."""
    if not state.key:
        raise UsageError(
            f"`{state.name}` has no key, so there is nothing to upsert by: create it with key=[…], or append"
        )


def key_paths(state: TableState) -> list[tuple[str, ...]]:
    """Return the names that lead to each column of the key."""
    return [_names(state.history.latest.fields, field_id) for field_id in state.key]


def repeated_key(state: TableState) -> UsageError:
    """Return what to say of data to upsert in which two rows have one key."""
    keys = ", ".join(format_path(path) for path in key_paths(state))
    return UsageError(
        f"the data for `{state.name}` has the same key ({keys}) more than once: which row shall stay?"
    )


def _names(fields: tuple[Field, ...], field_id: int) -> tuple[str, ...]:
    names = []
    for at in locate(fields, field_id):
        names.append(fields[at].name)
        fields = tuple(member_fields(fields[at].type))
    return tuple(names)


def _replacing(services: Services, state: TableState, rows: pa.Table) -> pa.Table:
    """Return the rows to add, and with -1 those of the same keys that are there now."""
    latest = state.history.latest
    whole = plan_snapshot(services.chunks, state, resolve_reader(state, None, None), None)
    plan = plan_keys(services.chunks, whole, key_stats(rows, latest, state.key), rows.num_rows)
    current = pa.Table.from_batches(read_snapshot(services.blob, plan), schema=arrow_schema(latest))
    ranks = rank_rows(pa.concat_tables([current, rows]), latest, state.key)
    here, new = np.split(ranks, [current.num_rows])
    if len(np.unique(new)) < len(new):
        raise repeated_key(state)
    gone = current.filter(pa.array(np.isin(here, new)))
    return pa.concat_tables([_with_diff(gone, -1), _with_diff(rows, 1)])


def _with_diff(rows: pa.Table, diff: int) -> pa.Table:
    return rows.append_column(DIFF, pa.array(np.full(rows.num_rows, diff, np.int64)))
