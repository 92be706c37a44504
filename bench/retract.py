"""Retractions: what deletes and upserts cost, and how much later reads notice of them."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import instar
from bench.frames import session
from bench.measure import Ratio, machine, seconds, timing, warmed
from bench.report import Column, Report, Section

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from instar import Store, Table

__all__ = ["DEFAULT", "FULL", "QUICK", "Plan", "run"]

DDL = "id bigint, price double, quantity int, note string, at timestamp_ntz, flag string"
_EVERYTHING = [f"max({name})" for name in ("id", "price", "quantity", "note", "at", "flag")]
_EVERY = {"0.1 %": 1000, "10 %": 10}
"""By the share of rows that are retracted in every part, one in how many that is."""


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    rows: int
    parts: int
    rounds: int
    upserted: int
    """How many rows there are in the table that keys are upserted into."""


DEFAULT = Plan(rows=4_000_000, parts=16, rounds=10, upserted=10_000_000)
FULL = Plan(rows=10_000_000, parts=24, rounds=7, upserted=10_000_000)
QUICK = Plan(rows=40_000, parts=4, rounds=1, upserted=40_000)


def run(plan: Plan, command: str, directory: Path | None) -> Report:
    """Measure everything, by turns."""
    spark = session()
    report = Report(command, machine())
    with tempfile.TemporaryDirectory(dir=directory) as folder, instar.open(f"{folder}/lake") as store:
        before = _fill(store, "before", plan)
        report.sections.append(_reads(plan, spark, store, before))
        report.sections.append(_positions(plan, spark, before))
        report.sections.append(_deletes(plan, spark, store))
        report.sections.append(_by_value(plan, spark, store, before))
        many = replace(plan, rows=plan.upserted)
        report.sections.append(_upserts(many, store, Path(folder), report))
    return report


def _rows(plan: Plan, part: int) -> pa.Table:
    """Return the rows of one part, with values that do not compress away."""
    count = plan.rows // plan.parts
    random = np.random.default_rng(part)
    ids = np.arange(part * count, (part + 1) * count)
    return pa.table(
        {
            "id": ids,
            "price": random.random(count) * 1000,
            "quantity": random.integers(0, 50, count, dtype=np.int32),
            "note": pa.array(random.integers(0, 1 << 40, count)).cast(pa.string()),
            "at": pa.array(ids * 1_000_000).cast(pa.timestamp("us")),
            "flag": pa.array(np.array(["A", "N", "R"])[random.integers(0, 3, count)]),
        }
    )


def _fill(store: Store, name: str, plan: Plan) -> Table:
    table = store.create_table(name, DDL, order_by=["id"], key=["id"])
    for part in range(plan.parts):
        table.append(_rows(plan, part))
    return table


def _queries(table: Table, spark: SparkSession, rows: int) -> dict[str, Callable[[], object]]:
    """Return the queries that are asked of a table before and after."""
    near = f"id between {rows // 2} and {rows // 2 + 1000} and quantity < 25"
    return {
        "all columns, Spark": lambda: table.read(spark).selectExpr(*_EVERYTHING).collect(),
        "one column, Spark": lambda: table.read(spark).selectExpr("count(*)", "sum(price)").collect(),
        "selective, Spark": lambda: table.read(spark).where(near).selectExpr("sum(price)").collect(),
        "all columns, in process": lambda: table.snapshot().to_arrow(),
        "two columns, in process": lambda: table.snapshot().to_arrow(columns=["id", "price"]),
        "selective, in process": lambda: table.snapshot().to_arrow(near, columns=["price"]),
    }


def _reads(plan: Plan, spark: SparkSession, store: Store, before: Table) -> Section:
    """Ask the same of a table that nothing was deleted from, and of others in which every part has gaps."""
    tables = {"before": before}
    for share, every in _EVERY.items():
        tables[share] = _fill(store, f"after {every}", plan)
        tables[share].delete(f"id % {every} = 0")
    found = []
    for query in _queries(before, spark, plan.rows):
        cases = {name: timing(_queries(table, spark, plan.rows)[query]) for name, table in tables.items()}
        # What takes a tenth of a second is moved by whatever else the machine does: it is asked more often.
        took = warmed(query, cases, plan.rounds * (3 if "in process" in query else 1))
        found += [
            {
                "query": query,
                "share": share,
                "ratio": Ratio.of(took[share], took["before"]),
                "seconds": median(took[share]),
            }
            for share in _EVERY
        ]
    columns = {
        "query": Column("query"),
        "share": Column("rows deleted in every part"),
        "ratio": Column("times before"),
        "seconds": Column("seconds", ".2f"),
    }
    return Section(f"Reading {plan.rows:,} rows less those that were deleted", columns, found)


def _positions(plan: Plan, spark: SparkSession, before: Table) -> Section:
    """Have Spark alone leave the same rows out of one column of plain files, by the positions it tells."""
    files = spark.read.parquet(*before.read(spark).inputFiles())
    price = files.columns[1]

    def ask(frame: DataFrame) -> Callable[[], float]:
        return timing(lambda: frame.selectExpr("count(*)", f"sum({price})").collect())

    cases = {"before": ask(files)}
    for share, every in _EVERY.items():
        cases[share] = ask(files.where(f"_metadata.row_index % {every} <> 0"))
    took = warmed("positions", cases, plan.rounds)
    found = [
        {"share": share, "ratio": Ratio.of(took[share], took["before"]), "seconds": median(took[share])}
        for share in _EVERY
    ]
    columns = {
        "share": Column("rows left out of every file"),
        "ratio": Column("times all rows"),
        "seconds": Column("seconds", ".2f"),
    }
    return Section(
        "One column of plain Parquet on Spark, less the same rows by _metadata.row_index", columns, found
    )


def _deletes(plan: Plan, spark: SparkSession, store: Store) -> Section:
    """Delete one in a thousand rows, others each time, beside counting them."""
    table = _fill(store, "deletes", plan)
    turns = iter(range(1000))

    def condition() -> str:
        return f"id % 1000 = {next(turns)}"

    cases: Mapping[str, Callable[[], float]] = {
        "count, in process": lambda: seconds(lambda: table.count(condition())),
        "delete, in process": lambda: seconds(lambda: table.delete(condition())),
        "count, Spark": lambda: seconds(lambda: table.read(spark).where(condition()).count()),
        "delete, Spark": lambda: seconds(lambda: table.delete(condition(), spark)),
    }
    took = warmed("deleting", cases, plan.rounds)
    found = [
        {
            "case": where,
            "ratio": Ratio.of(took[f"delete, {where}"], took[f"count, {where}"]),
            "seconds": median(took[f"delete, {where}"]),
        }
        for where in ("in process", "Spark")
    ]
    columns = {
        "case": Column("where"),
        "ratio": Column("times count(*) with the same condition"),
        "seconds": Column("seconds", ".2f"),
    }
    return Section(f"Deleting one in a thousand of {plan.rows:,} rows", columns, found)


def _by_value(plan: Plan, spark: SparkSession, store: Store, before: Table) -> Section:
    """Retract a thousand rows by value, and read after it: at first, and when it is known which rows went."""
    table = _fill(store, "by value", plan)
    gone = table.snapshot().to_arrow().slice(0, 1000)
    wrote = seconds(lambda: table.apply(gone.append_column("_diff", pa.array([-1] * gone.num_rows))))
    found: list[dict[str, object]] = [{"case": "apply", "ratio": "", "seconds": wrote}]
    for query in ("all columns, Spark", "two columns, in process"):
        for when in ("first read of a process", "later reads"):
            cases = {
                name: partial(_read, store, each, spark, plan, query, anew=when.startswith("first"))
                for name, each in {"before": before, "after": table}.items()
            }
            took = warmed(query, cases, plan.rounds)
            ratio = Ratio.of(took["after"], took["before"])
            found.append({"case": f"{query}, {when}", "ratio": ratio, "seconds": median(took["after"])})
    columns = {
        "case": Column("what"),
        "ratio": Column("times before"),
        "seconds": Column("seconds", ".2f"),
    }
    return Section("Retracting 1,000 rows by value, and reading after it", columns, found)


def _read(store: Store, table: Table, spark: SparkSession, plan: Plan, query: str, *, anew: bool) -> float:
    """Ask a query once, perhaps in a store that was just opened and has found out nothing yet."""
    if not anew:
        return seconds(_queries(table, spark, plan.rows)[query])
    with instar.open(store.location) as fresh:
        return seconds(_queries(fresh.table(table.name), spark, plan.rows)[query])


def _upserts(plan: Plan, store: Store, folder: Path, report: Report) -> Section:
    """Replace a thousand rows in process, beside delta-rs, and read two columns after it."""
    table = _fill(store, "upserts", plan)
    random = np.random.default_rng(0)

    def data() -> pa.Table:
        keys = random.choice(plan.rows, 1000, replace=False)
        return pa.table({"id": keys, "price": random.random(1000), "note": ["new"] * 1000})

    wanted = ["id", "price"]
    cases: dict[str, Callable[[], object]] = {"instar": lambda: table.upsert(data())}
    first = table.upper - 1
    reads: dict[str, Callable[[], object]] = {
        "instar before": lambda: table.snapshot(first).to_arrow(columns=wanted),
        "instar": lambda: table.snapshot().to_arrow(columns=wanted),
    }
    try:
        from deltalake import DeltaTable, write_deltalake  # noqa: PLC0415 -- peers may be absent
    except ImportError as error:
        report.skipped.append(f"delta-rs: {error}")
    else:
        where = f"{folder}/delta"
        for part in range(plan.parts):
            write_deltalake(where, _rows(plan, part), mode="append")
        version = DeltaTable(where).version()

        def merge() -> object:
            merger = DeltaTable(where).merge(data(), "t.id = s.id", source_alias="s", target_alias="t")
            return (
                merger.when_matched_update({"price": "s.price", "note": "s.note"})
                .when_not_matched_insert({"id": "s.id", "price": "s.price", "note": "s.note"})
                .execute()
            )

        cases["delta-rs"] = merge
        reads["delta-rs before"] = lambda: DeltaTable(where, version).to_pyarrow_table(columns=wanted)
        reads["delta-rs"] = lambda: DeltaTable(where).to_pyarrow_table(columns=wanted)
    wrote = warmed("upserting", {name: timing(do) for name, do in cases.items()}, plan.rounds)
    read = warmed("reading", {name: timing(do) for name, do in reads.items()}, plan.rounds)
    found = [
        {
            "case": name,
            "ratio": Ratio.of(wrote[name], wrote["instar"]),
            "seconds": median(wrote[name]),
            "read": Ratio.of(read[name], read[f"{name} before"]),
            "other": Ratio.of(read[name], read["instar"]),
        }
        for name in cases
    ]
    columns = {
        "case": Column("engine"),
        "ratio": Column("times instar"),
        "seconds": Column("seconds", ".2f"),
        "read": Column("reading after it, times before it"),
        "other": Column("times instar"),
    }
    title = f"Upserting 1,000 keys into {plan.rows:,} rows, in process, {plan.rounds + 1} times, and reading"
    return Section(title, columns, found)
