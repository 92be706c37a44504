"""instar: tables are seeded by appends of many parts, and have an ordinary tail of single ones."""

from __future__ import annotations

from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import instar
from bench.counting import CountingBlob
from bench.engines.engine import Place
from bench.workload import FILE_SIZE, ROWS, SCHEMA, bounds, tiny_batch
from instar.state import Part
from instar.stats import FieldStats
from instar.storage import open_blob, open_consensus
from instar.table import Services, TableLog, begin_write, find_marker
from instar.table.layout import part_key
from instar.table.read.filter import Filter
from instar.table.read.pruning import needed_parts
from instar.table.read.snapshot import plan_snapshot, resolve_reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.workload import Question
    from instar.schema import Schema
    from instar.storage import Blob

__all__ = [
    "TABLE",
    "appending",
    "connect",
    "count",
    "count_requests",
    "create",
    "made_up_parts",
    "plan",
    "seed",
]

TABLE: Final = "events"

_BULK: Final = 65_536
_SINGLE: Final = 80
"""So many parts of a seeded table came one by one: enough for a rollup and a tail after it."""


def connect(place: Place) -> Services:
    """Open the services of a store that exists."""
    return _services(place, open_blob(place.location, place.options))


def create(place: Place) -> None:
    """Make an empty table."""
    with instar.open(place.location, consensus=place.consensus, options=place.options) as store:
        store.create_table(TABLE, SCHEMA)


def seed(location: str, parts: int) -> None:
    """Make a table with most parts in manifest chunks and the last ones in the log."""
    create(Place(location))
    services = connect(Place(location))
    log = TableLog(services, TABLE)
    schema = log.load().history.latest
    singles = min(_SINGLE, parts // 2)
    for start in range(0, parts - singles, _BULK):
        stop = min(start + _BULK, parts - singles)
        with begin_write(services, log) as write:
            write.append(made_up_parts(range(start, stop), schema), 0)
    with begin_write(services, log) as write:
        for part in made_up_parts(range(parts - singles, parts), schema):
            write.append([part], 0)
    log.settle()
    services.close()


def made_up_parts(parts: range, schema: Schema) -> list[Part]:
    """Return the metadata of parts that nobody has written."""
    ids = [field.id for field in schema.fields]
    return [
        Part(
            f"parts/{part:012d}.parquet",
            ROWS,
            FILE_SIZE,
            stats={
                field_id: FieldStats(0, 0, low, high)
                for field_id, low, high in zip(ids, lows, highs, strict=True)
            },
        )
        for part, (lows, highs) in zip(parts, bounds(parts), strict=True)
    ]


def plan(location: str, question: Question) -> int:
    """Open the table and plan a snapshot with a filter."""
    return _plan(connect(Place(location)), question)


def count_requests(location: str, question: Question) -> int:
    """Return how many requests to the blob store a plan takes."""
    place = Place(location)
    blob = CountingBlob(open_blob(location))
    _plan(_services(place, cast("Blob", blob)), question)
    return blob.requests


@contextmanager
def appending(place: Place) -> Iterator[Callable[[], object]]:
    """Append as a writer does: lease, file, commit."""
    services = connect(place)
    log = TableLog(services, TABLE)
    state = log.load()
    batch = tiny_batch()

    def append() -> None:
        with begin_write(services, log) as write:
            key = part_key(state.table_id, write.write_id, 0)
            data, stats = _written(batch, state.history.latest)
            services.blob.put(key, data)
            write.append([Part(key, batch.num_rows, len(data), stats=stats)], 0)

    yield append
    log.settle()
    services.close()


def count(place: Place) -> int:
    """Return how many parts a table has."""
    services = connect(place)
    parts = TableLog(services, TABLE).load().totals.parts
    services.close()
    return parts


def _plan(services: Services, question: Question) -> int:
    with TableLog(services, TABLE).pinned() as state:
        plan = plan_snapshot(services.chunks, state, resolve_reader(state, None, None), None)
        condition = Filter.parse(question.sql, state.history.latest, services.clock())
        chosen = needed_parts(services.chunks, state, condition.condition).read[plan.scan.mask]
    return len(plan.scan.keep(chosen).keys)


def _services(place: Place, blob: Blob) -> Services:
    logs = open_consensus(place.consensus, blob, place.options)
    marker = find_marker(blob)
    assert marker is not None, f"{place.location} is no store"
    return Services(blob, logs, marker.log_prefix)


def _written(batch: pa.Table, schema: Schema) -> tuple[bytes, dict[int, FieldStats]]:
    """Return a Parquet file and its statistics."""
    buffer = BytesIO()
    pq.write_table(batch, buffer, compression="zstd")
    stats = {}
    for field in schema.fields:
        column = batch.column(field.name)
        extremes = pc.min_max(column).as_py()
        stats[field.id] = FieldStats(column.null_count, 0, extremes["min"], extremes["max"])
    return buffer.getvalue(), stats
