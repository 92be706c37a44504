"""pyiceberg: tables are seeded by fast appends of data files that do not exist, in a catalog in SQLite."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Final

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

from bench.engines.engine import Place
from bench.workload import FILE_SIZE, ROWS, SCHEMA, bounds, tiny_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyiceberg.table import Table

    from bench.workload import Question

__all__ = ["appending", "count", "create", "plan", "seed"]

_BULK: Final = 20_000  # about as large as pyiceberg lets a manifest become
_TABLE: Final = "bench.events"
_LONG: Final = Struct("<q")
_DOUBLE: Final = Struct("<d")


def create(place: Place) -> None:
    """Make an empty table."""
    Path(place.location).mkdir(parents=True)
    catalog = _catalog(place.location)
    catalog.create_namespace("bench")
    catalog.create_table(_TABLE, SCHEMA)


def seed(location: str, parts: int) -> None:
    """Append data files, one manifest at a time."""
    create(Place(location))
    table = _load(location)
    for start in range(0, parts, _BULK):
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
            for part in range(start, min(start + _BULK, parts)):
                append.append_data_file(_data_file(part))


def plan(location: str, question: Question) -> int:
    """Open the table and plan a scan."""
    return len(list(_load(location).scan(row_filter=question.sql).plan_files()))


@contextmanager
def appending(place: Place) -> Iterator[Callable[[], object]]:
    """Append through one handle, which is kept up to date by its own writes."""
    table = _load(place.location)
    batch = tiny_batch()
    yield lambda: table.append(batch)


def count(place: Place) -> int:
    """Return how many files a table has."""
    return len(list(_load(place.location).scan().plan_files()))


def _catalog(location: str) -> SqlCatalog:
    return SqlCatalog(
        "bench", uri=f"sqlite:///{location}/catalog.db", warehouse=Path(location, "warehouse").as_uri()
    )


def _load(location: str) -> Table:
    return _catalog(location).load_table(_TABLE)


def _data_file(part: int) -> DataFile:
    known = list(enumerate(bounds(part), 1))
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"file:///parts/{part:012d}.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=ROWS,
        file_size_in_bytes=FILE_SIZE,
        column_sizes=dict.fromkeys((number for number, _ in known), FILE_SIZE // len(known)),
        value_counts=dict.fromkeys((number for number, _ in known), ROWS),
        null_value_counts=dict.fromkeys((number for number, _ in known), 0),
        nan_value_counts={},
        lower_bounds={number: _encode(low) for number, (low, _) in known},
        upper_bounds={number: _encode(high) for number, (_, high) in known},
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
    )
    file.spec_id = 0
    return file


def _encode(value: float | str) -> bytes:
    """Return a bound as Iceberg stores it; a table of its own numbers its columns from 1."""
    match value:
        case int():
            return _LONG.pack(value)
        case float():
            return _DOUBLE.pack(value)
        case str():
            return value.encode()
