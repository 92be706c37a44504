"""Routing: which tables the rows of a batch belong to, by their event time.

A row goes to the table of its time, however late it is. One without a time, or with a time further ahead than
clocks are wrong, has no place: it goes to the table `unplaced`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from instar.stream.period import DAY, in_calendar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from instar.stream.kinds import Kind
    from instar.stream.period import Period

__all__ = ["AHEAD", "Routed", "TablePlace", "event_times", "horizon", "route"]

AHEAD: Final = DAY
"""How far ahead of the writer's clock an event time may be, in microseconds."""


class TablePlace(NamedTuple):
    """A table by its kind and the time that it begins at; None is where rows without a place go."""

    kind: Kind
    start: int | None


class Routed(NamedTuple):
    """Rows that belong to one table."""

    place: TablePlace
    rows: pa.RecordBatch


def horizon(now_ms: int) -> int:
    """Return the latest event time that has a place, in microseconds."""
    return now_ms * 1000 + AHEAD


def event_times(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return event times as microseconds, and which of them are not null."""
    if pa.types.is_date32(column.type):
        days = column.cast(pa.int32()).cast(pa.int64())
        times = days.fill_null(0).to_numpy(zero_copy_only=False) * DAY
    else:
        micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        times = micros.fill_null(0).to_numpy(zero_copy_only=False)
    there = column.is_valid().to_numpy(zero_copy_only=False)
    return times, there


def route(batch: pa.RecordBatch, time: int, periods: Mapping[Kind, Period], latest: int) -> Iterator[Routed]:
    """Yield the rows of each table.

    `time` is the column to route by (-1: there is none), and `latest` the last time that has a place.
    Every row goes once to a table of each kind, or once to the first kind's table for rows without a place.
    """
    if not batch.num_rows:
        return
    if time < 0:
        yield Routed(TablePlace(next(iter(periods)), None), batch)
        return
    times, there = event_times(batch.column(time))
    placed = there & in_calendar(times) & (times <= latest)
    if not placed.all():
        yield Routed(TablePlace(next(iter(periods)), None), batch.filter(pa.array(~placed)))
        batch, times = batch.filter(pa.array(placed)), times[placed]
    for kind, period in periods.items():
        for start, rows in _split(batch, period.floor(times)):
            yield Routed(TablePlace(kind, start), rows)


def _split(batch: pa.RecordBatch, starts: np.ndarray) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of each start, in the order that they came in."""
    if not len(starts):
        return
    if starts[0] == starts[-1] and (starts == starts[0]).all():
        yield int(starts[0]), batch
        return
    order = np.argsort(starts, kind="stable")
    ordered = starts[order]
    edges = np.flatnonzero(np.diff(ordered)) + 1
    bounds = [0, *edges.tolist(), len(ordered)]
    for first, last in pairwise(bounds):
        yield int(ordered[first]), batch.take(pa.array(order[first:last]))
