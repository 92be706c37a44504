"""Tables for tests of the durable state.

Services have a clock that stands still, parts were never written, and all that a table says about its parts
comes as plain values.
"""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from instar.state import Place
from instar.state.chunk import FILES, FIXED_GROUPS, PLACES, group_name
from instar.state.manifest import stats_fields
from instar.state.parts import Part
from instar.storage import BlobConsensus
from instar.storage.objects import ObjectBlob
from instar.table import PartWriter, Services, TableLog, begin_write, load_parts
from instar.table.layout import leases, part_key, table_root
from instar.table.log.leases import find_lease
from instar.table.log.manifest import ChunkReader

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from instar.state import TableState
    from instar.stats import FieldStats
    from instar.storage import Blob, Consensus
    from instar.table import Committed, Lease

__all__ = [
    "START",
    "Clock",
    "Row",
    "StillTime",
    "World",
    "all_rows",
    "append_parts",
    "before_commit",
    "find_missing",
    "list_leases",
    "make_parts",
    "small_numbers",
    "spoil_columns",
]

START = 4_000_000_000_000
"""When tests begin: long after every object that is really written, so that a grace of 0 spares none."""

Row = dict[str, Any]


@dataclass
class Clock:
    """A clock that moves only when it is told to."""

    now: int = START

    def __call__(self) -> int:
        """Return the time."""
        return self.now


class StillTime:
    """The `time` of a commit that waits: it passes only by sleeping, and at once."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """Return the seconds that were slept."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += max(seconds, 0.0001)


@dataclass
class World:
    """One place, and as many handles on it as a test wants, each as another process would have."""

    blob: Blob = field(default_factory=ObjectBlob.in_memory)
    consensus: Consensus | None = None
    clock: Clock = field(default_factory=Clock)
    patience: float = 5.0
    opened: list[Services] = field(default_factory=list)
    _ids: itertools.count[int] = field(default_factory=itertools.count)

    def services(
        self,
        blob: Callable[[Blob], Blob] = lambda blob: blob,
        consensus: Callable[[Consensus], Consensus] = lambda consensus: consensus,
    ) -> Services:
        """Open the place anew, perhaps through something that gets in the way."""
        logs = BlobConsensus(self.blob) if self.consensus is None else self.consensus
        services = Services(
            blob(self.blob),
            consensus(logs),
            clock=self.clock,
            most_ahead_ms=None,
            new_id=lambda: f"{next(self._ids):032x}",
            author=lambda: "tester",
            patience=self.patience,
        )
        self.opened.append(services)
        return services

    def close(self) -> None:
        """Close all that was opened."""
        for services in self.opened:
            services.close()


def list_leases(services: Services, table_id: str) -> Iterator[Lease]:
    """Yield the leases of a table, expired ones too."""
    for stored in services.blob.list(leases(table_id)):
        lease = find_lease(services, stored.key)
        if lease is not None:
            yield lease


def make_parts(
    table_id: str,
    write_id: str,
    count: int,
    stats: Callable[[int], dict[int, FieldStats]] = lambda _: {},
    rows: int = 10,
) -> list[Part]:
    """Describe parts as a writer would, without writing them."""
    return [
        Part(part_key(table_id, write_id, number), rows, 100 + number, stats=stats(number))
        for number in range(count)
    ]


def append_parts(
    services: Services,
    log: TableLog,
    count: int = 1,
    stats: Callable[[int], dict[int, FieldStats]] = lambda _: {},
    *,
    token: str | None = None,
    put: bool = False,
) -> Committed:
    """Append parts under the latest schema, in one write; with `put`, there are objects too."""
    with begin_write(services, log) as writer:
        state = log.load()
        parts = make_parts(state.table_id, writer.write_id, count, stats)
        if put:
            for part in parts:
                services.blob.put(part.key, b"x" * part.size)
        return writer.append(parts, state.history.latest_id, token=token)


def all_rows(services: Services, state: TableState) -> dict[Place, Row]:
    """Return all that a state says about each live part: every fixed column and the bounds of every field."""
    fields = list(stats_fields(state.history.latest))
    columns = load_parts(services.chunks, state, fields, tuple(FIXED_GROUPS)).columns
    bounds = {group_name(leaf.id): columns[group_name(leaf.id)].to_pylist() for leaf in fields}
    rows: dict[Place, Row] = {}
    for number, fixed in enumerate(zip(*(columns[name].to_pylist() for name in FIXED_GROUPS), strict=True)):
        row = {column: value for group in fixed for column, value in group.items()}
        row |= {name: tuple(values[number].values()) for name, values in bounds.items()}
        rows[Place(row["batch"], row["ordinal"])] = row
    assert len(rows) == columns[PLACES].num_rows, "two parts are at one place"
    return rows


def find_missing(services: Services, state: TableState) -> list[str]:
    """Return the keys of what a state refers to and the store does not have: parts, and their metadata."""
    there = {stored.key for stored in services.blob.list(table_root(state.table_id))}
    refs = [*state.chunks, *(ref for batch in state.tail for ref in batch.chunks)]
    sheets = [*state.sheets, *(ref for batch in state.tail for ref in batch.sheets)]
    missing = [ref.key for ref in sheets if ref.key not in there] + [
        ref.key for ref in refs if ref.key not in there
    ]
    if missing:
        return missing
    keys = load_parts(ChunkReader(services.blob), state, groups=(FILES,)).keys
    return [key for key in keys if key not in there]


@contextmanager
def small_numbers(rollup_every: int = 4, chunk_parts: int = 6, inline_parts: int = 2) -> Iterator[None]:
    """Let rollups, chunks, merges and reloads happen after a few commits of a few parts.

    What goes on in the background ends before whoever started it goes on, so that nothing is left to chance.
    """

    def start(_: Services, task: Callable[[], None]) -> Thread:
        thread = Thread(target=task)
        thread.start()
        thread.join()
        return thread

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Services, "start", start)
        patch.setattr("instar.table.log.table_log.ROLLUP_EVERY", rollup_every)
        patch.setattr("instar.table.log.table_log._LONGEST_TAIL", 2 * rollup_every)
        patch.setattr("instar.table.log.table_log.time", StillTime())
        patch.setattr("instar.table.log.rollup.MAX_CHUNK_PARTS", chunk_parts)
        patch.setattr("instar.table.write.append.INLINE_PARTS", inline_parts)
        yield


def before_commit(patch: pytest.MonkeyPatch, meddle: Callable[[], object], *, times: int = 1) -> None:
    """Let somebody else do something after a change has been worked out and before it is committed."""
    left = iter(range(times))
    commit = PartWriter.commit

    def meddling(*args: Any, **kwargs: Any) -> object:  # noqa: ANN401 -- whatever the original takes
        if kwargs.get("takes") is not None and next(left, None) is not None:
            meddle()
        return commit(*args, **kwargs)

    patch.setattr(PartWriter, "commit", meddling)


def spoil_columns(place: Path, *columns: str, groups: Collection[int] | None = None) -> None:
    """Overwrite the values of columns, as files call them, in all parts below a place, or in some groups."""
    for path in place.rglob("parts/**/*.parquet"):
        metadata = pq.read_metadata(path)
        data = bytearray(path.read_bytes())
        numbers = range(metadata.num_row_groups) if groups is None else groups
        spoilt = [metadata.row_group(number) for number in numbers]
        for chunk in (group.column(at) for group in spoilt for at in range(group.num_columns)):
            if chunk.path_in_schema in columns:
                first = chunk.dictionary_page_offset or chunk.data_page_offset
                data[first : first + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
        path.write_bytes(data)
