"""Writing rows of whatever kind: a Spark frame goes to executors, everything else is stored in process."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from instar.errors import ConflictError, UsageError, WriterFencedError
from instar.parts import DIFF, conform, key_stats, open_stream, rank_rows
from instar.schema import arrow_schema
from instar.state import Appended
from instar.state.commands import check_token
from instar.table import Committed
from instar.table.read.rows import read_snapshot
from instar.table.read.snapshot import plan_keys, plan_snapshot, resolve_reader
from instar.table.write.store import (
    ATTEMPTS,
    WriterSchema,
    repeated_key,
    resolve_writer,
    store_parts,
    write_rows,
)

if TYPE_CHECKING:
    from instar.state import TableState
    from instar.table import Services, TableLog
    from instar.table.write.store import Store

__all__ = ["Commit", "Data", "Wishes", "as_commit", "upsert_data", "write_data"]

Data = Any
"""A Spark DataFrame, or what `instar.parts.open_stream` takes."""


class Commit(NamedTuple):
    """What a write came to: the version it made, its time, its schema, and how many updates it has."""

    seqno: int
    """The version of the table that it made."""
    ts: int
    """Its time: a snapshot as of it has the rows, and listening since it begins after them."""
    schema_id: int
    """The schema that it was written under."""
    rows: int
    """How many updates it holds, those that retract included."""


class Wishes(NamedTuple):
    """How rows are to be written; `Table.append` says what each means."""

    token: str | None = None
    evolve: bool = False
    dropped: str = "refuse"
    schema_id: int | None = None
    updates: bool = False
    expected_upper: int | None = None


def write_data(services: Services, log: TableLog, data: Data, wishes: Wishes) -> Commit:
    """Store rows and commit them."""
    token, evolve, dropped, schema_id, updates, expected_upper = wishes
    if dropped not in {"refuse", "discard"}:
        raise UsageError(f"dropped={dropped!r}: values of dropped columns are 'refuse'd or 'discard'ed")
    check_token(token)
    state = log.load()
    if token is not None and state.find_token(token) is not None:
        return as_commit(Committed(state, None), token)
    store: Store
    if is_spark_frame(data):
        from instar.spark import incoming_schema, store_frame  # noqa: PLC0415 -- only then

        writer = resolve_writer(state, incoming_schema(data.schema), schema_id, evolve=evolve)
        store = partial(store_frame, data, updates=updates)
    else:
        stream = open_stream(data)
        writer = resolve_writer(state, stream.schema, schema_id, evolve=evolve)
        store = partial(store_parts, batches=conform(stream, writer.schema, updates=updates), task="0")
    committed = write_rows(
        services,
        log,
        writer,
        store,
        token=token,
        expected_upper=expected_upper,
        discard=dropped == "discard",
    )
    return as_commit(committed, token)


def upsert_data(services: Services, log: TableLog, data: Data) -> Commit:
    """Replace the rows that have the same key; try again if the table moved on meanwhile."""
    state = log.load()
    if not state.key:
        raise UsageError(
            f"`{log.name}` has no key, so there is nothing to upsert by: create it with key=[…], or append"
        )
    if is_spark_frame(data):
        from instar.spark import upsert_rows  # noqa: PLC0415 -- only then

        return as_commit(upsert_rows(services, log, data))
    given = open_stream(data).read_all()  # perhaps it can be read only once
    for _ in range(ATTEMPTS):
        with log.pinned() as pinned:
            latest = pinned.history.latest
            rows = pa.Table.from_batches(conform(given, latest), schema=arrow_schema(latest))
            changes = _replacing(services, pinned, rows)
            batches = conform(changes, latest, updates=True)
            try:
                committed = write_rows(
                    services,
                    log,
                    WriterSchema(latest, pinned.history.latest_id),
                    partial(store_parts, batches=batches, task="0"),
                    expected_upper=pinned.upper,
                )
            except (ConflictError, WriterFencedError):
                continue  # somebody wrote, or dropped a column that the rows to retract have values in
            return as_commit(committed)
    raise ConflictError(
        f"cannot upsert into `{log.name}`: others changed it each of {ATTEMPTS} times. Try again."
    )


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


def as_commit(committed: Committed, token: str | None = None) -> Commit:
    """Return what a commit came to; of a repeated token, what it came to the first time."""
    state, entry = committed
    if entry is None:
        record = None if token is None else state.find_token(token)
        if record is None:
            return Commit(state.seqno, state.upper - 1, state.history.latest_id, 0)
        return Commit(record.seqno, record.ts, record.schema_id, record.rows)
    batch = next(step.batch for step in entry.commit.steps if isinstance(step, Appended))
    return Commit(entry.seqno, batch.upper - 1, batch.schema_id, batch.rows)


def is_spark_frame(data: object) -> bool:
    """Whether data is a Spark DataFrame, without importing Spark."""
    return type(data).__module__.startswith("pyspark.sql.") and hasattr(data, "mapInArrow")
