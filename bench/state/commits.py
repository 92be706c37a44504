"""Do commits grow dearer with the table? Their latency at each size, as a ratio to the smallest."""

from __future__ import annotations

import gc
import shutil
import time
import uuid
from contextlib import ExitStack
from functools import partial
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.engines import Place, load_engine, ours
from bench.measure import Ratio, interleave, seconds
from bench.report import Column, Section
from instar.api import Table
from instar.storage import open_blob
from instar.table import TableLog, begin_write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.seeds import Seeds

__all__ = ["TARGET", "measure_commits"]

TARGET: Final = 1.5
"""A commit to the largest table may cost so many times what one to the smallest does."""

_COLUMNS: Final = {
    "where": Column("where"),
    "operation": Column("operation"),
    "parts": Column("parts"),
    "ratio": Column("ratio to the smallest"),
    "verdict": Column(f"target ≤ {TARGET}"),
    "amortised": Column("with rollups, mean", ".2f"),
    "milliseconds": Column("median ms", ".2f"),
}
_NOTES: Final = (
    "instar commits the metadata of one part with statistics of 20 columns; evolve renames a column.",
    "“again” is a second table of the smallest size: how far its ratio is from 1 is the noise.",
    "“with rollups” also waits for the rollup that one commit in 64 starts in the background.",
    "Peers append a tiny batch with its Parquet file, and their ratios are to their own smallest table.",
    "On a directory, instar brings every commit to disk before it answers; the peers sync no files.",
)


class _Took(NamedTuple):
    """Seconds until a commit was acknowledged, and until what it started in the background was done."""

    latency: float
    total: float


class _Growing:
    """A handle on one seeded table that commits, and waits for its own rollups before others go on."""

    def __init__(self, place: Place, parts: int, stack: ExitStack) -> None:
        services = ours.connect(place)
        stack.callback(services.close)
        self._log = TableLog(services, ours.TABLE)
        self._table = Table(services, self._log)
        self._writer = stack.enter_context(begin_write(services, self._log))
        self._parts = parts
        self._names = ["c19", "c19_renamed"]

    def append(self) -> _Took:
        state = self._log.load()
        parts = ours.made_up_parts(range(self._parts, self._parts + 1), state.history.schemas[0])
        self._parts += 1
        return self._timed(lambda: self._writer.append(parts, 0))

    def evolve(self) -> _Took:
        update = self._table.evolve().rename_column(*self._names)
        self._names.reverse()
        return self._timed(update.commit)

    def _timed(self, commit: Callable[[], object]) -> _Took:
        start = time.perf_counter()
        commit()
        answered = time.perf_counter()
        self._log.settle()
        return _Took(answered - start, time.perf_counter() - start)


def measure_commits(
    seeds: Seeds, sizes: Sequence[int], rounds: int, peers: tuple[Sequence[str], Sequence[int], int]
) -> Section:
    """Commit to tables of all sizes by turns, on a directory and in memory; then let peers do so."""
    again = f"{sizes[0]:,} again"
    shutil.copytree(seeds.location("instar", sizes[0]), seeds.location("instar", sizes[0], "-again"))
    labels = {f"{size:,}": seeds.location("instar", size) for size in sizes}
    labels[again] = seeds.location("instar", sizes[0], "-again")
    rows = []
    backends: dict[str, Callable[[str], str]] = {
        "instar, directory": str,
        "instar, memory": _in_memory,
    }
    for where, copied in backends.items():
        with ExitStack() as stack:
            tables = {
                label: _Growing(Place(copied(location)), sizes[-1], stack)
                for label, location in labels.items()
            }
            gc.collect()
            for operation in ("append", "evolve"):
                cases = {label: getattr(table, operation) for label, table in tables.items()}
                took = interleave(f"{where}: {operation}", cases, rounds)
                rows += _rows(where, operation, took)
    for engine in peers[0]:
        rows += _measure_peer(seeds, engine, *peers[1:])
    return Section("Commits as a table grows", _COLUMNS, rows, _NOTES)


def _rows(where: str, operation: str, took: dict[str, list[_Took]]) -> list[dict[str, Any]]:
    base = next(iter(took.values()))
    rows = []
    for label, samples in took.items():
        ratio = Ratio.of([one.latency for one in samples], [one.latency for one in base])
        rows.append(
            {
                "where": where,
                "operation": operation,
                "parts": label,
                "ratio": ratio,
                "verdict": "met" if ratio.median <= TARGET else "missed",
                "amortised": fmean(one.total for one in samples) / fmean(one.total for one in base),
                "milliseconds": median(one.latency for one in samples) * 1000,
            }
        )
    return rows


def _measure_peer(seeds: Seeds, engine: str, sizes: Sequence[int], rounds: int) -> list[dict[str, Any]]:
    with ExitStack() as stack:
        cases = {}
        for size in sizes:
            place = Place(seeds.location(engine, size))
            append = stack.enter_context(load_engine(engine).appending(place))
            append()  # the first one is never like the others
            cases[size] = partial(seconds, append)
        took = interleave(f"{engine}: append", cases, rounds)
    return [
        {
            "where": f"{engine}, directory",
            "operation": "append",
            "parts": f"{size:,}",
            "ratio": Ratio.of(samples, took[sizes[0]]),
            "verdict": None,
            "amortised": None,
            "milliseconds": median(samples) * 1000,
        }
        for size, samples in took.items()
    ]


def _in_memory(location: str) -> str:
    """Copy a store from a directory into memory, and return where it is."""
    url = f"memory://{uuid.uuid4().hex}"
    source, target = open_blob(location), open_blob(url)
    for stored in source.list():
        target.put(stored.key, source.get(stored.key))
    return url
