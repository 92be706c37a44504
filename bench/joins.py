"""Joins, aggregations and scans that Spark plans over tables, beside plain Parquet and scans over files."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

import instar
from bench.engines import ours
from bench.frames import plan_tasks, session
from bench.measure import Ratio, machine, say, timing, warmed
from bench.report import Column, Report, Section
from bench.scan import small_parts
from bench.star import QUERIES, store_star
from bench.tpch.run import make_rows, mean_ratio, measure_queries, queries, reading_ways
from bench.tpch.tables import store_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from instar import Table

__all__ = ["DEFAULT", "FULL", "QUICK", "Plan", "run"]

_SETTING: Final = "instar.planner"
_WAYS: Final = ("auto", "files")


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    parts: int
    rows: int
    """In each part."""
    planned: tuple[int, ...]
    """Numbers of parts to plan scans of."""
    counted: tuple[int, ...]
    """Numbers of parts to count the rows of."""
    scale: float
    """Of TPC-H."""
    star: tuple[int, int]
    """Parts of the star schema's sales, and the rows of each."""
    rounds: int
    may_make_up: bool = False
    """Whether made-up rows of TPC-H do where the generator is not installed."""


DEFAULT = Plan(
    parts=1000,
    rows=20_000,
    planned=(1, 100, 1000, 10_000),
    counted=(1000, 1_000_000),
    scale=1,
    star=(200, 25_000),
    rounds=5,
)
FULL = replace(DEFAULT, rows=100_000, star=(400, 50_000), rounds=9)
QUICK = Plan(
    parts=10,
    rows=100,
    planned=(1, 10),
    counted=(10,),
    scale=0.001,
    star=(4, 500),
    rounds=1,
    may_make_up=True,
)

_COLUMNS = {
    "case": Column("case"),
    "ratio": Column("times the other"),
    "seconds": Column("seconds", ".3f"),
    "base": Column("other, seconds", ".3f"),
}


def run(plan: Plan, command: str, directory: Path | None) -> Report:
    """Measure everything, by turns."""
    spark = session()
    report = Report(command, machine())
    with tempfile.TemporaryDirectory(dir=directory) as folder, instar.open(f"{folder}/lake") as store:
        report.sections.append(measure_joins(plan, spark, store))
        report.sections.append(measure_planning(plan, spark, folder))
        report.sections.append(measure_counts(plan, spark, folder))
        report.sections += measure_schemas(plan, spark, store, Path(folder), report)
    return report


def measure_joins(plan: Plan, spark: SparkSession, store: instar.Store) -> Section:
    """Join a fact table with a dimension that is filtered to a fiftieth of its keys."""
    say(f"writing {plan.parts} parts")
    facts = store.create_table("facts", "k bigint, d date, x double, y double")
    whole = spark.range(plan.parts * plan.rows, numPartitions=plan.parts)
    day = f"date_add('2020-01-01', int(id div {plan.rows}))"
    facts.append(whole.selectExpr("id k", f"{day} d", "rand(1) x", "rand(2) y"))
    keys = store.create_table("keys", "key bigint, day date, name string")
    few = spark.range(0, plan.parts * plan.rows, max(1, plan.rows // 100))
    # The name is the same for one part in fifty, which lie together.
    name = f"concat('n', id div {max(1, plan.parts * plan.rows // 50)}) name"
    keys.append(few.selectExpr("id key", f"{day} day", name))
    frames = {way: _read(spark, facts, way) for way in _WAYS}
    paths = frames["auto"].inputFiles()
    columns = [f"f{field.id} as {field.name}" for field in facts.schema.fields]
    frames["plain"] = spark.read.parquet(*paths).selectExpr(*columns)
    dimension = _read(spark, keys, "auto")
    rows = []
    for case, threshold in (("broadcast", "10485760"), ("sort-merge", "-1")):
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
        took = warmed(
            f"joins, {case}",
            {way: timing(_star, frame, dimension) for way, frame in frames.items()},
            plan.rounds,
        )
        rows += [
            _row(f"star join, {case}, beside {'plain Parquet' if other == 'plain' else 'files'}", took, other)
            for other in ("plain", "files")
        ]
    spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    return Section(f"A dimension filtered to a fiftieth of its keys, {plan.parts:,} parts", _COLUMNS, rows)


def _star(facts: DataFrame, keys: DataFrame) -> None:
    facts.join(keys.where("name = 'n7'"), facts.k == keys.key).selectExpr("sum(x)", "sum(y)").collect()


def measure_planning(plan: Plan, spark: SparkSession, folder: str) -> Section:
    """Plan scans of many small parts, as far as their tasks."""
    rows = []
    for parts in plan.planned:
        say(f"writing {parts:,} small parts")
        table = small_parts(f"{folder}/small{parts}", parts)
        frames = {way: _read(spark, table, way) for way in _WAYS}
        paths = frames["auto"].inputFiles()
        frames["plain"] = spark.read.parquet(*paths).selectExpr("f1 AS id", "f2 AS name")
        cases = {way: timing(_plan, frame) for way, frame in frames.items()}
        took = warmed(f"planning {parts} parts", cases, 6 * plan.rounds)
        case = f"planning a scan of {parts:,} parts, beside"
        rows.append(_row(f"{case} plain Parquet", took, "plain"))
        rows.append(_row(f"{case} files", took, "files"))
    return Section("Planning a scan with a filter that needs every part", _COLUMNS, rows)


def _plan(frame: DataFrame) -> int:
    return plan_tasks(frame.where("hash(id) % 7 = 3"))


def measure_counts(plan: Plan, spark: SparkSession, folder: str) -> Section:
    """Count, and find the least and the greatest, of tables that only say that they have parts."""
    rows = []
    for parts in plan.counted:
        say(f"making {parts:,} parts up")
        ours.seed(f"{folder}/made{parts}", parts)
        with instar.open(f"{folder}/made{parts}") as store:
            table = store.table(ours.TABLE)
            frame = _read(spark, table, "auto")
            cases = {
                "count, min and max on Spark": timing(_count, frame),
                "count with a filter on Spark": timing(_count, frame.where("c00 >= 0")),
                "count in process": timing(table.count),
            }
            took = warmed(f"counting {parts} parts", cases, plan.rounds)
            rows += [
                {"case": f"{case}, {parts:,} parts", "ratio": None, "seconds": median(own), "base": None}
                for case, own in took.items()
            ]
    return Section("Answers from the metadata of parts that nobody has written", _COLUMNS, rows)


def _count(frame: DataFrame) -> None:
    frame.selectExpr("count(*)", "min(c00)", "max(c11)").collect()


def measure_schemas(
    plan: Plan, spark: SparkSession, store: instar.Store, folder: Path, report: Report
) -> list[Section]:
    """Run TPC-H, and queries over a star schema, by turns over tables and over plain files."""
    spark.conf.set(_SETTING, "auto")
    star = store_star(spark, store, folder, *plan.star)
    ways = reading_ways(("snapshot",), spark, store, star)
    size = f"{star.size} {plan.star[0]:,} parts of sales"
    sections = measure_queries("A star schema", size, QUERIES, ways, plan.rounds)
    rows = make_rows(plan.scale, folder, report, may_make_up=plan.may_make_up)
    tpch = store_tables(spark, store, folder, rows)
    ways = reading_ways(("snapshot",), spark, store, tpch)
    size = f"scale factor {plan.scale:g}, {tpch.size} in {tpch.files} parts of 4 schemas"
    sections += measure_queries("TPC-H", size, queries(plan.scale), ways, plan.rounds)
    both = [mean_ratio(section) for section in sections]
    mean = math.exp(sum(map(math.log, both)) / len(both))
    notes = [*sections[-1].notes, f"geometric mean of the star schema and of TPC-H together {mean:.3f}"]
    return [*sections[:-1], replace(sections[-1], notes=notes)]


def _read(spark: SparkSession, table: Table, way: str) -> DataFrame:
    spark.conf.set(_SETTING, way)
    return table.read(spark)


def _row(case: str, took: dict[str, list[float]], other: str) -> dict[str, object]:
    own: Sequence[float] = took["auto"]
    return {
        "case": case,
        "ratio": Ratio.of(own, took[other]),
        "seconds": median(own),
        "base": median(took[other]),
    }
