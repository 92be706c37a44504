"""pyiceberg: tables are seeded by fast appends of data files that do not exist, in a catalog in SQLite."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyiceberg.catalog.sql import SqlCatalog

from bench.engines.engine import Place
from bench.engines.manifests import write_manifest
from bench.workload import SCHEMA, tiny_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyiceberg.table import Table

    from bench.workload import Question

__all__ = ["appending", "count", "create", "load", "plan", "seed"]

_BULK: Final = 20_000  # about as large as pyiceberg lets a manifest become
_TABLE: Final = "bench.events"


def create(place: Place) -> None:
    """Make an empty table."""
    Path(place.location).mkdir(parents=True)
    catalog = _catalog(place.location)
    catalog.create_namespace("bench")
    catalog.create_table(_TABLE, SCHEMA)


def seed(location: str, parts: int) -> None:
    """Append all data files at once, in manifests of the usual size."""
    create(Place(location))
    with load(location).transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        manifests = [
            write_manifest(append, range(start, min(start + _BULK, parts)))
            for start in range(0, parts, _BULK)
        ]
        append._manifests = lambda: manifests  # noqa: SLF001 -- otherwise it encodes entries one by one


def plan(location: str, question: Question) -> int:
    """Open the table and plan a scan."""
    return len(list(load(location).scan(row_filter=question.sql).plan_files()))


@contextmanager
def appending(place: Place) -> Iterator[Callable[[], object]]:
    """Append through one handle, which is kept up to date by its own writes."""
    table = load(place.location)
    batch = tiny_batch()
    yield lambda: table.append(batch)


def count(place: Place) -> int:
    """Return how many files a table has."""
    return len(list(load(place.location).scan().plan_files()))


def _catalog(location: str) -> SqlCatalog:
    return SqlCatalog(
        "bench", uri=f"sqlite:///{location}/catalog.db", warehouse=Path(location, "warehouse").as_uri()
    )


def load(location: str) -> Table:
    """Open a table."""
    return _catalog(location).load_table(_TABLE)
