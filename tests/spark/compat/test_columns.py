"""Every kind of change to columns is put to Spark itself: files of both versions, read in the usual ways."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as Number
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from instar.schema import Decimal, Field, List, Map, Primitive, Schema, Struct, Type, arrow_schema, as_schema
from instar.schema.schema import number_fields
from tests.unit.compat.other_matrix import DDL, Change

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

Row = dict[str, Any]
FAILURES = (PySparkException, Py4JJavaError)
VALUES: dict[str, Any] = {
    "boolean": True,
    "int": 7,
    "bigint": 2**40,
    "float": 0.5,
    "double": 1e300,
    "string": "x",
    "binary": b"x",
    "date": dt.date(2026, 11, 15),
    "timestamp": dt.datetime(2026, 11, 15, 1, tzinfo=dt.UTC),
    "timestamp_ntz": dt.datetime(2026, 11, 15, 1),  # noqa: DTZ001 -- it has no zone
}


def _value(type_: Type, at: int) -> Any:  # noqa: ANN401 -- of any type
    """Return a value, another one for each place `at`, where the type has more than one here."""
    match type_:
        case Struct(fields=fields):
            return {field.name: _value(field.type, number) for number, field in enumerate(fields)}
        case List(element=element):
            return [_value(element, at)]
        case Map(key=key, value=value):
            return {_value(key, at): _value(value, at + 1)}
        case Primitive(name=name):
            value = VALUES[name]
            return value + at if name in {"int", "bigint"} else value
        case Decimal(precision=precision, scale=scale):
            return Number("1" * (precision - scale)) + Number("0.25")
    raise AssertionError(type_)


def _rows(schema: Schema) -> list[Row]:
    """Return a row with values, and one with nulls wherever there may be some."""
    full = {field.name: _value(field.type, at) for at, field in enumerate(schema.fields)}
    empty = {field.name: None if field.nullable else full[field.name] for field in schema.fields}
    return [full, empty]


def _seen(given: Any, old: Type, new: Type) -> Any:  # noqa: ANN401 -- of any type
    """Return an old value as the new type should show it."""
    match old, new:
        case _ if given is None:
            return None
        case Struct(fields=before), Struct(fields=after):
            return _seen_row(given, before, after)
        case Map(value=before), Map(value=after):
            return {key: _seen(value, before, after) for key, value in given.items()}
        case Primitive(name="string"), Primitive(name="binary"):
            return given.encode()
        case Primitive(name="binary"), Primitive(name="string"):
            return given.decode()
    return given


def _seen_row(row: Row, old: tuple[Field, ...], new: tuple[Field, ...]) -> Row:
    known = {field.name.lower(): field for field in old}
    found = {}
    for field in new:
        was = known.get(field.name.lower())
        found[field.name] = None if was is None else _seen(row[was.name], was.type, field.type)
    return found


def _write(folder: Path, schema: Schema, rows: list[Row]) -> str:
    folder.mkdir()
    types = pa.schema([field.with_nullable(True) for field in arrow_schema(schema)])
    pq.write_table(
        pa.Table.from_pylist([_pairs(row, schema) for row in rows], types), folder / "rows.parquet"
    )
    return str(folder)


def _pairs(row: Row, schema: Schema) -> Row:
    """Return a row as Arrow takes it: maps are lists of pairs."""
    maps = {field.name for field in schema.fields if isinstance(field.type, Map)}
    return {name: list(value.items()) if name in maps and value else value for name, value in row.items()}


def _collect(frame: DataFrame) -> list[Row]:
    found = [row.asDict(recursive=True) for row in frame.collect()]
    return [{name: _plain(value) for name, value in row.items()} for row in found]


def _plain(value: Any) -> Any:  # noqa: ANN401 -- of any type
    match value:
        case bytearray():
            return bytes(value)
        case dt.datetime():
            return value.replace(tzinfo=dt.UTC)
    return value


def _is_right(spark: SparkSession, old: Schema, new: Schema, folders: list[str]) -> bool:
    """Whether one explicit schema shows every value of both versions, and nulls only where it allows them."""
    ddl = ", ".join(str(as_schema(Schema((field,)))).replace(" not null", "") for field in new.fields)
    try:
        found = _collect(spark.read.schema(ddl).parquet(*folders))
    except FAILURES:
        return False
    expected = [*(_seen_row(row, old.fields, new.fields) for row in _rows(old)), *_rows(new)]
    forbidden = [field.name for field in new.fields if not field.nullable]
    if any(row[name] is None for row in found for name in forbidden):
        return False
    return all(found.count(row) == expected.count(row) for row in expected) and len(found) == len(expected)


def _merges(spark: SparkSession, folders: list[str]) -> bool:
    try:
        spark.read.option("mergeSchema", "true").parquet(*folders).collect()
    except FAILURES:
        return False
    return True


def _unites(spark: SparkSession, folders: list[str]) -> bool:
    """Whether UNION, which goes by position, gives the same as a union by name."""
    old, new = (spark.read.parquet(folder) for folder in folders)
    return _collect(new.union(old)) == _collect(new.unionByName(old))


@pytest.fixture(params=["true", "false"], ids=["vectorized", "by row"])
def reader(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """Return a session that reads by one of Spark's two readers."""
    setting = "spark.sql.parquet.enableVectorizedReader"
    before = spark.conf.get(setting) or "true"
    spark.conf.set(setting, request.param)
    yield spark
    spark.conf.set(setting, before)


def _versions(rows: list[Change]) -> tuple[Schema, Schema]:
    """Return the columns of some changes side by side, with names that keep them apart."""
    sides = []
    for side in ("old", "new"):
        fields = [
            Field(1, f"r{at}_{field.name}", field.type, field.nullable)
            for at, row in enumerate(rows)
            for field in as_schema(getattr(row, side)).fields
        ]
        sides.append(Schema(number_fields(tuple(fields))))
    return sides[0], sides[1]


def test_what_is_not_unsafe_is_read_with_the_same_values(reader: SparkSession, tmp_path: Path) -> None:
    """All such changes at once: one schema reads files of both versions, by either reader."""
    old, new = _versions([row for row in DDL if row.query != "unsafe"])
    folders = [_write(tmp_path / "old", old, _rows(old)), _write(tmp_path / "new", new, _rows(new))]
    assert _is_right(reader, old, new, folders)


@pytest.mark.parametrize("row", [row for row in DDL if row.query != "safe"], ids=lambda row: row.name)
def test_what_is_not_safe_goes_wrong_in_one_way(spark: SparkSession, tmp_path: Path, row: Change) -> None:
    """It is not read rightly in one schema, or its schemas do not merge, or a union mixes it up."""
    old, new = as_schema(row.old), as_schema(row.new)
    folders = [_write(tmp_path / "old", old, _rows(old)), _write(tmp_path / "new", new, _rows(new))]
    right = _is_right(spark, old, new, folders) and _merges(spark, folders)
    assert not right or (row.query == "conditional" and not _unites(spark, folders))
