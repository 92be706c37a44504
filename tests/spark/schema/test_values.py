"""Values written by Arrow and read by Spark under instar's schema: each type holds what it held."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from instar.schema import (
    Decimal,
    Field,
    List,
    Map,
    Names,
    Primitive,
    Schema,
    Struct,
    Type,
    format_type,
    spark_json,
)
from instar.schema.types import INTERVAL_YEAR_MONTH, PRIMITIVES
from tests.properties.schema.data import batch_of, exact, random_rows, rows_of
from tests.properties.schema.strategies import schemas

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

    from tests.properties.schema.data import Row

LEAVES: list[Type] = [
    *(Primitive(name) for name in sorted(PRIMITIVES)),
    *(
        Decimal(precision, scale)
        for precision, scale in ((1, 0), (9, 2), (18, 18), (19, 0), (38, 10), (38, 38))
    ),
]


def physical(type_: Type) -> Type:
    """Name every member by its id, as inside a part."""
    match type_:
        case Struct(fields=members):
            return Struct(tuple(Field(m.id, f"f{m.id}", physical(m.type), m.nullable) for m in members))
        case List(element=element, element_nullable=nullable):
            return List(physical(element), nullable)
        case Map(key=key, value=value, value_nullable=nullable):
            return Map(physical(key), physical(value), nullable)
    return type_


def without_months(type_: Type) -> Type:
    """Replace year-month intervals, which Spark cannot hand to Arrow, by their months."""
    match type_:
        case Struct(fields=members):
            return Struct(tuple(Field(m.id, m.name, without_months(m.type), m.nullable) for m in members))
        case List(element=element, element_nullable=nullable):
            return List(without_months(element), nullable)
        case Map(key=key, value=value, value_nullable=nullable):
            return Map(without_months(key), without_months(value), nullable)
        case Primitive(name=name) if name in INTERVAL_YEAR_MONTH:
            return Primitive("int")
    return type_


def in_months(column: Column) -> Column:
    """Turn a year-month interval into the number that it is stored as."""
    whole = column.cast("interval year to month")  # years alone have no months to extract
    return (sf.extract(sf.lit("YEAR"), whole) * 12 + sf.extract(sf.lit("MONTH"), whole)).cast("int")


def read_by_spark(spark: SparkSession, rows: list[Row], schema: Schema, folder: Path) -> DataFrame:
    """Write rows as a part would be, and let Spark read them under instar's schema."""
    folder.mkdir(exist_ok=True)
    batch = batch_of(rows, schema, Random(1), Names.FIELD)
    pq.write_table(pa.Table.from_batches([batch]), folder / "part.parquet")
    named = physical(Struct(schema.fields))
    assert isinstance(named, Struct)
    as_spark = StructType.fromJson(spark_json(Schema(named.fields)))
    return spark.read.schema(as_spark).parquet(str(folder))


def rows_from_spark(frame: DataFrame, schema: Schema) -> list[Row]:
    """Read a frame's rows back as plain values."""
    table = frame.toArrow().combine_chunks()
    return [row for batch in table.to_batches() for row in rows_of(batch, schema)]


@pytest.mark.parametrize("type_", LEAVES, ids=format_type)
def test_spark_reads_every_leaf_type(spark: SparkSession, type_: Type, tmp_path: Path) -> None:
    """Extreme values, nulls, NaN and both zeros come back as they were, plain and inside a struct."""
    schema = Schema((Field(7, "a", type_), Field(3, "s", Struct((Field(9, "b", type_, nullable=False),)))))
    rows = random_rows(Random(0), schema, 40)
    frame = read_by_spark(spark, rows, schema, tmp_path)
    found = frame.schema.jsonValue()["fields"][0]["type"]
    assert found == spark_json(schema)["fields"][0]["type"]
    if isinstance(type_, Primitive) and type_.name in INTERVAL_YEAR_MONTH:
        inner = sf.when(frame.f3.isNotNull(), sf.struct(in_months(frame.f3.f9).alias("f9")))
        frame = frame.select(in_months(frame.f7).alias("f7"), inner.alias("f3"))
        stored = without_months(Struct(schema.fields))
        assert isinstance(stored, Struct)
        schema = Schema(stored.fields)
    assert exact(rows_from_spark(frame, schema)) == exact(rows)


@settings(
    max_examples=max(10, settings().max_examples // 10),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(schema=schemas(depth=3), seed=st.integers(0, 2**32 - 1))
def test_spark_reads_every_nesting(
    spark: SparkSession, schema: Schema, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Random rows of random schemas come back from Spark's own Parquet reader as they were."""
    held = without_months(Struct(schema.fields))
    assert isinstance(held, Struct)
    schema = Schema(held.fields)
    rows = random_rows(Random(seed), schema, 8)
    frame = read_by_spark(spark, rows, schema, tmp_path_factory.mktemp("part"))
    assert exact(rows_from_spark(frame, schema)) == exact(rows)
