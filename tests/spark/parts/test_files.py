"""Plain Spark reads the files of parts right, with filters pushed down and without."""

from __future__ import annotations

import math
from functools import reduce
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from instar.parts import PartLimits, RowOrder, conform, write_parts
from instar.schema import (
    Field,
    List,
    Map,
    Schema,
    Struct,
    Type,
    arrow_schema,
    field_name,
    parse_schema_ddl,
    spark_json,
)
from tests.properties.parts.rows import as_bag, plain_rows
from tests.properties.schema.data import batch_of, random_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.properties.schema.data import Row

NAN = math.nan
SMALL = PartLimits(buffer_bytes=4000)
"""A few parts, so that Spark has files and row groups to leave out."""


@pytest.fixture(params=["true", "false"], ids=["pushed down", "not pushed down"])
def pushdown(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    """Let Spark skip row groups and pages by a filter, or not."""
    # Compiling each of many small queries would take longer than running them.
    settings = {"spark.sql.parquet.filterPushdown": request.param, "spark.sql.codegen.wholeStage": "false"}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name in settings:
        spark.conf.unset(name)


def physical(schema: Schema) -> Schema:
    """Return a schema with the names that files have."""
    return Schema(tuple(_physical_field(field) for field in schema.fields))


def _physical_field(field: Field) -> Field:
    return Field(field.id, field_name(field.id), _physical_type(field.type), field.nullable)


def _physical_type(type_: Type) -> Type:
    match type_:
        case Struct(fields=members):
            return Struct(tuple(_physical_field(member) for member in members))
        case List(element=element, element_nullable=nullable):
            return List(_physical_type(element), nullable)
        case Map(key=key, value=value, value_nullable=nullable):
            return Map(_physical_type(key), _physical_type(value), nullable)
    return type_


def write_files(folder: Path, batch: pa.RecordBatch, schema: Schema, order: RowOrder = RowOrder.SORT) -> Path:
    """Write a batch as some parts."""
    folder.mkdir()
    for number, new in enumerate(write_parts([batch], schema, order=order, limits=SMALL)):
        (folder / f"{number}.parquet").write_bytes(new.data)
    return folder


def frame(spark: SparkSession, folder: Path, schema: Schema) -> DataFrame:
    """Read files as Spark does, with the types of a schema."""
    from pyspark.sql.types import StructType  # noqa: PLC0415 -- tests without Spark must not pay for it

    return spark.read.schema(StructType.fromJson(spark_json(physical(schema)))).parquet(str(folder))


EVERYTHING = parse_schema_ddl(
    "a boolean, b tinyint, c smallint, d int not null, e bigint, f float, g double, h string not null, "
    "i binary, j date, k timestamp, l timestamp_ntz, m interval day to second, n decimal(5,2), "
    "o decimal(18,4), p decimal(38,10), "
    "q struct<r: double, s: struct<t: string not null, u: timestamp_ntz>>, "
    "v array<struct<w: float, x: array<int not null>>>, y map<string, struct<z: decimal(9,0), aa: date>>, "
    "bb struct<cc: int not null> not null, dd map<int, double not null> not null"
)


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_spark_reads_every_type(spark: SparkSession, tmp_path: Path, vectorized: str) -> None:
    """Extreme values, nulls and nesting come out of Spark as they went into the part."""
    rows = random_rows(Random(7), EVERYTHING, 60)
    folder = write_files(tmp_path / "t", batch_of(rows, EVERYTHING, Random(0)), EVERYTHING)
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    try:
        found = frame(spark, folder, EVERYTHING).toArrow()
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
    batches = conform(found, physical(EVERYTHING))
    assert as_bag(row for batch in batches for row in plain_rows(batch, EVERYTHING)) == as_bag(rows)


def test_spark_reads_intervals(spark: SparkSession, tmp_path: Path, pushdown: None) -> None:
    """Intervals of months and of days are what they were, and can be filtered by."""
    schema = parse_schema_ddl("a interval year to month, b interval day to second, c interval month")
    rows: list[Row] = [
        {1: 14, 2: 86_400_000_000, 3: 5},
        {1: -3, 2: -1_500_000, 3: -5},
        {1: None, 2: None, 3: None},
    ]
    data = frame(spark, write_files(tmp_path / "t", batch_of(rows, schema, Random(0)), schema), schema)
    found = data.selectExpr(
        "extract(year from f1) * 12 + extract(month from f1) as a",
        "cast(extract(second from f2) + 86400 * extract(day from f2) as double) as b",
        "extract(month from f3) as c",
    )
    values = [(row["a"], row["b"], row["c"]) for row in found.collect()]
    assert sorted(values, key=repr) == sorted(
        [(14, 86400.0, 5), (-3, -1.5, -5), (None, None, None)], key=repr
    )
    assert data.where("f1 > interval '1-0' year to month").count() == 1
    assert data.where("f2 < interval '0 00:00:00' day to second").count() == 1


# --- filters --------------------------------------------------------------------------------------


def truth(value: float | None, op: str, literal: float) -> bool:
    """Compare as SQL does: null is not true, NaN is greatest and equals itself, zeros are equal."""
    if value is None:
        return False
    left, right = _float_key(value), _float_key(literal)
    return {
        ">": left > right,
        ">=": left >= right,
        "<": left < right,
        "<=": left <= right,
        "=": left == right,
        "!=": left != right,
    }[op]


def _float_key(value: float) -> tuple[bool, float]:
    return (True, 0.0) if math.isnan(value) else (False, value + 0.0)


def answers(queries: dict[str, DataFrame]) -> dict[str, list[int]]:
    """Run many small queries, each for one column of numbers, as one job."""
    labelled = [data.selectExpr(f"{name!r} as query", "*") for name, data in queries.items()]
    found: dict[str, list[int]] = {name: [] for name in queries}
    for query, number in reduce(lambda one, two: one.unionAll(two), labelled).collect():
        found[query].append(number)
    return {name: sorted(numbers) for name, numbers in found.items()}


PARTS: dict[str, list[float | None]] = {
    "some NaN": [1.0, NAN, 2.0],
    "only NaN": [NAN, NAN],
    "only -0.0": [-0.0, -0.0],
    "only 0.0": [0.0],
    "both zeros": [-0.0, 0.0],
    "mixed": [-1.5, -0.0, None, 19000.5, math.inf, -math.inf],
    "only null": [None, None],
}
LITERALS = {"1.0": 1.0, "0.0": 0.0, "-0.0": -0.0, "NaN": NAN}


def test_filters_on_floats_lose_no_row(spark: SparkSession, tmp_path: Path, pushdown: None) -> None:
    """Parts with NaN, with only -0.0, with nothing but nulls: every comparison finds what it should."""
    schema = parse_schema_ddl("n int, d double, f float, s struct<d: double>")
    values = [value for part in PARTS.values() for value in part]
    rows: list[Row] = [{1: n, 2: value, 3: value, 4: {5: value}} for n, value in enumerate(values)]
    done = 0
    for name, part in PARTS.items():
        [new] = write_parts([batch_of(rows[done : done + len(part)], schema, Random(0))], schema)
        (tmp_path / f"{name}.parquet").write_bytes(new.data)
        done += len(part)
    data = frame(spark, tmp_path, schema)
    questions = [("f2", "double", op, text) for op in (">", "<=", "=") for text in LITERALS]
    questions += [("f3", "float", "=", "0.0"), ("f3", "float", ">", "1.0"), ("f3", "float", "=", "NaN")]
    questions += [
        ("f4.f5", "double", "=", "0.0"),
        ("f4.f5", "double", ">", "1.0"),
        ("f2", "double", "<", "NaN"),
    ]
    queries, wanted = {}, {}
    for column, type_, op, text in questions:
        question = f"{column} {op} {type_} {text}"
        queries[question] = data.where(f"{column} {op} {type_}('{text}')").select("f1")
        wanted[question] = [n for n, value in enumerate(values) if truth(value, op, LITERALS[text])]
    assert answers(queries) == wanted


CASES: dict[str, tuple[str, Callable[[int], bool]]] = {
    "int": ("f1 = 500", lambda a: a == 500),
    "bigint": ("f1 between 10 and 20", lambda a: 10 <= a <= 20),
    "smallint": ("f1 >= 990", lambda a: a >= 990),
    "date": ("f1 = date'1971-01-01'", lambda a: a == 365),
    "timestamp": ("f1 < timestamp'1970-01-01 00:00:00.000010'", lambda a: a < 10),
    "timestamp_ntz": ("f1 > timestamp_ntz'1970-01-01 00:00:00.000990'", lambda a: a > 990),
    "string": ("f1 like '99%'", lambda a: str(a).startswith("99")),
    "binary": ("f1 = X'313030'", lambda a: a == 100),
    "decimal(10,2)": ("f1 > 985.5", lambda a: a > 985.5),
    "decimal(30,2)": ("f1 = 100.00", lambda a: a == 100),
}


def test_filters_on_other_types_lose_no_row(spark: SparkSession, tmp_path: Path, pushdown: None) -> None:
    """Sorted parts of every type give the rows that a filter asks for."""
    queries = {}
    for type_name, (where, _) in CASES.items():
        schema = parse_schema_ddl(f"a {type_name}, b int")
        numbers = pa.array(Random(3).sample(range(1000), 1000), pa.int32())
        target = arrow_schema(schema).field("a").type
        texts = numbers.cast(pa.string())
        if pa.types.is_temporal(target):
            column = numbers.cast(pa.int32() if type_name == "date" else pa.int64()).view(target)
        else:
            column = texts.cast(target)
        batch = pa.RecordBatch.from_arrays([column, numbers], names=["a", "b"])
        folder = write_files(tmp_path / type_name, batch, schema)
        assert len(list(folder.iterdir())) > 1
        queries[type_name] = frame(spark, folder, schema).where(where).select("f2")
    wanted = {name: [n for n in range(1000) if is_wanted(n)] for name, (_, is_wanted) in CASES.items()}
    assert answers(queries) == wanted


WIDENED: list[tuple[str, str, str, Callable[[int], bool]]] = [
    ("tinyint", "bigint", "f1 > 100000", lambda _: False),
    ("tinyint", "bigint", "f1 = 5", lambda n: n == 5),
    ("int", "bigint", "f1 < 3000000000", lambda _: True),
    ("int", "double", "f1 > 4.5D", lambda n: n > 4.5),
    ("float", "double", "f1 = 5.0D", lambda n: n == 5),
    ("decimal(5,2)", "decimal(12,4)", "f1 > 4.5", lambda n: n > 4.5),
    ("decimal(9,2)", "decimal(30,4)", "f1 = 5", lambda n: n == 5),
    ("smallint", "int", "f1 = f2 and f3 is null", lambda _: True),
    ("decimal(18,2)", "decimal(30,4)", "f1 = f2 and f3 is null", lambda _: True),
]


def test_spark_widens_as_we_do(spark: SparkSession, tmp_path: Path, pushdown: None) -> None:
    """A part written under a narrower type gives the same rows to a reader of a wider one."""
    queries, wanted = {}, {}
    for number, (old, new, where, is_wanted) in enumerate(WIDENED):
        written, reader = parse_schema_ddl(f"a {old}, b int"), parse_schema_ddl(f"a {new}, b int, c string")
        numbers = pa.array(range(10), pa.int32())
        column = numbers.cast(pa.string()).cast(arrow_schema(written).field("a").type)
        batch = pa.RecordBatch.from_arrays([column, numbers], names=["a", "b"])
        name = f"{number}: {old} to {new}"
        folder = write_files(tmp_path / str(number), batch, written)
        queries[name] = frame(spark, folder, reader).where(where).select("f2")
        wanted[name] = [n for n in range(10) if is_wanted(n)]
    assert answers(queries) == wanted
