"""What does a new reader read? A table opened in a fresh process, to plan a filter on two of its columns."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from bench.cold import WARM_UP_PARTS, Opened, open_cold
from bench.engines import ours
from bench.measure import Ratio, interleave
from bench.report import Column, Section
from bench.workload import Question

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.seeds import Seeds

__all__ = ["measure_opening"]

_COLUMNS: Final = {
    "parts": Column("parts", ",d"),
    "engine": Column("engine"),
    "time_ratio": Column("time / instar"),
    "cpu_ratio": Column("CPU / instar"),
    "bytes_ratio": Column("bytes / instar", ",.2f"),
    "memory_ratio": Column("memory / instar", ",.2f"),
    "seconds": Column("median s", ".3f"),
    "cpu_seconds": Column("CPU s", ".3f"),
    "megabytes": Column("MB read", ",.1f"),
    "calls": Column("read calls", ",.0f"),
    "peak": Column("peak MB", ",.0f"),
}
_NOTES: Final = (
    "Each opening is a new process that has imported its engine and has opened a tiny table before.",
    "All engines find the same files. The files' pages are in the system's cache for all alike.",
    "instar also takes and gives back a lease, which it brings to disk; the others have none.",
)


def measure_opening(seeds: Seeds, engines: Sequence[str], openings: Sequence[tuple[int, int]]) -> Section:
    """Open tables of each size in new processes, the engines by turns."""
    rows: list[dict[str, Any]] = []
    notes = list(_NOTES)
    for parts, rounds in openings:
        cases = {
            engine: partial(
                open_cold,
                engine,
                seeds.location(engine, parts),
                parts,
                seeds.location(engine, WARM_UP_PARTS),
            )
            for engine in engines
        }
        opened = interleave(f"opening {parts:,} parts", cases, rounds)
        rows += [_row(parts, engine, opened[engine], opened["instar"]) for engine in engines]
        requests = ours.count_requests(seeds.location("instar", parts), Question.about(parts))
        notes.append(f"Opening {parts:,} parts took instar {requests} requests to the blob store.")
    return Section("Opening a table cold, with statistics of two columns", _COLUMNS, rows, notes)


def _row(parts: int, engine: str, opened: list[Opened], base: list[Opened]) -> dict[str, Any]:
    size, calls = _median([one.read_bytes for one in opened]), _median([one.read_calls for one in opened])
    base_size = _median([one.read_bytes for one in base])
    peak, base_peak = _median([one.peak_bytes for one in opened]), _median([one.peak_bytes for one in base])
    return {
        "parts": parts,
        "engine": engine,
        "time_ratio": Ratio.of([one.seconds for one in opened], [one.seconds for one in base]),
        "cpu_ratio": Ratio.of([one.cpu_seconds for one in opened], [one.cpu_seconds for one in base]),
        "bytes_ratio": size / base_size if size and base_size else None,
        "memory_ratio": peak / base_peak if peak and base_peak else None,
        "seconds": median(one.seconds for one in opened),
        "cpu_seconds": median(one.cpu_seconds for one in opened),
        "megabytes": size and size / 1e6,
        "calls": calls,
        "peak": peak and peak / 1e6,
    }


def _median(samples: list[int | None]) -> float | None:
    known = [sample for sample in samples if sample is not None]
    return median(known) if known else None
