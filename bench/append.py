"""Appends: a frame into a table beside plain Parquet, memory as the input grows, and the peers."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import instar
from bench.frames import DDL, ROW_BYTES, events, session
from bench.measure import Ratio, machine, seconds, timing, warmed
from bench.report import Column, Report, Section

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from instar import Store

__all__ = ["DEFAULT", "FULL", "QUICK", "Plan", "run"]


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    megabytes: int
    rounds: int


DEFAULT = Plan(megabytes=240, rounds=5)
FULL = Plan(megabytes=1000, rounds=7)
QUICK = Plan(megabytes=2, rounds=1)


def run(plan: Plan, command: str, directory: Path | None) -> Report:
    """Measure everything, by turns."""
    spark = session()
    report = Report(command, machine())
    rows = plan.megabytes * 1_000_000 // ROW_BYTES
    with tempfile.TemporaryDirectory(dir=directory) as folder, instar.open(f"{folder}/lake") as store:
        report.sections.append(_appends(plan, spark, store, Path(folder), rows))
        report.sections.append(_memory(spark, store, rows // 2))
        report.sections.append(_peers(plan, spark, store, Path(folder), rows // 4, report))
    return report


def _appends(plan: Plan, spark: SparkSession, store: Store, folder: Path, rows: int) -> Section:
    frame = events(spark, rows).cache()
    frame.count()
    unsorted, in_order = (
        store.create_table("unsorted", DDL),
        store.create_table("sorted", DDL, order_by=["at"]),
    )
    target = f"{folder}/plain"

    def plain() -> float:
        took = seconds(lambda: frame.write.option("compression", "zstd").parquet(target))
        shutil.rmtree(target)
        return took

    took = warmed(
        "appending",
        {
            "plain": plain,
            "no order": lambda: seconds(lambda: unsorted.append(frame)),
            "order by at": lambda: seconds(lambda: in_order.append(frame)),
        },
        plan.rounds,
    )
    frame.unpersist()
    found = [
        {"case": name, "ratio": Ratio.of(times, took["plain"]), "seconds": median(times)}
        for name, times in took.items()
    ]
    columns = {
        "case": Column("table"),
        "ratio": Column("times df.write.parquet"),
        "seconds": Column("seconds", ".2f"),
    }
    return Section(f"Appending {rows:,} cached rows beside writing them as Parquet", columns, found)


def _memory(spark: SparkSession, store: Store, rows: int) -> Section:
    """Give one task more and more to store, and see how much memory its Python worker ever had."""
    found = []
    for name, order_by in {"no order": [], "order by at": ["at"]}.items():
        table = store.create_table(name.replace(" ", "_"), DDL, order_by=order_by)
        peaks: dict[int, int] = {}
        for factor in (1, 4):
            _forget_peaks()
            table.append(events(spark, rows * factor, tasks=1))
            peaks[factor] = _peak_of_workers()
        found += [
            {
                "case": name,
                "input": f"{factor * rows:,}",
                "ratio": peak / peaks[1],
                "mib": peak / 1024,
            }
            for factor, peak in peaks.items()
        ]
    columns = {
        "case": Column("table"),
        "input": Column("rows of a task"),
        "ratio": Column("times the first peak", ".2f"),
        "mib": Column("peak MiB of a worker", ".0f"),
    }
    return Section("Memory of an executor's worker as the input of a task grows", columns, found)


def _forget_peaks() -> None:
    """Let workers that have been used before begin anew."""
    for process in _workers():
        with suppress(OSError):
            (process / "clear_refs").write_text("5")  # proc(5): resets VmHWM


def _peak_of_workers() -> int:
    """Return the greatest resident size, in KiB, that a Python worker of Spark has had."""
    peaks = [0]
    for process in _workers():
        with suppress(OSError, KeyError):  # it may just have ended
            lines = (line.split(":", 1) for line in (process / "status").read_text().splitlines())
            peaks.append(int(dict(line for line in lines if len(line) > 1)["VmHWM"].split()[0]))
    return max(peaks)


def _workers() -> Iterator[Path]:
    """Yield the processes of this program's Python workers, and of what started them."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if b"pyspark.daemon" in (process / "cmdline").read_bytes() and _is_ours(process):
                yield process


def _is_ours(process: Path) -> bool:
    """Whether a process descends from this one."""
    number = int(process.name)
    while number > 1:
        if number == os.getpid():
            return True
        number = int(Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1])
    return False


def _peers(plan: Plan, spark: SparkSession, store: Store, folder: Path, rows: int, report: Report) -> Section:
    """Append the same Arrow table in process: instar, delta-rs and pyiceberg."""
    data = events(spark, rows).toArrow()
    table = store.create_table("arrow", DDL)
    writers: dict[str, Callable[[], object]] = {"instar": lambda: table.append(data)}
    try:
        from deltalake import write_deltalake  # noqa: PLC0415 -- peers may be absent
        from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415
    except ImportError as error:
        report.skipped.append(f"peers' appends: {error}")
    else:
        warehouse = folder / "iceberg"
        warehouse.mkdir()
        catalog = SqlCatalog(
            "bench", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=f"file://{warehouse}"
        )
        catalog.create_namespace("bench")
        theirs = catalog.create_table("bench.events", data.schema)
        writers["delta-rs"] = lambda: write_deltalake(f"{folder}/delta", data, mode="append")
        writers["pyiceberg"] = lambda: theirs.append(data)
    took = warmed(
        "appending in process",
        {name: timing(write) for name, write in writers.items()},
        plan.rounds,
    )
    found = [
        {"case": name, "ratio": Ratio.of(times, took["instar"]), "seconds": median(times)}
        for name, times in took.items()
    ]
    columns = {
        "case": Column("engine"),
        "ratio": Column("times instar"),
        "seconds": Column("seconds", ".2f"),
    }
    return Section(f"Appending {rows:,} rows of Arrow, in process", columns, found)
