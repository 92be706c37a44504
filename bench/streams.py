"""Streams: the evolver over many tables, writes beside it, and a range of tables read as one frame."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from bench.counting import CountingBlob
from bench.frames import session
from bench.measure import Ratio, interleave, machine, say, seconds, warmed
from bench.report import Column, Report, Section
from instar.api.stream import Stream
from instar.schema import as_schema
from instar.storage import BlobConsensus, open_blob
from instar.stream import StreamHandle
from instar.stream.evolver import StreamEvolver
from instar.stream.judging import EveryChange
from instar.table import Services

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DEFAULT", "FULL", "QUICK", "Plan", "run"]

_DAY = 86_400_000_000
_FIRST = 631_152_000_000_000  # 1990, so that ten thousand days have passed
_SCHEMAS = ("id bigint, at timestamp, n int", "id bigint, at timestamp, n bigint")


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    tables: tuple[int, ...]
    days: int
    rows: int
    rounds: int


DEFAULT = Plan(tables=(100, 1000), days=365, rows=4_000_000, rounds=5)
FULL = Plan(tables=(1000, 10_000), days=365, rows=20_000_000, rounds=7)
QUICK = Plan(tables=(10, 40), days=20, rows=20_000, rounds=1)


class _Place:
    """A stream of daily tables, with as many handles as a benchmark wants, and a count of all requests."""

    def __init__(self, folder: str) -> None:
        self.blob = CountingBlob(open_blob(folder))
        StreamHandle(self.services(), "s").create(
            as_schema(_SCHEMAS[0]), version="v0.0.1", time="at", kinds={"regular": "1d"}
        )

    def services(self) -> Services:
        """Open the store anew."""
        return Services(self.blob, BlobConsensus(self.blob))

    def stream(self) -> Stream:
        """Open the stream anew."""
        return Stream(StreamHandle(self.services(), "s"))

    def evolver(self) -> StreamEvolver:
        """Return an evolver to which every change is noticed."""
        return StreamEvolver(StreamHandle(self.services(), "s"), EveryChange())


def _evolve(folder: str) -> None:
    """Run an evolver in a process of its own."""
    blob = open_blob(folder)
    handle = StreamHandle(Services(blob, BlobConsensus(blob)), "s")
    StreamEvolver(handle, EveryChange()).run()


def run(plan: Plan, command: str, directory: Path | None) -> Report:
    """Measure everything."""
    report = Report(command, machine())
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        report.sections.append(_evolving(plan, Path(folder)))
        report.sections.append(_writing(plan, Path(folder)))
        report.sections.append(_planning(plan, Path(folder)))
        report.sections.append(_reading(plan, session(), Path(folder)))
    return report


def _rows(days: int, rows: int) -> pa.Table:
    at = _FIRST + np.arange(rows) % days * _DAY + np.arange(rows) // days * 1000
    return pa.table(
        {
            "id": np.arange(rows),
            "at": pa.array(at).cast(pa.timestamp("us", "UTC")),
            "n": pa.array(np.arange(rows) % 1000, pa.int32()),
        }
    )


def _filled(folder: Path, tables: int) -> _Place:
    say(f"making {tables:,} tables")
    place = _Place(f"{folder}/{tables}")
    stream = place.stream()
    for first in range(0, tables, 1000):
        some = min(1000, tables - first)
        rows = _rows(some, some * 2)
        shifted = pa.array(rows["at"].cast(pa.int64()).to_numpy() + first * _DAY)
        stream.write(rows.set_column(1, "at", shifted.cast(pa.timestamp("us", "UTC"))), version="v0.0.1")
    return place


def _evolving(plan: Plan, folder: Path) -> Section:
    found: list[dict[str, float]] = []
    for tables in plan.tables:
        place = _filled(folder, tables)
        place.stream().evolve(_SCHEMAS[1], version="v0.0.2")
        before = place.blob.requests
        evolver = place.evolver()
        took = seconds(evolver.run)
        requests = place.blob.requests - before
        before = place.blob.requests
        evolver.run()
        converged = place.blob.requests - before
        found.append(
            {
                "tables": tables,
                "ratio": took / tables / (found[0]["each"] if found else took / tables),
                "requests": requests / tables,
                "converged": converged,
                "rate": tables / took,
                "each": took / tables,
            }
        )
    return Section(
        "The evolver brings all tables of a stream to a new version",
        {
            "tables": Column("tables", ","),
            "ratio": Column("time per table, against the fewest", ".2f"),
            "requests": Column("requests per table", ".1f"),
            "converged": Column("requests once converged", ","),
            "rate": Column("tables/s", ",.0f"),
        },
        found,
        ["A stream that has converged costs the same however many tables it has."],
    )


def _writing(plan: Plan, folder: Path) -> Section:
    """Measure writes to a new day by turns: while an evolver is at work, and while none is."""
    place = _Place(f"{folder}/writing")
    stream = place.stream()
    tables = max(plan.tables) // 2
    stream.write(_rows(tables, tables), version="v0.0.1")
    one = _rows(1, 100)
    stream.write(one, version="v0.0.1")
    version = 2
    failures = 0

    def write() -> list[float]:
        nonlocal failures
        times = []
        for _ in range(10):
            began = time.perf_counter()
            stream.write(one, version="v0.0.1")
            times.append(time.perf_counter() - began)
        return times

    def beside() -> list[float]:
        nonlocal version
        columns = "".join(f", c{each} string" for each in range(version))
        stream.evolve(f"{_SCHEMAS[1]}{columns}", version=f"v0.0.{version}")
        version += 1
        evolver = get_context("spawn").Process(target=_evolve, args=(f"{folder}/writing",))
        evolver.start()
        times: list[float] = []
        while evolver.is_alive():
            times += write()
        evolver.join()
        return times or write()

    took = interleave("writing", {"alone": write, "beside the evolver": beside}, max(2, plan.rounds))
    flat = {name: [each for answer in answers for each in answer] for name, answers in took.items()}
    found = [
        {
            "case": name,
            "ratio": Ratio.of(times, flat["alone"]),
            "writes": len(times),
            "failed": failures,
            "ms": median(times) * 1000,
        }
        for name, times in flat.items()
    ]
    return Section(
        f"Writes to one table while an evolver runs over {tables:,} others",
        {
            "case": Column("case"),
            "ratio": Column("latency, against alone"),
            "writes": Column("writes", ","),
            "failed": Column("failed", ","),
            "ms": Column("ms", ".1f"),
        },
        found,
        ["The evolver is a process of its own; on few cores it also takes processor time from the writer."],
    )


def _planning(plan: Plan, folder: Path) -> Section:
    found: list[dict[str, float]] = []
    for tables in plan.tables:
        place = _Place(f"{folder}/planning{tables}")
        stream = place.stream()
        for first in range(0, tables, 1000):
            some = min(1000, tables - first)
            at = pa.array(_FIRST + (first + np.arange(some)) * _DAY).cast(pa.timestamp("us", "UTC"))
            stream.write(pa.table({"id": np.arange(some), "at": at}), version="v0.0.1")
        fresh = place.stream()
        before = place.blob.requests
        cold = seconds(fresh.snapshot)
        requests = place.blob.requests - before
        warm = seconds(fresh.snapshot)
        found.append(
            {
                "tables": tables,
                "ratio": cold / tables / (found[0]["each"] if found else cold / tables),
                "requests": requests / tables,
                "cold": cold,
                "warm": warm,
                "each": cold / tables,
            }
        )
    return Section(
        "Planning a range of tables as one: their states, and the parts of all",
        {
            "tables": Column("tables", ","),
            "ratio": Column("time per table, against the fewest", ".2f"),
            "requests": Column("requests per table, cold", ".1f"),
            "cold": Column("cold s", ".2f"),
            "warm": Column("warm s", ".2f"),
        },
        found,
    )


def _reading(plan: Plan, spark: SparkSession, folder: Path) -> Section:
    place = _Place(f"{folder}/reading")
    stream = place.stream()
    stream.write(_rows(plan.days, plan.rows), version="v0.0.1")
    plain = f"{folder}/reading-plain"
    whole = stream.read(spark)
    whole.repartition(plan.days, "at").write.mode("overwrite").option("compression", "zstd").parquet(plain)
    aggregate = ("count(id)", "sum(n)", "max(at)")
    took = warmed(
        "reading",
        {
            "plain": lambda: seconds(lambda: spark.read.parquet(plain).selectExpr(*aggregate).collect()),
            "one frame": lambda: seconds(lambda: stream.read(spark).selectExpr(*aggregate).collect()),
        },
        plan.rounds,
    )
    found = [
        {"case": name, "ratio": Ratio.of(times, took["plain"]), "seconds": median(times)}
        for name, times in took.items()
    ]
    return Section(
        f"Reading {plan.days} tables as one frame, beside one spark.read.parquet of as many files",
        {"case": Column("case"), "ratio": Column("time, against plain"), "seconds": Column("s", ".2f")},
        found,
        ["Both begin with finding the files: instar loads the states of its tables, Spark lists."],
    )
