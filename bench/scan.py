"""Scans: a table on Spark beside plain Parquet, many schemas beside one, planning, and the peers."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from unittest.mock import patch

import pyarrow as pa

import instar
from bench.engines import Place
from bench.engines.ours import connect
from bench.frames import DDL, ROW_BYTES, drain, events, plan_tasks, session, two_columns
from bench.measure import Ratio, machine, say, timing, warmed
from bench.report import Column, Report, Section
from instar.parts import conform
from instar.table import TableLog, begin_write
from instar.table.write.store import store_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from instar import Table
    from instar.table.write.store import StoredPart, StoringPlan

    _Read = Callable[[list[str] | None], object]

__all__ = ["DEFAULT", "FULL", "QUICK", "Plan", "run", "small_parts"]


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    megabytes: int
    evolved_megabytes: int
    arrow_megabytes: int
    schemas: int
    parts: int
    planning_rounds: int
    rounds: int


DEFAULT = Plan(
    megabytes=1000,
    evolved_megabytes=200,
    arrow_megabytes=100,
    schemas=50,
    parts=10_000,
    planning_rounds=2,
    rounds=5,
)
FULL = Plan(
    megabytes=2000,
    evolved_megabytes=500,
    arrow_megabytes=200,
    schemas=50,
    parts=10_000,
    planning_rounds=5,
    rounds=9,
)
QUICK = Plan(
    megabytes=2, evolved_megabytes=1, arrow_megabytes=1, schemas=5, parts=20, planning_rounds=1, rounds=1
)

_COLUMNS = {
    "case": Column("case"),
    "ratio": Column("times plain Parquet"),
    "seconds": Column("seconds", ".2f"),
    "base": Column("plain, seconds", ".2f"),
}


def run(plan: Plan, command: str, directory: Path | None) -> Report:
    """Measure everything, by turns."""
    spark = session()
    report = Report(command, machine())
    with tempfile.TemporaryDirectory(dir=directory) as folder, instar.open(f"{folder}/lake") as store:
        say("writing about a gigabyte of events")
        table = store.create_table("events", DDL)
        table.append(events(spark, plan.megabytes * 1_000_000 // ROW_BYTES))
        report.sections.append(_scans(plan, spark, table))
        report.sections.append(_evolution(plan, spark, store))
        report.sections.append(_planning(plan, spark, f"{folder}/small"))
        report.sections.append(_peers(plan, spark, Path(folder), report))
    return report


def _scans(plan: Plan, spark: SparkSession, table: Table) -> Section:
    paths = table.read(spark).inputFiles()
    ways: Mapping[str, tuple[Callable[[DataFrame], None], int]] = {
        "all columns": (drain, plan.rounds),
        "two columns": (two_columns, 3 * plan.rounds),  # they take less time, and vary more
    }
    rows = []
    for name, (read, rounds) in ways.items():
        took = warmed(
            f"scanning {name}",
            {
                "ours": timing(_scan, read, table, spark),
                "plain": timing(_scan_plain, read, table, spark, paths),
            },
            rounds,
        )
        rows.append(_row(name, took["ours"], took["plain"]))
    size = f"{table.state.totals.bytes / 1e9:.2f} GB in {table.state.totals.parts} parts"
    return Section(f"Scanning a table beside spark.read.parquet of its files, {size}", _COLUMNS, rows)


def _scan(read: Callable[[DataFrame], None], table: Table, spark: SparkSession) -> None:
    read(table.read(spark))


def _scan_plain(
    read: Callable[[DataFrame], None], table: Table, spark: SparkSession, paths: list[str]
) -> None:
    read(_plain(spark, paths, table))


def _scan_columns(table: Table, columns: tuple[str, ...], spark: SparkSession) -> None:
    drain(table.snapshot(columns=list(columns)).to_spark(spark))


def _plain(spark: SparkSession, paths: list[str], table: Table) -> DataFrame:
    """Read the same files by their physical names, with the names that people use put on top."""
    frame = spark.read.parquet(*paths)
    return frame.selectExpr(*(f"f{field.id} as `{field.name}`" for field in table.schema.fields))


def _evolution(plan: Plan, spark: SparkSession, store: instar.Store) -> Section:
    say(f"writing parts of {plan.schemas} schemas")
    each = plan.evolved_megabytes * 1_000_000 // ROW_BYTES // plan.schemas
    one, many = store.create_table("one", DDL), store.create_table("many", DDL)
    for step in range(plan.schemas):
        if step > 0:
            many.evolve().add_column(f"added{step}", "string").commit()
        rows = events(spark, each, step * each, tasks=1).toArrow()
        for table in (one, many):
            table.append(rows)
    took = warmed(
        "scanning many schemas",
        {
            name: timing(_scan_columns, table, one.schema.names, spark)
            for name, table in {"many": many, "one": one}.items()
        },
        plan.rounds,
    )
    row = {
        "case": f"{len(many.schemas)} schemas",
        "ratio": Ratio.of(took["many"], took["one"]),
        "seconds": median(took["many"]),
        "base": median(took["one"]),
    }
    columns = {**_COLUMNS, "ratio": Column("times one schema"), "base": Column("one schema, seconds", ".2f")}
    size = f"{many.state.totals.bytes / 1e9:.2f} GB in {many.state.totals.parts} parts"
    return Section(f"Scanning parts of many schemas beside parts of one, {size}", columns, [row])


def _planning(plan: Plan, spark: SparkSession, location: str) -> Section:
    say(f"writing {plan.parts} small parts")
    table = small_parts(location, plan.parts)
    paths = table.read(spark).inputFiles()
    (directory,) = {path.rpartition("/")[0] for path in paths}
    took = warmed(
        "planning",
        {
            "ours": timing(lambda: plan_tasks(table.read(spark).where("id >= 0"))),
            "paths": timing(lambda: plan_tasks(spark.read.parquet(*paths).where("f1 >= 0"))),
            "directory": timing(lambda: plan_tasks(spark.read.parquet(directory).where("f1 >= 0"))),
        },
        plan.planning_rounds,
    )
    rows = [
        _row(f"{len(paths):,} parts beside {name}", took["ours"], took[base])
        for name, base in {
            "all their paths": "paths",
            "the one directory that they are in": "directory",
        }.items()
    ]
    return Section("Opening and planning a query, beside spark.read.parquet", _COLUMNS, rows)


def small_parts(location: str, parts: int) -> Table:
    """Make a table with one row in each part, as fast as its files can be made: they need not last."""
    store = instar.open(location)
    table = store.create_table("small", "id bigint, name string")
    services = connect(Place(location))
    log = TableLog(services, "small")

    def put(plan: StoringPlan) -> Iterator[StoredPart]:
        for number in range(parts):
            row = pa.RecordBatch.from_pydict({"id": [number], "name": ["x"]})
            yield from store_parts(plan, conform(row, plan.schema), str(number))

    with patch("os.fsync"), begin_write(services, log) as write:
        write.commit(put(write.plan(table.schema)), 0)
    services.close()
    return table


def _peers(plan: Plan, spark: SparkSession, folder: Path, report: Report) -> Section:
    """Read the same rows in process: instar, delta-rs and pyiceberg."""
    rows = events(spark, plan.arrow_megabytes * 1_000_000 // ROW_BYTES).toArrow()
    ours = instar.open(f"{folder}/arrow").create_table("events", DDL)
    ours.append(rows)
    readers: dict[str, _Read] = {"instar": lambda columns: ours.snapshot(columns=columns).to_arrow()}
    try:
        readers |= _peer_tables(rows, folder)
    except ImportError as error:
        report.skipped.append(f"peers' scans: {error}")
    found = []
    for name, wanted in {"all columns": None, "two columns": ["amount", "flags"]}.items():
        took = warmed(
            f"scanning {name} in process",
            {engine: timing(read, wanted) for engine, read in readers.items()},
            plan.rounds,
        )
        found += [
            {
                "case": name,
                "engine": engine,
                "ratio": Ratio.of(times, took["instar"]),
                "seconds": median(times),
            }
            for engine, times in took.items()
        ]
    columns = {
        "case": Column("case"),
        "engine": Column("engine"),
        "ratio": Column("times instar"),
        "seconds": Column("seconds", ".2f"),
    }
    return Section(f"Reading {rows.num_rows:,} rows into Arrow, in process", columns, found)


def _peer_tables(rows: pa.Table, folder: Path) -> dict[str, _Read]:
    from deltalake import DeltaTable, write_deltalake  # noqa: PLC0415 -- peers may be absent
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415

    write_deltalake(f"{folder}/delta", rows)
    warehouse = Path(folder) / "iceberg"
    warehouse.mkdir()
    catalog = SqlCatalog("bench", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=f"file://{warehouse}")
    catalog.create_namespace("bench")
    catalog.create_table("bench.events", rows.schema).append(rows)

    def iceberg(columns: list[str] | None) -> object:
        scan = catalog.load_table("bench.events").scan()
        return (scan if columns is None else scan.select(*columns)).to_arrow()

    return {
        "delta-rs": lambda columns: DeltaTable(f"{folder}/delta").to_pyarrow_table(columns=columns),
        "pyiceberg": iceberg,
    }


def _row(name: str, ours: list[float], plain: list[float]) -> dict[str, object]:
    return {"case": name, "ratio": Ratio.of(ours, plain), "seconds": median(ours), "base": median(plain)}
