"""delta-rs: tables are seeded as logs of `add` actions with statistics, and a checkpoint of all of them."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, write_deltalake

from bench.workload import FILE_SIZE, NAMES, ROWS, SCHEMA, bounds, tiny_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.engines.engine import Place
    from bench.workload import Question

__all__ = ["appending", "count", "create", "plan", "seed"]

_BULK: Final = 20_000
_RETRIES: Final = CommitProperties(max_commit_retries=1000)


def create(place: Place) -> None:
    """Make an empty table."""
    DeltaTable.create(place.location, Schema.from_arrow(SCHEMA), storage_options=place.options or None)


def seed(location: str, parts: int) -> None:
    """Write the log as the protocol has it, and let delta-rs make the checkpoint."""
    DeltaTable.create(location, Schema.from_arrow(SCHEMA))
    log = Path(location) / "_delta_log"
    for version, start in enumerate(range(0, parts, _BULK), 1):
        numbers = range(start, min(start + _BULK, parts))
        lines = (
            _ADD % (part, *lows, *highs) for part, (lows, highs) in zip(numbers, bounds(numbers), strict=True)
        )
        (log / f"{version:020d}.json").write_text("\n".join(lines))
    table = DeltaTable(location)
    table.create_checkpoint()
    for version in range(table.version()):  # the checkpoint has them
        (log / f"{version:020d}.json").unlink()


def plan(location: str, question: Question) -> int:
    """Open the table and prune its files."""
    return len(DeltaTable(location).file_uris(file_pruning_predicate=question.sql))


@contextmanager
def appending(place: Place) -> Iterator[Callable[[], object]]:
    """Append through one handle, which is kept up to date by its own writes."""
    table = DeltaTable(place.location, storage_options=place.options or None)
    batch = tiny_batch()
    yield lambda: write_deltalake(table, batch, mode="append", commit_properties=_RETRIES)


def count(place: Place) -> int:
    """Return how many files a table has."""
    return len(DeltaTable(place.location, storage_options=place.options or None).file_uris())


def _add() -> str:
    """Return an action with a place for the number of the part and for each bound."""
    texts = {name for name in NAMES if SCHEMA.field(name).type == pa.string()}
    places = ", ".join(f'"{name}": "%s"' if name in texts else f'"{name}": %r' for name in NAMES)
    extremes = f'"minValues": {{{places}}}, "maxValues": {{{places}}}'
    nulls = json.dumps(dict.fromkeys(NAMES, 0))
    stats = f'{{"numRecords": {ROWS}, {extremes}, "nullCount": {nulls}}}'
    action = {
        "path": "parts/%012d.parquet",
        "partitionValues": {},
        "size": FILE_SIZE,
        "modificationTime": 0,
        "dataChange": True,
        "stats": stats,
    }
    return json.dumps({"add": action})


_ADD: Final = _add()
