"""DDL text as Spark reads it and as instar does: the same schema, or both refuse."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from pyspark.errors import PySparkException
from pyspark.sql.types import DataType, StructType

from instar.errors import InvalidSchemaError
from instar.schema import (
    Field,
    List,
    Map,
    Schema,
    Struct,
    Type,
    parse_schema_ddl,
    schema_from_spark,
    spark_json,
)
from tests.properties.schema.strategies import schemas, without_ids

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ACCEPTED = [
    # comments
    *("a int -- words", "a /* words */ int", "a int, -- first\n b string"),
    # synonyms
    "a byte, b tinyint, c short, d smallint, e integer, f int, g long, h bigint",
    "a real, b float, c double, d timestamp_ltz, e timestamp, f timestamp_ntz",
    "a dec, b numeric, c decimal, d dec(5), e numeric(5,2), f decimal(38,38)",
    "a boolean, b string, c binary, d date",
    # intervals
    "a interval year, b interval month, c interval year to month",
    "a interval day, b interval hour, c interval minute, d interval second",
    "a interval day to hour, b interval day to minute, c interval day to second",
    "a interval hour to minute, b interval hour to second, c interval minute to second",
    # case and spacing
    "A INT, b BigInt Not Null, C Array<STRING>, d INTERVAL Day TO Second",
    "  a   int  ,b\tstring\n,\nc\rdate not\n null ",
    "a decimal( 5 , 2 ) not  null, b map < string , int >, c array< array< int > >",
    "a struct<b:int,c :string,d: date,e : int,f int not null>not null",
    # a colon is as good as a space
    "a: int, b :string, c date",
    # backticks
    "`a b` int, `a``b` string, `a.b` date, ` ` int, `ü` struct<`x y`: int, `,`: int>",
    # names that are words of the language
    "select int, table string, order date, from int, null int, not int, comment int, default int",
    "int int, array int, map int, struct int, interval interval day, timestamp timestamp, decimal decimal",
    "element int, key int, value int, a struct<comment: int, not: int, default: int>, to int, day int",
    # names with digits
    "1a int, a1 string, _a int, _1 int, 12ab int, 1_000 int, 0x1F int, 1e5a int",
    # nesting
    "a map<string,struct<x:array<map<int,struct<y:int not null>>>>>, b struct<c:struct<d:struct<e:int>>>",
]

REFUSED_BY_BOTH = [
    # not a list of columns
    *("a", "a int,", ",a int", "a int,,b int", "a int b int", "a int; b int", "a int)", "a int as b"),
    # names that need backticks
    *("a.b int", "a-b int", "é int", "日本 int", "$a int", "@a int", "a$b int", "a# int", "a{ int", "٣ int"),
    *("1 int", "-1 int", "1.5 int", "1e5 int", "1L int", "1s int", "1Y int", "1d int", "1e5f int", "1bd int"),
    *("'a' int", '"a" int', "` int"),
    # types that do not exist
    *("a foo", "a bool", "a str", "a text", "a datetime", "a number", "a 'int'", "a int(5)", "a string(5)"),
    *("a double precision", "a bigint unsigned", "a long long", "a nvarchar"),
    # types that are not complete
    *("a array", "a array<>", "a array<int", "a map", "a map<int>", "a map<int,int,int>", "a struct"),
    *("a struct<b>", "a struct<b:int", "a struct<b:int,>", "a struct<b::int>", "a:: int", "a array<int>>"),
    # intervals that run backwards or mix
    *("a interval month to year", "a interval second to day", "a interval day to month"),
    *("a interval day to day", "a interval hours", "a interval week"),
    # decimals
    *("a decimal(39,2)", "a decimal(5,6)", "a decimal(-1,0)", "a decimal(5,-1)", "a decimal()"),
    *("a decimal(5,2,1)", "a decimal(5.0,2)", "a decimal(1e1,2)", "a decimal(5", "a decimal(,2)"),
    # half a clause
    *("a int not", "a int null", "a int not not null", "a int generated always as (1)", "a int default 5"),
]

REFUSED_BY_US = [
    *(
        "a void",
        "a variant",
        "a interval",
        "a char(5)",
        "a varchar(5)",
        "a time",
        "a time(3)",
        "a geometry(4326)",
    ),
    *("a array<void>", "a struct<b: map<int, variant>>", "a string collate UTF8_LCASE"),
    *("a int comment 'x'", "a int not null comment 'x'", "a struct<a: int comment 'c'>"),
    *("a int, A int", "a int, a int", "a struct<b:int,B:int>", "a struct<>", "`` int", "a decimal(0,0)"),
    *("_ts timestamp", "a int, _DIFF bigint", "a map<map<int,int>,int>"),
]

ONLY_OURS = {
    "a array<int not null>": {"type": "array", "elementType": "integer", "containsNull": False},
    "a map<string, int not null>": {
        "type": "map",
        "keyType": "string",
        "valueType": "integer",
        "valueContainsNull": False,
    },
    "a map<string not null, int>": {
        "type": "map",
        "keyType": "string",
        "valueType": "integer",
        "valueContainsNull": True,
    },
}


def read_by_spark(text: str) -> DataType:
    """Let Spark's parser read DDL text."""
    return StructType.fromDDL(text)


@pytest.mark.parametrize("text", ACCEPTED)
def test_spark_and_instar_read_the_same(spark: SparkSession, text: str) -> None:
    """Synonyms, case, spacing, backticks and keywords mean to instar what they mean to Spark."""
    ours = parse_schema_ddl(text)
    assert read_by_spark(text).jsonValue() == spark_json(ours)
    assert spark.createDataFrame([], text).schema.jsonValue() == spark_json(ours)
    assert without_ids(schema_from_spark(json.loads(read_by_spark(text).json()))) == without_ids(ours)


@pytest.mark.parametrize("text", REFUSED_BY_BOTH)
def test_what_spark_refuses_is_refused(spark: SparkSession, text: str) -> None:
    """No text means something to instar that means nothing to Spark, and the refusal says where."""
    with pytest.raises(PySparkException):
        read_by_spark(text)
    with pytest.raises(InvalidSchemaError) as refusal:
        parse_schema_ddl(text)
    assert refusal.value.position is not None
    assert 0 <= refusal.value.position <= len(text)


@pytest.mark.parametrize("text", REFUSED_BY_US)
def test_what_a_table_cannot_hold_is_refused_though_spark_reads_it(spark: SparkSession, text: str) -> None:
    """Types and names that a table has no place for, and clauses that it would lose, are refused."""
    assert isinstance(read_by_spark(text), StructType)
    with pytest.raises(InvalidSchemaError):
        parse_schema_ddl(text)


@pytest.mark.parametrize("text", ONLY_OURS)
def test_what_spark_has_no_words_for(spark: SparkSession, text: str) -> None:
    """Elements and values that are not null have words here, though Spark only has types for them."""
    with pytest.raises(PySparkException):
        read_by_spark(text)
    (column,) = spark_json(parse_schema_ddl(text))["fields"]
    assert column["type"] == ONLY_OURS[text]
    assert StructType.fromJson({"type": "struct", "fields": [column]}).jsonValue()["fields"] == [column]


def sayable(type_: Type) -> Type:
    """Return the type with nullable elements and values, which is all that Spark has words for."""
    match type_:
        case Struct(fields=members):
            return Struct(tuple(sayable_field(member) for member in members))
        case List(element=element):
            return List(sayable(element))
        case Map(key=key, value=value):
            return Map(sayable(key), sayable(value))
    return type_


def sayable_field(field: Field) -> Field:
    """Return the field with a type that Spark has words for."""
    return Field(field.id, field.name, sayable(field.type), field.nullable)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(schema=schemas(depth=3))
def test_spark_reads_what_instar_prints(spark: SparkSession, schema: Schema) -> None:
    """A printed schema, whatever its names and types, is to Spark what it is to instar."""
    said = Schema(tuple(sayable_field(field) for field in schema.fields))
    assert read_by_spark(str(said)).jsonValue() == spark_json(said)
