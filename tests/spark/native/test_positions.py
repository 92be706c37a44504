"""Positions of rows are those that Spark tells, and readers leave out the rows that are retracted."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from decimal import Decimal
from functools import partial
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

from instar.spark.native import positions
from instar.spark.native.gateway import gateway_of
from instar.spark.native.positions import readers_of
from instar.spark.native.taken import ROW_INDEX
from tests.spark.forgotten import forget_planner

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from instar import Store, Table

pytestmark = pytest.mark.spark

ROWS = 50_000
START_AGAIN = Path(__file__).with_name("start_again.py")


@pytest.mark.parametrize(
    "condition", ["true", "n between 17000 and 17100", "n % 1000 = 7", "n in (3, 29999, 30000)", "m = 5"]
)
def test_positions_are_those_of_the_file(spark: SparkSession, tmp_path: Path, condition: str) -> None:
    """A row has the same position whichever row groups and pages are not read."""
    ids = np.arange(ROWS)
    path = str(tmp_path / "numbers.parquet")
    table = pa.table({"n": ids, "m": ids // 5000})
    pq.write_table(table, path, row_group_size=20_000, data_page_size=4096, write_page_index=True)
    gateway = gateway_of(spark)
    readers = readers_of(gateway)
    assert readers is not None
    plain = spark.read.parquet(path)._jdf.queryExecution().analyzed().relation()
    relation = gateway.relation(
        plain.location(),
        plain.partitionSchema(),
        plain.dataSchema().add(ROW_INDEX, "long"),
        gateway.none(),
        readers.format,
        plain.options(),
        gateway.session,
    )
    frame = DataFrame(gateway.session.baseRelationToDataFrame(relation), spark).where(condition)
    wanted = spark.createDataFrame([(int(n), int(n) // 5000) for n in ids], "n long, m long").where(condition)
    assert [(row.n, row[ROW_INDEX]) for row in frame.select("n", ROW_INDEX).sort("n").collect()] == [
        (row.n, row.n) for row in wanted.sort("n").collect()
    ]


def test_files_are_read_with_counted_positions(spark: SparkSession, store: Store) -> None:
    """Where tables are read over files, positions of retracted rows are counted too."""
    before = spark.conf.get("instar.planner", "auto")
    spark.conf.set("instar.planner", "files")
    try:
        table = store.create_table("numbers", "n bigint")
        table.append(pa.table({"n": np.arange(100)}))
        table.delete("n % 10 = 3")
        frame = table.read(spark).where("n < 50")
        leaf = frame._jdf.queryExecution().optimizedPlan().collectLeaves().apply(0)
        assert leaf.relation().fileFormat().getClass().getSimpleName() == "PositionFormat"
        assert sorted(row.n for row in frame.collect()) == [n for n in range(50) if n % 10 != 3]
    finally:
        spark.conf.set("instar.planner", str(before))


COLUMNS = (
    "n bigint not null, small tinyint, short smallint, i int, f float, x double, yes boolean, d date, "
    "at timestamp, local timestamp_ntz, cents decimal(9, 2), wide decimal(30, 5), text string, raw binary, "
    "inside struct<a: int, deep: struct<b: string, c: array<int>>>, many array<struct<k: int, v: string>>, "
    "named map<string, struct<z: double>>"
)


def values(rows: int) -> pa.Table:
    """Return rows of every type, with nulls among them."""
    ids = range(rows)

    def column(value: Callable[[int], object]) -> list[object]:
        return [None if n % 7 == 5 else value(n) for n in ids]

    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    return pa.table(
        {
            "n": pa.array(ids, pa.int64()),
            "small": pa.array(column(lambda n: n % 100), pa.int8()),
            "short": pa.array(column(lambda n: n % 1000), pa.int16()),
            "i": pa.array(column(lambda n: -n), pa.int32()),
            "f": pa.array(column(lambda n: n / 4), pa.float32()),
            "x": pa.array(column(lambda n: n / 3), pa.float64()),
            "yes": pa.array(column(lambda n: n % 2 == 0)),
            "d": pa.array(column(lambda n: start.date() + dt.timedelta(days=n % 500))),
            "at": pa.array(column(lambda n: start + dt.timedelta(seconds=n)), pa.timestamp("us", "UTC")),
            "local": pa.array(
                column(lambda n: start.replace(tzinfo=None) + dt.timedelta(seconds=n)), pa.timestamp("us")
            ),
            "cents": pa.array(column(lambda n: Decimal(n) / 100), pa.decimal128(9, 2)),
            "wide": pa.array(column(lambda n: Decimal(n) * 10**18 / 100), pa.decimal128(30, 5)),
            "text": pa.array(column(lambda n: f"text {n}")),
            "raw": pa.array(column(lambda n: str(n).encode())),
            "inside": column(lambda n: {"a": n, "deep": {"b": f"b{n}", "c": [n, None, n + 1]}}),
            "many": column(lambda n: [{"k": k, "v": f"v{n}"} for k in range(n % 3)]),
            "named": pa.array(
                column(lambda n: [(f"k{n % 5}", {"z": n / 2})]),
                pa.map_(pa.string(), pa.struct({"z": pa.float64()})),
            ),
        }
    )


@pytest.fixture
def everything(store: Store) -> Table:
    """Return a table of one part with several batches: some whole, some with gaps, and one that is gone."""
    table = store.create_table("everything", COLUMNS, order_by=["n"])
    table.append(values(20_000))
    for where in ("n in (0, 4095, 19999)", "n between 8000 and 13000", "n > 16000 and n % 10 < 3"):
        table.delete(where)
    return table


ROW_BY_ROW = {"spark.sql.codegen.wholeStage": "false"}
"""Has Spark's fast reader hand out rows instead of batches."""


@pytest.mark.parametrize("settings", [{}, ROW_BY_ROW], ids=["batches", "rows"])
@pytest.mark.parametrize("where", ["true", "n between 3990 and 4100", "n > 15900 and i is null", "x < 1"])
def test_every_type_is_read_less_retracted_rows(
    spark: SparkSession, everything: Table, where: str, settings: dict[str, str]
) -> None:
    """Readers leave rows out of every column, at every level of nesting, with batches and without."""
    wanted = everything.snapshot().to_arrow(where)
    assert wanted.num_rows
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        frame = everything.read(spark).where(where)
        assert "BatchScan" in frame._jdf.queryExecution().toString()
        found = [row.asDict(recursive=True) for row in frame.sort("n").collect()]
        members = frame.selectExpr("n", "inside.deep.c[0] c", "named['k1'].z z", "size(many) m")
        some = {row.n: (row.c, row.z, row.m) for row in members.collect()}
    finally:
        for name in settings:
            spark.conf.unset(name)
    expected = wanted.sort_by("n").to_pylist(maps_as_pydicts="strict")
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        one["at"] = one["at"] and one["at"].astimezone(dt.UTC)
        one["raw"] = one["raw"] and bytes(one["raw"])
        assert one == other
    assert some == {
        row["n"]: (row["n"], *_members(row)) if row["many"] is not None else (None,) * 3 for row in expected
    }


def _members(row: dict[str, Any]) -> tuple[object, int]:
    return row["named"].get("k1", {}).get("z"), len(row["many"])


def test_rows_one_by_one(spark: SparkSession, store: Store) -> None:
    """Spark's slow reader leaves out the same rows."""
    table = store.create_table("numbers", "n bigint, s string")
    table.append(pa.table({"n": np.arange(10_000), "s": [f"{n}" for n in range(10_000)]}))
    table.delete("n % 3 = 0")
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
    try:
        frame = table.read(spark).where("n > 5000")
        assert sorted(row.s for row in frame.select("s").repartition(2).collect()) == sorted(
            f"{n}" for n in range(5001, 10_000) if n % 3
        )
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


def test_rows_of_pages_that_are_not_read(
    spark: SparkSession, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Positions are those of the file where Parquet reads only some pages of a row group."""
    writer = partial(pq.ParquetWriter, data_page_size=4096, write_batch_size=256)
    monkeypatch.setattr("instar.parts.write.pq.ParquetWriter", writer)
    table = store.create_table("numbers", "n bigint, m bigint", order_by=["n"])
    ids = np.arange(60_000)
    table.append(pa.table({"n": ids, "m": ids * 7919 % 60_000}))
    table.delete("n % 1000 < 10 or n between 30000 and 36000")
    for low, high in ((995, 1020), (29_990, 36_020), (20_000, 59_000)):
        found = table.read(spark).where(f"n >= {low} and n < {high}").select("m").toArrow()["m"].to_numpy()
        own = ids[low:high]
        left = own[(own % 1000 >= 10) & ~((own >= 30_000) & (own <= 36_000))]
        assert sorted(found) == sorted(left * 7919 % 60_000)


def test_a_reader_that_is_built_in_another_way(
    spark: SparkSession, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a reader cannot be made to count, Spark's own positions are used: the rows are the same."""
    text = files(positions.__package__).joinpath("positions.java").read_text()
    assert text.count('"rowIndexGenerator"') == 1
    other = SimpleNamespace(read_text=lambda: text.replace('"rowIndexGenerator"', '"other"'))
    monkeypatch.setattr(positions, "_known", WeakKeyDictionary())
    monkeypatch.setattr(positions, "files", lambda _: SimpleNamespace(joinpath=lambda _: other))
    forget_planner(monkeypatch)
    table = store.create_table("numbers", "n bigint")
    table.append(pa.table({"n": np.arange(30_000)}))
    table.delete("n % 10 = 3")
    table.delete("n between 5000 and 12000")
    left = [n for n in range(30_000) if n % 10 != 3 and not 5000 <= n <= 12_000]
    assert sorted(row.n for row in table.read(spark).collect()) == left


@pytest.mark.parametrize("how", ["batches", "rows", "files", "driver"])
def test_where_rows_are_is_found(
    spark: SparkSession, store: Store, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Readers tell the part and the position of a row, and tasks put them together; or the driver does."""
    settings = {"rows": ROW_BY_ROW, "files": {"instar.planner": "files"}}.get(how, {})
    if how == "driver":
        monkeypatch.setattr("instar.spark.native.located.readers_of", lambda _: None)
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        table = store.create_table("numbers", "s string, n bigint", order_by=["n"])
        for first in (0, 5000, 10_000):
            ids = np.arange(first, first + 5000)
            table.append(pa.table({"s": [f"{n}" for n in ids], "n": ids}))
        assert table.delete("n % 1000 < 3", spark).rows == 45
        assert table.delete("n % 1000 < 5 and n > 4000", spark).rows == 22
        assert table.delete("n < 0 or n > 20000 or n % 1000 = 1", spark).rows == 0
        assert table.delete("s = '14000' or s like '%77'", spark).rows == 150
        assert table.delete("_metadata.file_size < 0 or n = 14999", spark).rows == 1
    finally:
        for name, former in before.items():
            spark.conf.unset(name) if former is None else spark.conf.set(name, former)
    left = [n for n in range(14_999) if n % 1000 >= (5 if n > 4000 else 3) and n % 100 != 77]
    assert table.snapshot().to_arrow().column("n").to_pylist() == left


def test_spark_that_is_started_again(tmp_path: Path) -> None:
    """Each application of a process gets the classes, and their jar is gone with the process.

    A session that keeps to its own jars does without them.
    """
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", str(START_AGAIN), str(tmp_path / "lake")],
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert told == [[True, 90, 90, 10], [True, 80, 80, 10], [False, 70, 70, 10]], done.stderr[-4000:]
    assert (
        "executors cannot get the classes of readers (spark.sql.artifact.isolation.enabled is set)"
        in done.stderr
    )
    assert not list(temporary.glob("instar-*"))
