"""The 22 queries of TPC-H: every one by turns over instar tables and over plain Parquet, answers compared."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import instar
from bench.frames import session
from bench.measure import Ratio, interleave, machine, say, seconds, steps, warmed
from bench.report import Column, Report, Section
from bench.tpch.rows import find_generator, generate, make_up
from bench.tpch.tables import store_tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from bench.tpch.tables import Tables

__all__ = [
    "DEFAULT",
    "FULL",
    "QUICK",
    "Plan",
    "make_rows",
    "mean_ratio",
    "measure_queries",
    "queries",
    "reading_ways",
    "run",
]


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    scale: float
    rounds: int
    ways: tuple[str, ...] = ("snapshot", "view")
    """How tables are read: through snapshots, and through views that follow them."""
    may_make_up: bool = False
    """Whether made-up rows do where the generator is not installed."""


DEFAULT = Plan(scale=1, rounds=5)
FULL = Plan(scale=3, rounds=7)
QUICK = Plan(scale=0.001, rounds=1, ways=("snapshot",), may_make_up=True)

_FRACTION: Final = 0.0001
"""What the eleventh query asks of a value, at scale factor 1; it gets smaller as the tables grow."""
_JOINS: Final = ("BroadcastHashJoin", "BroadcastNestedLoopJoin")


def run(plan: Plan, command: str, directory: Path | None) -> Report:
    """Make the tables, and measure every query."""
    report = Report(command, machine())
    with tempfile.TemporaryDirectory(dir=directory) as folder, instar.open(f"{folder}/lake") as store:
        rows = make_rows(plan.scale, Path(folder), report, may_make_up=plan.may_make_up)
        spark = session()
        tables = store_tables(spark, store, Path(folder), rows)
        ways = reading_ways(plan.ways, spark, store, tables)
        size = f"scale factor {plan.scale:g}, {tables.size} in {tables.files} parts of 4 schemas"
        report.sections += measure_queries("TPC-H", size, queries(plan.scale), ways, plan.rounds)
    return report


def queries(scale: float) -> dict[str, str]:
    """Return the queries, as they are asked at a scale factor."""
    texts = sorted(Path(__file__).with_name("queries").glob("*.sql"))
    fraction = f"{_FRACTION / scale:.12f}"
    return {path.stem: path.read_text().replace("{fraction}", fraction) for path in texts}


def make_rows(scale: float, folder: Path, report: Report, *, may_make_up: bool) -> Mapping[str, pa.Table]:
    """Make the rows of all tables; if they may be made up, a few of them where there is no generator."""
    generator = find_generator()
    if generator is not None:
        say(f"making TPC-H at scale factor {scale:g}")
        return generate(generator, scale, folder)
    if not may_make_up:
        raise SystemExit("tpchgen-cli makes the rows, and is not installed here: run ./dev bench tpch")
    report.skipped.append("the rows of TPC-H, for which tpchgen-cli is not installed here: rows are made up")
    return make_up()


def reading_ways(
    wanted: Sequence[str], spark: SparkSession, store: instar.Store, tables: Tables
) -> dict[str, SparkSession]:
    """Return a session for each way to read, and one for plain files, where tables have their names."""
    ways = {name: spark.newSession() for name in (*wanted, "plain")}
    for name, table in tables.tables.items():
        if "snapshot" in ways:
            table.read(ways["snapshot"]).createOrReplaceTempView(name)
        ways["plain"].read.parquet(str(tables.plain[name])).createOrReplaceTempView(name)
    if "view" in ways:
        instar.register(ways["view"], store)
    return ways


def measure_queries(
    title: str, size: str, texts: Mapping[str, str], ways: Mapping[str, SparkSession], rounds: int
) -> list[Section]:
    """Run every query by turns in all sessions, compare answers, and tell of each way beside plain files."""
    rows: dict[str, list[dict[str, Any]]] = {way: [] for way in ways if way != "plain"}
    for name, query in steps(texts.items(), f"querying {title}", len(texts)):
        measured = {way: _Measured(spark, query) for way, spark in ways.items()}
        measure = warmed if rounds > 1 else interleave
        took = measure(name, {way: own.run for way, own in measured.items()}, rounds)
        plain = measured["plain"]
        for way, found in rows.items():
            own = measured[way]
            assert own.answer == plain.answer, f"{name}: another answer than from plain Parquet"
            found.append(
                {
                    "query": name,
                    "ratio": Ratio.of(took[way], took["plain"]),
                    "seconds": median(took[way]),
                    "base": median(took["plain"]),
                    "planning": median(own.planning) * 1000,
                    "plain_planning": median(plain.planning) * 1000,
                    "broadcasts": f"{own.broadcasts} of {plain.broadcasts}",
                    "rows": len(own.answer),
                }
            )
    told = {"snapshot": "read through snapshots", "view": "read through views that follow the tables"}
    return [_section(f"{title} {told[way]}, {size}", found) for way, found in rows.items()]


def mean_ratio(section: Section) -> float:
    """Return the geometric mean of all queries of a section beside plain Parquet."""
    ratios = [row["ratio"].median for row in section.rows]
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


class _Measured:
    """A query in one session, what it answered, and how it was planned."""

    def __init__(self, spark: SparkSession, query: str) -> None:
        self._spark = spark
        self._query = query
        self.answer: list[str] = []
        self.planning: list[float] = []
        self.broadcasts = 0

    def run(self) -> float:
        """Run the query once, and return how long that took with its planning."""
        return seconds(self._run)

    def _run(self) -> None:
        frame = self._spark.sql(self._query)
        execution = _execution(frame)
        self.planning.append(seconds(execution.executedPlan))
        self.answer = sorted(map(repr, frame.collect()))
        final = execution.executedPlan().toString().partition("Initial Plan")[0]
        self.broadcasts = sum(final.count(f"{join} ") for join in _JOINS)


def _execution(frame: DataFrame) -> Any:  # noqa: ANN401 -- a Java object
    return frame._jdf.queryExecution()  # noqa: SLF001 -- nothing public tells how a query is planned


def _section(title: str, rows: Sequence[Mapping[str, Any]]) -> Section:
    columns = {
        "query": Column("query"),
        "ratio": Column("times plain Parquet"),
        "seconds": Column("seconds", ".2f"),
        "base": Column("plain, seconds", ".2f"),
        "planning": Column("planning, ms", ".0f"),
        "plain_planning": Column("plain, ms", ".0f"),
        "broadcasts": Column("broadcast joins, of plain's"),
        "rows": Column("rows", ",d"),
    }
    section = Section(title, columns, rows)
    worst = max(rows, key=lambda row: row["ratio"].median)
    slowest = f"the slowest beside plain is {worst['query']} at {worst['ratio'].median:.2f}"
    note = f"geometric mean {mean_ratio(section):.3f}; {slowest}"
    return replace(section, notes=[note, "all answers are the same"])
