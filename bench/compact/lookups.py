"""Looking up and upserting keys: what it takes as parts grow, beside delta-rs."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

import instar
from bench.compact.tables import fill
from bench.measure import Ratio, seconds, steps, warmed
from bench.report import Column, Report, Section

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from instar import Table

__all__ = ["lookups"]

_ROWS: Final = 100
"""In each part."""
_KEYS: Final = 100
_UPSERTS: Final = 5
"""How many are timed together: a single one waits for the disk now and then."""


def _part(part: int) -> pa.Table:
    ids = np.arange(part * _ROWS, (part + 1) * _ROWS)
    return pa.table({"id": ids, "v": [f"v{it}" for it in ids]})


def lookups(sizes: tuple[int, int], rounds: int, folder: Path, report: Report) -> Section:
    """Look up 100 keys one by one, and upsert 100 keys at once, in few parts and in many."""
    random = np.random.default_rng(3)
    cases: dict[tuple[str, int], Callable[[], float]] = {}
    with instar.open(folder / "lookups") as store:
        for parts in steps(sizes, "filling"):
            table = store.create_table(f"t{parts}", "id bigint, v string", order_by=["id"], key=["id"])
            fill(table, parts, _part)
            cases["lookup", parts] = partial(_look_up, table, parts, random)
            cases["upsert", parts] = partial(_upsert, table, parts, random)
        cases |= _merges(sizes, folder, random, report)
        took = warmed("looking up", cases, rounds)
    found = [
        {
            "case": what,
            "ratio": Ratio.of(took[what, sizes[1]], took[what, sizes[0]]),
            **{f"ms_{at}": median(took[what, parts]) * 1000 for at, parts in enumerate(sizes)},
        }
        for what in dict.fromkeys(what for what, _ in cases)
    ]
    columns = {
        "case": Column("what"),
        "ratio": Column(f"{sizes[1]:,} parts, times {sizes[0]:,}"),
        "ms_0": Column(f"ms at {sizes[0]:,} parts", ",.1f"),
        "ms_1": Column(f"ms at {sizes[1]:,} parts", ",.1f"),
    }
    notes = [
        f"A lookup is of one key, the mean of {_KEYS}. Upserts and merges are of {_KEYS} keys at once.",
        f"An upsert is the mean of {_UPSERTS}.",
    ]
    return Section(f"Keys among parts of {_ROWS} rows that do not overlap", columns, found, notes)


def _keys(parts: int, random: np.random.Generator) -> np.ndarray:
    return random.choice(parts * _ROWS, min(_KEYS, parts * _ROWS), replace=False)


def _look_up(table: Table, parts: int, random: np.random.Generator) -> float:
    keys = _keys(parts, random).tolist()

    def look() -> None:
        for key in keys:
            if table.lookup(key).num_rows != 1:
                raise AssertionError(f"key {key} was not found")

    return seconds(look) / len(keys)


def _upsert(table: Table, parts: int, random: np.random.Generator) -> float:
    chosen = [_keys(parts, random) for _ in range(_UPSERTS)]
    data = [pa.table({"id": keys, "v": ["new"] * len(keys)}) for keys in chosen]
    return seconds(lambda: [table.upsert(some) for some in data]) / len(data)


def _merges(
    sizes: tuple[int, int], folder: Path, random: np.random.Generator, report: Report
) -> dict[tuple[str, int], Callable[[], float]]:
    try:
        from deltalake import DeltaTable, write_deltalake  # noqa: PLC0415 -- peers may be absent
    except ImportError as error:
        report.skipped.append(f"delta-rs: {error}")
        return {}

    def merge(where: str, parts: int) -> float:
        keys = _keys(parts, random)
        data = pa.table({"id": keys, "v": ["new"] * len(keys), "part": keys // _ROWS})
        merger = DeltaTable(where).merge(data, "t.id = s.id", source_alias="s", target_alias="t")
        return seconds(merger.when_matched_update_all().when_not_matched_insert_all().execute)

    for parts in sizes:
        ids = np.arange(parts * _ROWS)
        data = pa.table({"id": ids, "v": [f"v{it}" for it in ids], "part": ids // _ROWS})
        # One file for each part: as a partition, for delta-rs makes files of a size otherwise.
        write_deltalake(f"{folder}/merge{parts}", data, partition_by=["part"])
    return {("delta-rs merge", parts): partial(merge, f"{folder}/merge{parts}", parts) for parts in sizes}
