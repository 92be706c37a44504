"""The throughput of compaction: beside Spark, beside delta-rs, and with many schemas beside one."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import instar
from bench.compact.tables import DDL, fill, fresh, rows_of
from bench.measure import Ratio, seconds, warmed
from bench.report import Column, Report, Section
from instar.table import load_parts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from instar import Table

__all__ = ["schemas", "throughput"]

_SCHEMAS = 20


def _compacting(template: Path, where: Path, spark: SparkSession | None = None) -> float:
    """Compact a copy of a store, and return how long that took."""
    with instar.open(fresh(template, where)) as store:
        table = store.table("t")
        took = seconds(lambda: table.compact(spark, full=True))
        if table.plan_compaction(full=True):
            raise AssertionError("the table was not compacted")
    return took


def throughput(
    rows: int, parts: int, rounds: int, spark: SparkSession, folder: Path, report: Report
) -> Section:
    """Compact parts that all overlap: read, sort and write every row once."""
    template = folder / "template"
    files: list[str] = []
    for name, layout in (("sorted", {"order_by": ["id"]}), ("clustered", {"cluster_by": ["id", "price"]})):
        with instar.open(template / name) as store:
            table = store.create_table("t", DDL, **layout)  # type: ignore[arg-type]
            fill(table, parts, lambda part: rows_of(rows, parts, part))
            files = files or _files(table)
    out = str(folder / "spark")

    def with_spark() -> None:
        frame = spark.read.parquet(*files).orderBy("f1")
        frame.write.mode("overwrite").option("compression", "zstd").parquet(out)

    cases: dict[str, Callable[[], float]] = {
        "Spark: read, sort, write": lambda: seconds(with_spark),
        "instar on Spark": lambda: _compacting(template / "sorted", folder / "one", spark),
        "instar in process": lambda: _compacting(template / "sorted", folder / "two"),
        "instar in process, cluster_by": lambda: _compacting(template / "clustered", folder / "three"),
    }
    cases |= _delta(rows, parts, folder, report)
    took = warmed("compacting", cases, rounds)
    base = took["Spark: read, sort, write"]
    size = _size(template / "sorted")
    found = [
        {
            "case": name,
            "ratio": Ratio.of(spent, base),
            "seconds": median(spent),
            "rate": size / median(spent) / 2**20,
        }
        for name, spent in took.items()
    ]
    columns = {
        "case": Column("who"),
        "ratio": Column("times Spark"),
        "seconds": Column("seconds", ".2f"),
        "rate": Column("MiB/s", ".0f"),
    }
    notes = ["delta-rs compact puts files together and does not sort rows; z_order does."]
    return Section(f"Compacting {rows:,} rows in {parts} parts that overlap", columns, found, notes)


def _files(table: Table) -> list[str]:
    state, services = table.state, table._services  # noqa: SLF001 -- Spark shall read the very same files
    return [services.blob.location(key) for key in load_parts(services.chunks, state).keys]


def _size(lake: Path) -> int:
    with instar.open(lake) as store:
        return store.table("t").state.totals.bytes


def _delta(rows: int, parts: int, folder: Path, report: Report) -> dict[str, Callable[[], float]]:
    try:
        from deltalake import DeltaTable, write_deltalake  # noqa: PLC0415 -- peers may be absent
    except ImportError as error:
        report.skipped.append(f"delta-rs: {error}")
        return {}
    template = folder / "delta"
    for part in range(parts):
        write_deltalake(str(template), rows_of(rows, parts, part), mode="append")

    def compact() -> float:
        table = DeltaTable(str(fresh(template, folder / "delta-compact")))
        return seconds(table.optimize.compact)

    def z_order() -> float:
        table = DeltaTable(str(fresh(template, folder / "delta-z")))
        return seconds(lambda: table.optimize.z_order(["id", "price"]))

    return {"delta-rs compact": compact, "delta-rs z_order": z_order}


def schemas(rows: int, parts: int, rounds: int, folder: Path) -> Section:
    """Compact parts of many schemas beside parts of one: the same rows, with a column added each time."""
    templates = {}
    for count in (1, _SCHEMAS):
        templates[count] = folder / f"schemas-{count}"
        with instar.open(templates[count]) as store:
            table = store.create_table("t", DDL, order_by=["id"])
            # Both end with the same columns; one of them got them before there were rows.
            for number in range(_SCHEMAS):
                if count > 1:
                    _add(table, rows, parts, number)
                table.evolve().add_column(f"extra{number}", "int").commit()
            if count == 1:
                for number in range(_SCHEMAS):
                    _add(table, rows, parts, number)
    took = warmed(
        "schemas",
        {
            count: (lambda path=path: _compacting(path, folder / "copy"))  # type: ignore[misc]
            for count, path in templates.items()
        },
        rounds,
    )
    found = [
        {"schemas": count, "ratio": Ratio.of(took[count], took[1]), "seconds": median(took[count])}
        for count in templates
    ]
    columns = {
        "schemas": Column("schemas", "d"),
        "ratio": Column("times one schema"),
        "seconds": Column("seconds", ".2f"),
    }
    return Section(f"Compacting {rows:,} rows under many schemas", columns, found)


def _add(table: Table, rows: int, parts: int, number: int) -> None:
    """Append the share of rows that belongs to one of the schemas."""
    for part in range(number, parts, _SCHEMAS):
        table.append(rows_of(rows, parts, part))
