"""`Listen`: the updates of a table after a time, as they come."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import pyarrow as pa

from instar.parts.layout import DIFF, TS, update_schema
from instar.schema import Names
from instar.storage import pauses
from instar.table.read.listen import plan_changes, read_changes
from instar.table.read.snapshot import resolve_reader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from instar.schema import Schema
    from instar.table import Services, TableLog

__all__ = ["Changes", "Listen"]


class Changes(NamedTuple):
    """Updates that have become complete, by time: rows with `_ts` and `_diff`, and the upper they reach."""

    rows: pa.Table
    """The columns of the reader's schema, then `_ts`, the time of an update, and `_diff`: how
    often the row was added, or if negative, retracted; any whole number except 0."""
    upper: int
    """All times before this have been yielded; `listen(since=upper - 1)` continues from here."""


class Listen:
    """An iterator over changes. Its schema is checked again whenever the table has evolved.

    It waits for the next change, and ends when `timeout` seconds have passed without one (None: never).
    The attribute `upper` is its progress: everything before it has been yielded.
    """

    def __init__(
        self,
        services: Services,
        log: TableLog,
        *,
        since: int | None = None,
        schema: Schema | int | None = None,
        columns: Sequence[str] | None = None,
        timeout: float | None = None,
    ) -> None:
        self._services = services
        self._log = log
        self._timeout = timeout
        state = log.load()
        self._reader = resolve_reader(state, schema, columns)
        self.upper = state.upper if since is None else since + 1
        """Everything before this has been yielded."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Changes:
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        for pause in pauses(first=0.01, longest=1.0):
            changes = self._poll()
            if changes is not None:
                return changes
            left = pause if deadline is None else min(pause, deadline - time.monotonic())
            if left < 0:
                break
            time.sleep(left)
        raise StopIteration

    def __repr__(self) -> str:
        return f"Listen({self._log.name!r}, upper={self.upper})"

    def _poll(self) -> Changes | None:
        """Return what has become complete since the last time, if there is anything."""
        with self._log.pinned() as state:
            plan = plan_changes(self._services.chunks, state, self._reader, self.upper)
            if plan.upper <= self.upper:
                return None
            batches = list(read_changes(self._services.blob, plan))
        self.upper = plan.upper
        layout = update_schema(self._reader.schema, Names.COLUMN, (TS, DIFF))
        return Changes(_in_order(pa.Table.from_batches(batches, schema=layout)), plan.upper)


def _in_order(rows: pa.Table) -> pa.Table:
    """Return updates by time; parts that a rollup or a compaction has moved come in any order."""
    times = rows.column(TS).to_numpy()
    return rows if (times[1:] >= times[:-1]).all() else rows.take(np.argsort(times, kind="stable"))
