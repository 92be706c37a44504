"""Streams: the evolver over many tables, writes beside it, a range read as one frame, and protobuf."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from bench import protobuf
from bench.counting import CountingBlob
from bench.frames import session
from bench.measure import Ratio, machine, say, seconds, warmed
from bench.report import Column, Report, Section
from instar.api.stream import Stream
from instar.errors import InstarError
from instar.schema import as_schema
from instar.storage import BlobConsensus, open_blob
from instar.stream import StreamHandle
from instar.stream.evolver import StreamEvolver
from instar.stream.judging import EveryChange
from instar.table import Services

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection

    from pyspark.sql import SparkSession

    from instar.storage import AppendResult, Consensus
    from instar.storage.blob import Data

__all__ = ["DEFAULT", "FULL", "QUICK", "Plan", "run"]

_DAY = 86_400_000_000
_FIRST = 631_152_000_000_000  # 1990, so that ten thousand days have passed
_AT_ONCE = 20
"""So many writes are one turn."""
_SCHEMAS = ("id bigint, at timestamp, n int", "id bigint, at timestamp, n bigint")


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    tables: tuple[int, ...]
    days: int
    rows: int
    rounds: int
    protobuf: protobuf.Plan


DEFAULT = Plan(tables=(1000, 10_000), days=365, rows=4_000_000, rounds=5, protobuf=protobuf.DEFAULT)
FULL = Plan(tables=(1000, 10_000), days=365, rows=20_000_000, rounds=5, protobuf=protobuf.FULL)
QUICK = Plan(tables=(10, 40), days=20, rows=20_000, rounds=1, protobuf=protobuf.QUICK)


class _Watched:
    """A consensus that counts the appends that others were faster than."""

    def __init__(self, consensus: Consensus) -> None:
        self._consensus = consensus
        self.refused = 0

    def append(self, key: str, expected_seqno: int | None, data: Data) -> AppendResult:
        """Append, and count if that was refused."""
        answer = self._consensus.append(key, expected_seqno, data)
        self.refused += not answer
        return answer

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- whatever the consensus has of that name
        return getattr(self._consensus, name)


class _Place:
    """A stream of daily tables, with as many handles as a benchmark wants, and a count of all requests."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.blob = CountingBlob(open_blob(folder))
        self.logs = _Watched(BlobConsensus(self.blob))
        StreamHandle(self.services(), "s").create(
            as_schema(_SCHEMAS[0]), version="v0.0.1", time="at", kinds={"regular": "1d"}
        )

    def services(self) -> Services:
        """Open the store anew."""
        self.logs = _Watched(BlobConsensus(self.blob))
        return Services(self.blob, self.logs)

    def stream(self) -> Stream:
        """Open the stream anew."""
        return Stream(StreamHandle(self.services(), "s"))

    def evolver(self) -> StreamEvolver:
        """Return an evolver that notices every change, and never rests."""
        return StreamEvolver(StreamHandle(self.services(), "s"), EveryChange(), share=1)


def _evolve(folder: str, told: Connection) -> None:
    """Run an evolver in a process of its own; tell when it begins, and how many tables it brought forward."""
    blob = open_blob(folder)
    evolver = StreamEvolver(StreamHandle(Services(blob, BlobConsensus(blob)), "s"), EveryChange())
    evolver.load()
    told.send(None)
    told.send(evolver.run()[0].stamped)


def run(plan: Plan, command: str, directory: Path | None) -> Report:
    """Measure everything."""
    report = Report(command, machine())
    # Whoever still holds a lease may renew it while the folder is being removed.
    with tempfile.TemporaryDirectory(dir=directory, ignore_cleanup_errors=True) as folder:
        places = [_filled(Path(folder), tables) for tables in plan.tables]
        report.sections.append(_planning(plan, places))
        report.sections.append(_evolving(plan, places))
        report.sections.append(_writing(plan, places[-1]))
        report.sections.append(_reading(plan, session(), Path(folder)))
    report.sections += protobuf.run(plan.protobuf, command, directory).sections
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


def _planning(plan: Plan, places: Sequence[_Place]) -> Section:
    found: list[dict[str, float]] = []
    for tables, place in zip(plan.tables, places, strict=True):
        fresh = place.stream()
        costs = []
        for _ in range(2):
            before = place.blob.requests
            took = seconds(fresh.snapshot)
            costs.append((took, (place.blob.requests - before) / tables))
        (cold, asked), (warm, asked_again) = costs
        found.append(
            {
                "tables": tables,
                "ratio": cold / tables / (found[0]["each"] if found else cold / tables),
                "requests": asked,
                "again": asked_again,
                "warm": warm / cold,
                "cold": cold,
                "each": cold / tables,
            }
        )
    return Section(
        "Planning a range of tables as one: their states, and the parts of all",
        {
            "tables": Column("tables", ","),
            "ratio": Column("time per table, against the fewest", ".2f"),
            "requests": Column("requests per table, cold", ".1f"),
            "again": Column("again", ".1f"),
            "warm": Column("time again, against cold", ".2f"),
            "cold": Column("cold s", ".2f"),
        },
        found,
    )


def _evolving(plan: Plan, places: Sequence[_Place]) -> Section:
    found: list[dict[str, float]] = []
    for tables, place in zip(plan.tables, places, strict=True):
        say(f"evolving {tables:,} tables")
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


class _Writes(NamedTuple):
    """What became of some writes: how long each took, how often others were faster, and how many failed."""

    times: list[float]
    refused: int
    failed: int


def _write_some(stream: Stream, logs: _Watched) -> _Writes:
    """Write to one day, as fast as it goes."""
    one = _rows(1, 100)
    times: list[float] = []
    failed, refused = 0, logs.refused
    for _ in range(_AT_ONCE):
        began = time.perf_counter()
        try:
            stream.write(one, version="v0.0.1")
        except InstarError:
            failed += 1
        else:
            times.append(time.perf_counter() - began)
    return _Writes(times, logs.refused - refused, failed)


def _writing(plan: Plan, place: _Place) -> Section:
    """Measure writes by turns: while an evolver brings all tables forward, and while it is stopped."""
    took: dict[str, list[_Writes]] = {"alone": [], "beside the evolver": []}
    stream = place.stream()
    logs = place.logs
    _write_some(stream, logs)
    stamped = 0
    for number in range(3, 3 + max(1, plan.rounds // 2)):
        columns = "".join(f", c{each} string" for each in range(number))
        place.stream().evolve(f"{_SCHEMAS[1]}{columns}", version=f"v0.0.{number}")
        spawn = get_context("spawn")
        told, telling = spawn.Pipe(duplex=False)
        evolver = spawn.Process(target=_evolve, args=(place.folder, telling))
        evolver.start()
        told.recv()
        while evolver.is_alive():
            took["beside the evolver"].append(_write_some(stream, logs))
            if evolver.pid is not None and evolver.is_alive():
                os.kill(evolver.pid, signal.SIGSTOP)
                took["alone"].append(_write_some(stream, logs))
                os.kill(evolver.pid, signal.SIGCONT)
        evolver.join()
        stamped += told.recv()
    took["alone"] = took["alone"] or [_write_some(stream, logs)]
    flat = {name: [each for answer in answers for each in answer.times] for name, answers in took.items()}
    tail = {name: float(np.quantile(times, 0.99)) for name, times in flat.items()}
    found = [
        {
            "case": name,
            "ratio": Ratio.of(flat[name], flat["alone"]),
            "tail": tail[name] / tail["alone"],
            "writes": len(flat[name]),
            "refused": sum(answer.refused for answer in answers),
            "failed": sum(answer.failed for answer in answers),
            "ms": median(flat[name]) * 1000,
        }
        for name, answers in took.items()
    ]
    return Section(
        f"Writes to one table at full speed, while an evolver brings {max(plan.tables):,} tables forward",
        {
            "case": Column("case"),
            "ratio": Column("latency, against alone"),
            "tail": Column("of the slowest 1 %", ".2f"),
            "writes": Column("writes", ","),
            "refused": Column("begun again", ","),
            "failed": Column("failed", ","),
            "ms": Column("ms", ".1f"),
        },
        found,
        [
            f"The evolver, in another process, stamped {stamped:,} tables; it was stopped by turns.",
            "A write is begun again if the evolver has stamped its very table a moment before.",
        ],
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
