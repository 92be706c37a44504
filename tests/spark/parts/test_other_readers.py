"""The files of a table, read by others that know nothing of instar: pyarrow, DuckDB, Polars, plain Spark."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import instar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from instar import Table

COLUMNS = (
    "a boolean, b tinyint, c smallint, d int not null, e bigint, f float, g double, h string, i binary, "
    "j date, k timestamp, l timestamp_ntz, n decimal(5,2), p decimal(38,10), "
    "q struct<r: double, s: struct<t: string not null>>, v array<struct<w: float>>, y map<string, date>"
)
OLD = dt.datetime(1500, 2, 28, 23, 59, 59, 999999)  # noqa: DTZ001 -- local times have no zone
ROWS: list[dict[str, Any]] = [
    {
        "a": True,
        "b": -128,
        "c": 32767,
        "d": -(2**31),
        "e": 2**63 - 1,
        "f": math.nan,
        "g": -0.0,
        "h": "日本\U0010ffff",
        "i": b"\xff\x00",
        "j": dt.date(1, 1, 1),
        "k": OLD.replace(tzinfo=dt.UTC),
        "l": OLD,
        "n": Decimal("-999.99"),
        "p": Decimal("1E-10"),
        "q": {"r": math.inf, "s": None},
        "v": [None, {"w": None}, {"w": 1.5}],
        "y": [("k", dt.date(1582, 10, 4)), ("", None)],
    },
    {"d": 0, "h": "", "i": b"", "q": {"r": None, "s": {"t": ""}}, "v": [], "y": []},
    {"d": 1},
]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Return a table with one part of awkward rows."""
    table = instar.open(tmp_path / "lake").create_table("t", COLUMNS)
    table.append(pa.Table.from_pylist(ROWS, schema=table.snapshot().to_arrow().schema))
    return table


def part_of(table: Table) -> Path:
    """Return the newest file that holds rows."""
    parts = Path(table._services.blob.url.removeprefix("file://")).glob("tables/*/parts/*")
    return max(parts, key=lambda path: path.stat().st_mtime_ns)


def plain(rows: list[dict[str, Any]]) -> list[str]:
    """Return the values of rows without the names, at every level, as text."""
    return sorted(repr(_values(row)) for row in rows)


def _values(value: object) -> object:
    match value:
        case dict():
            return [_values(member) for member in value.values()]
        case list():
            return [_values(item) for item in value]
        case tuple():
            return tuple(_values(item) for item in value)
        case dt.datetime():
            return value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
    return value


def test_pyarrow_reads_a_part(table: Table) -> None:
    """Every value is there, under the physical name of its field, which also has its id."""
    file = pq.ParquetFile(part_of(table))
    found = file.read()
    assert plain(found.to_pylist()) == plain(table.snapshot().to_arrow().to_pylist())
    fields = table.schema.fields
    assert found.column_names == [f"f{field.id}" for field in fields]
    ids = [int(found.schema.field(at).metadata[b"PARQUET:field_id"]) for at in range(len(fields))]
    assert ids == [field.id for field in fields]
    file.read().validate(full=True)


def test_duckdb_reads_a_part(table: Table) -> None:
    """Every value is there, and filters of its own lose no row."""
    with duckdb.connect() as connection:
        found = connection.read_parquet(str(part_of(table)))
        assert plain(found.to_arrow_table().to_pylist()) == plain(table.snapshot().to_arrow().to_pylist())
        for column, value in {"f6": "'NaN'", "f7": "0.0"}.items():
            assert len(found.filter(f"{column} = {value}").fetchall()) == 1, column


def test_polars_reads_a_part(table: Table) -> None:
    """Every value is there; Polars keeps a map as a list of its entries."""
    found = pl.read_parquet(part_of(table)).to_arrow()
    expected = table.snapshot().to_arrow()
    assert plain(found.to_pylist()) == plain(expected.to_pylist())


def test_plain_spark_reads_a_part(spark: SparkSession, table: Table) -> None:
    """Types are found in the file itself, and values are those that the table has."""
    frame = spark.read.parquet(str(part_of(table)))
    through = table.read(spark)
    assert [field.dataType.typeName() for field in frame.schema] == [
        field.dataType.typeName() for field in through.schema
    ]
    assert plain(frame.toArrow().to_pylist()) == plain(table.snapshot().to_arrow().to_pylist())


def test_updates_are_columns_of_their_own(spark: SparkSession, table: Table) -> None:
    """A part with retractions says so: others see times and diffs where they differ, and can add them up."""
    rows = pa.Table.from_pylist(ROWS[1:], schema=table.snapshot().to_arrow().schema)
    commit = table.apply(rows.append_column("_diff", pa.array([-1, 1])))
    part = part_of(table)
    assert pq.read_table(part, columns=["f4", "_diff"]).to_pylist() == [
        {"f4": 0, "_diff": -1},
        {"f4": 1, "_diff": 1},
    ]
    assert {row["_diff"] for row in spark.read.parquet(str(part)).select("_diff").collect()} == {-1, 1}
    assert commit.rows == 2
