"""The answer about queries is true of Spark: Parquet files of both versions, read in one schema."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as Number
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from instar.compat import ColumnsVersion, Level, judge
from instar.compat.columns import read_as
from instar.compat.protobuf import columns
from instar.schema import Schema, arrow_schema, as_schema, format_type, parse_type_ddl
from instar.schema.schema import number_fields
from tests.protos import compile_files, version_of
from tests.unit.compat.matrix import MATRIX, proto_text

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SAMPLES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False, None]),
    "tinyint": (pa.int8(), [-128, 127, None]),
    "smallint": (pa.int16(), [-32768, 32767, None]),
    "int": (pa.int32(), [-(2**31), 2**31 - 1, None]),
    "bigint": (pa.int64(), [-(2**63), 2**63 - 1, None]),
    "float": (pa.float32(), [1.5, -0.25, None]),
    "double": (pa.float64(), [1e300, -0.25, None]),
    "decimal(5,2)": (pa.decimal128(5, 2), [Number("999.99"), Number("-0.01"), None]),
    "decimal(9,2)": (pa.decimal128(9, 2), [Number("9999999.99"), Number("-0.01"), None]),
    "decimal(20,4)": (pa.decimal128(20, 4), [Number("9999999999999999.9999"), Number("-0.0001"), None]),
    "string": (pa.string(), ["é", "", None]),
    "binary": (pa.binary(), [b"\xff", b"", None]),
    "date": (pa.date32(), [dt.date(2026, 11, 15), dt.date(1, 1, 1), None]),
    "timestamp": (pa.timestamp("us", "UTC"), [dt.datetime(2026, 11, 15, tzinfo=dt.UTC), None, None]),
    "timestamp_ntz": (pa.timestamp("us"), [dt.datetime(2026, 11, 15), None, None]),  # noqa: DTZ001 -- it has none
}
PAIRS = [(old, new) for old in SAMPLES for new in SAMPLES if old != new]
SAFE = [it for it in PAIRS if read_as(*(parse_type_ddl(text)[0] for text in it)).level is Level.SAFE]


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_every_type_that_is_said_to_widen_does(spark: SparkSession, tmp_path: Path, vectorized: str) -> None:
    """Old values under each safe change of type are read exactly, by both of Spark's readers."""
    table = pa.table(
        {f"c{at}": pa.array(SAMPLES[old][1], SAMPLES[old][0]) for at, (old, _) in enumerate(SAFE)}
    )
    pq.write_table(table, tmp_path / "old.parquet")
    ddl = ", ".join(f"c{at} {new}" for at, (_, new) in enumerate(SAFE))
    setting = "spark.sql.parquet.enableVectorizedReader"
    before = spark.conf.get(setting) or "true"
    spark.conf.set(setting, vectorized)
    try:
        rows = spark.read.schema(ddl).parquet(str(tmp_path / "old.parquet")).collect()
    finally:
        spark.conf.set(setting, before)
    assert len(SAFE) == 13
    for at, (old, new) in enumerate(SAFE):
        assert [row[at] for row in rows] == SAMPLES[old][1], f"{old} to {new}"


NESTED = [
    ("s struct<a: int, b: string>", "s struct<a: bigint, b: string, c: int>"),
    ("s struct<a: int, b: string>", "s struct<b: string>"),
    ("l array<struct<a: int>>", "l array<struct<a: int, b: string>>"),
    ("m map<string, struct<a: int>>", "m map<string, struct<a: bigint, b: string>>"),
    ("a int, b string", "b string, c double"),
]


@pytest.mark.parametrize(("old", "new"), NESTED)
def test_changes_inside_are_read_as_said(spark: SparkSession, tmp_path: Path, old: str, new: str) -> None:
    """What is added inside reads as null, and what is widened inside keeps its values."""
    answer = judge(ColumnsVersion(as_schema(old)), ColumnsVersion(as_schema(new)))
    assert answer.query_compatible, answer.differences
    spark.range(2).selectExpr(*_sample_columns(old)).write.parquet(str(tmp_path / "old"))
    spark.range(2).selectExpr(*_sample_columns(new)).write.parquet(str(tmp_path / "new"))
    both = spark.read.schema(new).parquet(str(tmp_path / "old"), str(tmp_path / "new"))
    expected = [row.asDict(recursive=True) for row in spark.read.parquet(str(tmp_path / "new")).collect()]
    found = [row.asDict(recursive=True) for row in both.collect()]
    assert len(found) == 4
    assert all(row in found for row in expected)
    assert len(both.where("a is null or a >= 0" if new.startswith("a ") else "true").collect()) == 4


def _sample_columns(ddl: str) -> list[str]:
    """Return expressions that give every column a value that is not null."""
    schema = as_schema(ddl)
    texts = {"int": "1", "bigint": "3000000000", "string": "'x'", "double": "0.5D"}

    def value(type_: str) -> str:
        parsed = parse_type_ddl(type_)[0]
        match parsed:
            case _ if type_ in texts:
                return f"CAST({texts[type_]} AS {type_})"
            case _ if type_.startswith("struct"):
                parts = [f"'{it.name}', {value(format_type(it.type))}" for it in parsed.fields]  # type: ignore[union-attr]
                return f"named_struct({', '.join(parts)})"
            case _ if type_.startswith("array"):
                return f"array({value(format_type(parsed.element))})"  # type: ignore[union-attr]
        return f"map('k', {value(format_type(parsed.value))})"  # type: ignore[union-attr]

    return [f"{value(format_type(it.type))} AS {it.name}" for it in schema.fields]


RETYPED = [
    at
    for at, row in enumerate(MATRIX)
    if row.query != "safe" and row.semantic == "safe" and "enum:" not in row.name
]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[Schema, Schema]]:
    """Return the columns of both versions of each change that a query is said to notice."""
    folder = tmp_path_factory.mktemp("protos")
    versions = [
        compile_files(
            folder / side,
            {f"r{at}.proto": proto_text(MATRIX[at], getattr(MATRIX[at], side), f"r{at}") for at in RETYPED},
        )
        for side in ("old", "new")
    ]
    return {
        at: tuple(
            Schema(number_fields(columns(version_of(files, f"r{at}.proto"), f"r{at}.Event")))
            for files in versions
        )  # type: ignore[misc]
        for at in RETYPED
    }


@pytest.mark.parametrize("at", RETYPED, ids=[MATRIX[at].name for at in RETYPED])
def test_what_is_said_to_fail_fails(
    spark: SparkSession, tmp_path: Path, stored: dict[int, tuple[Schema, Schema]], at: int
) -> None:
    """A change of type that is not safe fails in Spark: in one schema, or by merging schemas."""
    folders = []
    for side, schema in zip(("old", "new"), stored[at], strict=True):
        (tmp_path / side).mkdir()
        rows = pa.Table.from_pylist([{}], arrow_schema(schema))
        pq.write_table(rows, tmp_path / side / "rows.parquet")
        folders.append(str(tmp_path / side))
    with pytest.raises((PySparkException, Py4JJavaError), match=r"(?i)merge|incompatible"):
        spark.read.option("mergeSchema", "true").parquet(*folders).collect()
