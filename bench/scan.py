"""Scans: a table on Spark beside plain Parquet, many schemas beside one, planning, and the peers."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import instar
from bench.frames import DDL, ROW_BYTES, drain, events, session, two_columns
from bench.measure import Ratio, machine, say, seconds, timing, warmed
from bench.report import Column, Report, Section

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from instar import Table

__all__ = ["DEFAULT", "FULL", "QUICK", "Plan", "run"]


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    megabytes: int
    evolved_megabytes: int
    schemas: int
    parts: int
    rounds: int


DEFAULT = Plan(megabytes=1000, evolved_megabytes=200, schemas=50, parts=10_000, rounds=5)
FULL = Plan(megabytes=2000, evolved_megabytes=500, schemas=50, parts=10_000, rounds=9)
QUICK = Plan(megabytes=2, evolved_megabytes=1, schemas=5, parts=20, rounds=1)

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
        report.sections.append(_planning(plan, spark, store))
        report.sections.append(_peers(plan, table, Path(folder), report))
    return report


def _scans(plan: Plan, spark: SparkSession, table: Table) -> Section:
    paths = table.read(spark).inputFiles()
    ways: Mapping[str, Callable[[DataFrame], None]] = {"all columns": drain, "two columns": two_columns}
    rows = []
    for name, read in ways.items():
        took = warmed(
            f"scanning {name}",
            {
                "ours": timing(_scan, read, table, spark),
                "plain": timing(_scan_plain, read, table, spark, paths),
            },
            plan.rounds,
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
    rows_each = plan.evolved_megabytes * 1_000_000 // ROW_BYTES // plan.schemas
    one, many = store.create_table("one", DDL), store.create_table("many", DDL)
    for step in range(plan.schemas):
        batch = events(spark, rows_each, step * rows_each, tasks=1)
        one.append(batch)
        many.append(batch)
        if step + 1 < plan.schemas:
            many.evolve().add_column(f"added{step}", "string").commit()
            one.append(batch.limit(0))  # as many commits
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
    return Section("Scanning parts of many schemas beside parts of one", columns, [row])


def _planning(plan: Plan, spark: SparkSession, store: instar.Store) -> Section:
    table = store.create_table("small", "id bigint, name string")
    say(f"writing {plan.parts} small parts")
    for start in range(0, plan.parts, 500):
        rows = min(500, plan.parts - start)
        table.append(spark.range(start, start + rows, numPartitions=rows).selectExpr("id", "'x' name"))
    paths = table.read(spark).inputFiles()
    took = warmed(
        "planning",
        {
            "ours": lambda: seconds(lambda: _plan(table.read(spark).where("id >= 0"))),
            "plain": lambda: seconds(lambda: _plan(spark.read.parquet(*paths).where("f1 >= 0"))),
        },
        plan.rounds,
    )
    row = _row(f"{len(paths)} parts", took["ours"], took["plain"])
    return Section(
        "Opening and planning a query, beside spark.read.parquet of the same paths", _COLUMNS, [row]
    )


def _plan(frame: DataFrame) -> int:
    """Plan a query as far as its tasks."""
    return int(frame._jdf.queryExecution().toRdd().getNumPartitions())  # noqa: SLF001 -- nothing public plans only


def _peers(plan: Plan, table: Table, folder: Path, report: Report) -> Section:
    """Read the same rows in process: instar, delta-rs and pyiceberg."""
    rows = table.snapshot().to_arrow().slice(0, max(1, 200_000_000 // ROW_BYTES))
    ours = instar.open(f"{folder}/arrow").create_table("events", DDL)
    ours.append(rows)
    readers: dict[str, Callable[[], object]] = {"instar": lambda: ours.snapshot().to_arrow()}
    try:
        readers |= _peer_tables(rows, folder)
    except ImportError as error:
        report.skipped.append(f"peers' scans: {error}")
    took = warmed(
        "scanning in process",
        {name: timing(read) for name, read in readers.items()},
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
    return Section(f"Reading {rows.num_rows:,} rows into Arrow, in process", columns, found)


def _peer_tables(rows: pa.Table, folder: Path) -> dict[str, Callable[[], object]]:
    from deltalake import DeltaTable, write_deltalake  # noqa: PLC0415 -- peers may be absent
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415

    write_deltalake(f"{folder}/delta", rows)
    warehouse = Path(folder) / "iceberg"
    warehouse.mkdir()
    catalog = SqlCatalog("bench", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=f"file://{warehouse}")
    catalog.create_namespace("bench")
    catalog.create_table("bench.events", rows.schema).append(rows)
    return {
        "delta-rs": lambda: DeltaTable(f"{folder}/delta").to_pyarrow_table(),
        "pyiceberg": lambda: catalog.load_table("bench.events").scan().to_arrow(),
    }


def _row(name: str, ours: list[float], plain: list[float]) -> dict[str, object]:
    return {"case": name, "ratio": Ratio.of(ours, plain), "seconds": median(ours), "base": median(plain)}
