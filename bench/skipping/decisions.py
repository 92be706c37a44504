"""How long does the decision take? Three conditions over up to a million parts, warm and in process."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.engines import Place, ours
from bench.measure import Ratio, seconds, warmed
from bench.report import Column, Section
from bench.workload import NAMES, Question, column_bounds
from instar.api import Table
from instar.table import TableLog
from instar.table.read.filter import Filter
from instar.table.read.pruning import needed_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bench.seeds import Seeds

__all__ = ["TARGET", "measure_decisions"]

TARGET: Final = 1.0
"""Seconds that a decision over the largest table may take."""

_BELOW, _FROM, _LESS = 1_000_000_000, 500_000_000, 120_000_000
_SCATTERED: Final = f"c01 < {_BELOW} AND c02 >= {_FROM} AND c10 < {_LESS}"
_COLUMNS: Final = {
    "conditions": Column("conditions"),
    "engine": Column("engine"),
    "parts": Column("parts", ",d"),
    "growth_ratio": Column("time / at the smallest"),
    "peer_ratio": Column("time / instar"),
    "milliseconds": Column("median ms", ",.1f"),
    "verdict": Column(f"target: linear, < {TARGET:.0f} s"),
    "kept": Column("parts kept", ",d"),
}
_NOTES: Final = (
    "“near”: two conditions on a column that grows with the parts, and one on a scattered column.",
    "“scattered”: three columns whose bounds lie anywhere, so that no manifest chunk can be left out.",
    "Every engine has its table open and has answered once. All keep the same files, counted beforehand.",
    "instar decides with needed_parts; “explain” is Table.explain with lease, snapshot and report.",
    "delta-rs prunes with file_uris, pyiceberg with plan_files, which reads its manifests each time.",
)


def measure_decisions(seeds: Seeds, sizes: Mapping[str, Sequence[int]], rounds: int) -> Section:
    """Ask the tables of all engines, whose sizes are given, by turns."""
    rows: list[dict[str, Any]] = []
    for label, about in {"near": _near, "scattered": _scattered}.items():
        cases: dict[tuple[str, int], Callable[[], float]] = {}
        with ExitStack() as stack:
            for engine, parts in ((engine, parts) for engine, own in sizes.items() for parts in own):
                sql, kept = about(parts)
                for name, ask in _OPEN[engine](seeds.location(engine, parts), stack, sql).items():
                    found = ask()
                    assert found == kept, f"{name} keeps {found:,} of {parts:,} parts and not {kept:,}"
                    cases[name, parts] = partial(seconds, ask)
            took = warmed(f"deciding, {label}", cases, rounds)
        rows += [_row(label, name, parts, took, about(parts)[1]) for name, parts in took]
    return Section("Deciding which parts to read, three conditions", _COLUMNS, rows, _NOTES)


def _row(
    label: str, name: str, parts: int, took: dict[tuple[str, int], list[float]], kept: int
) -> dict[str, Any]:
    samples = took[name, parts]
    smallest = min(size for other, size in took if other == name)
    growth = Ratio.of(samples, took[name, smallest])
    met = growth.median <= parts / smallest and median(samples) < TARGET
    return {
        "conditions": label,
        "engine": name,
        "parts": parts,
        "growth_ratio": growth,
        "peer_ratio": Ratio.of(samples, took["instar", parts]),
        "milliseconds": median(samples) * 1000,
        "verdict": ("met" if met else "missed") if name == "instar" else None,
        "kept": kept,
    }


def _near(parts: int) -> tuple[str, int]:
    question = Question.about(parts)
    return question.sql, question.answer()


def _scattered(parts: int) -> tuple[str, int]:
    """Return conditions that keep about one part in twelve, and how many they keep."""
    bounds = dict(zip(NAMES, column_bounds(range(parts)), strict=True))
    kept = (bounds["c01"][0] < _BELOW) & (bounds["c02"][1] >= _FROM) & (bounds["c10"][0] < _LESS)
    return _SCATTERED, int(np.count_nonzero(kept))


def _open_ours(location: str, stack: ExitStack, sql: str) -> dict[str, Callable[[], int]]:
    services = ours.connect(Place(location))
    stack.callback(services.close)
    log = TableLog(services, ours.TABLE)
    table = Table(services, log)
    state = log.load()
    condition = Filter.parse(sql, state.history.latest, services.clock()).condition
    return {
        "instar": lambda: int(needed_parts(services.chunks, state, condition).read.sum()),
        "instar, explain": lambda: table.explain(sql).read,
    }


def _open_delta(location: str, _: ExitStack, sql: str) -> dict[str, Callable[[], int]]:
    from deltalake import DeltaTable  # noqa: PLC0415 -- peers may be absent

    table = DeltaTable(location)
    return {"delta-rs": lambda: len(table.file_uris(file_pruning_predicate=sql))}


def _open_iceberg(location: str, _: ExitStack, sql: str) -> dict[str, Callable[[], int]]:
    from bench.engines import iceberg  # noqa: PLC0415 -- peers may be absent

    table = iceberg.load(location)
    return {"pyiceberg": lambda: len(list(table.scan(row_filter=sql).plan_files()))}


_OPEN: Final = {"instar": _open_ours, "delta-rs": _open_delta, "pyiceberg": _open_iceberg}
