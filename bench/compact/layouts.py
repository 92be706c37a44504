"""What compaction changes: queries before and after, rows written again, and the parts that filters open."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final
from unittest.mock import patch

import numpy as np
import pyarrow as pa

import instar
from bench.measure import Ratio, steps, timing, warmed
from bench.report import Column, Section
from instar.parts import PartLimits

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from instar import Table

__all__ = ["amplification", "opened", "queries"]

_EVERY: Final = 50
"""After how many appends a table is compacted by hand."""
_PARTS: Final = 100


def _append(table: Table, number: int) -> None:
    ids = np.arange(number * 10, number * 10 + 10) * 7919 % 100_003
    table.append(pa.table({"id": ids, "v": [f"v{it}" for it in ids]}))


def queries(appends: int, rounds: int, spark: SparkSession, folder: Path) -> Section:
    """Ask the same of many small appends before and after a compaction."""
    with instar.open(folder / "queries") as store:
        tables = {}
        for name in ("before", "after"):
            tables[name] = store.create_table(name, "id bigint, v string", order_by=["id"])
            for number in steps(range(appends), f"filling {name}"):
                _append(tables[name], number)
        tables["after"].compact(full=True)
        asked: dict[str, Callable[[Table], object]] = {
            "full scan, Spark": lambda table: table.read(spark).selectExpr("count(*)", "max(v)").collect(),
            "selective, Spark": lambda table: table.read(spark).where("id between 5 and 500").collect(),
            "full scan, in process": lambda table: table.snapshot().to_arrow(),
            "selective, in process": lambda table: table.snapshot().to_arrow("id between 5 and 500"),
        }
        found = []
        for query, ask in asked.items():
            cases = {name: timing(ask, table) for name, table in tables.items()}
            took = warmed(query, cases, rounds)
            found.append(
                {
                    "query": query,
                    "ratio": Ratio.of(took["before"], took["after"]),
                    "seconds": median(took["after"]),
                }
            )
    columns = {
        "query": Column("query"),
        "ratio": Column("before, times after"),
        "seconds": Column("seconds after", ".3f"),
    }
    return Section(f"Queries before and after compacting {appends:,} small appends", columns, found)


def amplification(appends: int, folder: Path) -> Section:
    """Append little by little, and count how often rows are written again."""
    found = []
    took = {}
    with instar.open(folder / "appends") as store:
        for mode in ("off", "compact() every 50 appends", 'compact="auto"'):
            option = "auto" if "auto" in mode else "off"
            table = store.create_table(option + mode[:3], "id bigint, v string", order_by=["id"])
            table.configure(compact=option)
            rewritten = 0
            spent = []
            for number in steps(range(appends), mode):
                spent.append(timing(_append, table, number)())
                if "()" in mode and number % _EVERY == _EVERY - 1:
                    rewritten += table.compact().rows
            for task in table._services._tasks:  # noqa: SLF001 -- what is counted must have ended
                task.join()
            took[mode] = spent
            if option == "auto":
                rewritten = _rewritten(table)
            found.append(
                {
                    "mode": mode,
                    "written": 1 + rewritten / (appends * 10),
                    "parts": table.state.totals.parts,
                    "ratio": Ratio.of(spent, took["off"]),
                }
            )
    columns = {
        "mode": Column("compaction"),
        "written": Column("times each row is written", ".2f"),
        "parts": Column("parts left", ",d"),
        "ratio": Column("an append, times without"),
    }
    return Section(f"{appends:,} appends of ten rows", columns, found)


def _rewritten(table: Table) -> int:
    """Count the rows that commits of compactions have written."""
    from instar.state import Compacted  # noqa: PLC0415

    rows = 0
    for entry in table._log.entries():  # noqa: SLF001 -- what the background has done is only in the log
        for step in entry.commit.steps:
            if isinstance(step, Compacted) and step.batch is not None:
                rows += step.batch.part_rows
    return rows


def opened(rows: int, folder: Path) -> Section:
    """Count the parts that filters open under an order and along a curve."""
    random = np.random.default_rng(1)
    data = pa.table({"a": random.random(rows), "b": np.exp(random.random(rows) * 20)})
    narrow = {"a": "a between 0.50 and 0.51", "b": "b between 20000 and 25000"}
    narrow["a and b"] = " and ".join(narrow.values())
    layouts = {
        "order_by a, b": {"order_by": ["a", "b"]},
        "order_by b, a": {"order_by": ["b", "a"]},
        "cluster_by a, b": {"cluster_by": ["a", "b"]},
    }
    found = []
    # A hundred parts of any size do: their number is what filters are compared by.
    limits = PartLimits(file_bytes=data.nbytes // _PARTS, buffer_bytes=data.nbytes // _PARTS)
    with (
        instar.open(folder / "opened") as store,
        patch("instar.table.write.append.PartLimits", lambda: limits),
    ):
        for name, layout in layouts.items():
            table = store.create_table(name.replace(" ", "").replace(",", ""), "a double, b double", **layout)  # type: ignore[arg-type]
            for start in range(0, rows, max(1, rows // 4)):
                table.append(data.slice(start, max(1, rows // 4)))
            table.compact(full=True)
            reports = {on: table.explain(where) for on, where in narrow.items()}
            found.append(
                {
                    "layout": name,
                    "parts": next(iter(reports.values())).total,
                    **{f"ratio_{on}": 100 * it.read / it.total for on, it in reports.items()},
                }
            )
    columns = {"layout": Column("layout"), "parts": Column("parts", ",d")} | {
        f"ratio_{on}": Column(f"% opened by a filter on {on}", ".1f") for on in narrow
    }
    return Section("Parts opened by narrow filters on two columns", columns, found)
