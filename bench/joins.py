"""Joins and aggregations that Spark plans over tables: beside plain Parquet, and beside scans over files."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

import instar
from bench.engines import ours
from bench.frames import plan_tasks, session
from bench.measure import Ratio, machine, say, timing, warmed
from bench.report import Column, Report, Section

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from instar import Table

__all__ = ["DEFAULT", "FULL", "QUICK", "Plan", "run"]

_SETTING: Final = "instar.planner"
_WAYS: Final = ("auto", "files")
_PRUNING: Final = "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly"


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    parts: int
    rows: int
    """In each part."""
    planned: tuple[int, ...]
    """Numbers of parts to plan scans of, and to count the rows of."""
    rounds: int


DEFAULT = Plan(parts=1000, rows=10_000, planned=(1, 100, 1000, 10_000), rounds=5)
FULL = Plan(parts=1000, rows=100_000, planned=(1, 100, 1000, 10_000, 1_000_000), rounds=9)
QUICK = Plan(parts=10, rows=100, planned=(1, 10), rounds=1)

_COLUMNS = {
    "case": Column("case"),
    "ratio": Column("times the other"),
    "seconds": Column("seconds", ".3f"),
    "base": Column("other, seconds", ".3f"),
}


def run(plan: Plan, command: str, directory: Path | None) -> Report:
    """Measure everything, by turns."""
    spark = session()
    spark.conf.set(_PRUNING, "false")
    report = Report(command, machine())
    with tempfile.TemporaryDirectory(dir=directory) as folder, instar.open(f"{folder}/lake") as store:
        say(f"writing {plan.parts} parts")
        facts = store.create_table("facts", "k bigint, d date, x double, y double")
        whole = spark.range(plan.parts * plan.rows, numPartitions=plan.parts)
        facts.append(
            whole.selectExpr(
                "id k", f"date_add('2020-01-01', int(id div {plan.rows})) d", "rand(1) x", "rand(2) y"
            )
        )
        keys = store.create_table("keys", "key bigint, day date, name string")
        few = spark.range(0, plan.parts * plan.rows, max(1, plan.rows // 100))
        keys.append(
            few.selectExpr("id key", f"date_add('2020-01-01', int(id div {plan.rows})) day", _name(plan))
        )
        report.sections.append(_joins(plan, spark, facts, keys))
        report.sections.append(_metadata(plan, spark, folder))
    return report


def _name(plan: Plan) -> str:
    """Return a column of the dimension that is the same for one part in fifty, which lie together."""
    return f"concat('n', id div {max(1, plan.parts * plan.rows // 50)}) name"


def _joins(plan: Plan, spark: SparkSession, facts: Table, keys: Table) -> Section:
    paths = facts.read(spark).inputFiles()
    columns = [f"f{field.id} as {field.name}" for field in facts.schema.fields]
    frames = {way: _read(spark, facts, way) for way in _WAYS}
    frames["plain"] = spark.read.parquet(*paths).selectExpr(*columns)
    dimension = _read(spark, keys, "files")
    rows = []
    for case, threshold in (("broadcast", "10485760"), ("sort-merge", "-1")):
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
        took = warmed(
            f"joins, {case}",
            {name: timing(_star, frame, dimension) for name, frame in frames.items()},
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


def _metadata(plan: Plan, spark: SparkSession, folder: str) -> Section:
    """Plan scans, and count, of tables that only say that they have parts."""
    rows = []
    for parts in plan.planned:
        say(f"making {parts:,} parts up")
        ours.seed(f"{folder}/made{parts}", parts)
        with instar.open(f"{folder}/made{parts}") as store:
            frames = {way: _read(spark, store.table(ours.TABLE), way) for way in _WAYS}
            planning = {way: timing(_plan, frame) for way, frame in frames.items()}
            took = warmed(f"planning {parts} parts", planning, 3 * plan.rounds)
            rows.append(_row(f"planning a scan of {parts:,} parts, beside files", took, "files"))
            counted = warmed("counting", {"auto": timing(_count, frames["auto"])}, plan.rounds)
            case = f"count, min and max of {parts:,} parts"
            rows.append({"case": case, "ratio": None, "seconds": median(counted["auto"]), "base": None})
    return Section("Planning and metadata, of parts that nobody has written", _COLUMNS, rows)


def _plan(frame: DataFrame) -> int:
    """Plan a query with a filter that every part may be needed for, as far as its tasks."""
    return plan_tasks(frame.where("c00 % 7 = 3"))


def _count(frame: DataFrame) -> None:
    frame.selectExpr("count(*)", "min(c00)", "max(c11)").collect()


def _read(spark: SparkSession, table: Table, way: str) -> DataFrame:
    spark.conf.set(_SETTING, way)
    return table.read(spark)


def _row(case: str, took: dict[str, list[float]], other: str) -> dict[str, object]:
    ours: Sequence[float] = took["auto"]
    return {
        "case": case,
        "ratio": Ratio.of(ours, took[other]),
        "seconds": median(ours),
        "base": median(took[other]),
    }
