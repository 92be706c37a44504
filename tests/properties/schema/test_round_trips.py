"""A schema in another form and back: DDL text, Arrow, Spark's types and JSON, and its fingerprint."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from pyspark.sql.types import StructType

from instar.schema import (
    Field,
    List,
    Map,
    Names,
    Primitive,
    Schema,
    Struct,
    arrow_schema,
    as_schema,
    fingerprint,
    format_type,
    parse_schema_ddl,
    parse_type_ddl,
    schema_from_arrow,
    schema_from_spark,
    spark_json,
)
from instar.schema.fingerprint import canonical_bytes
from instar.schema.paths import format_path, parse_path
from instar.schema.schema import number_fields, number_type
from tests.properties.schema.strategies import (
    every_field,
    legal_schemas,
    pasts,
    schemas,
    types,
    without_ids,
)

if TYPE_CHECKING:
    from instar.schema import Type
    from tests.properties.schema.strategies import Past

INT = Primitive("int")

any_names = st.text(
    st.one_of(st.sampled_from("ab`.,:<>() \"'\\/-"), st.characters(exclude_categories=("C", "Z"))),
    min_size=1,
    max_size=12,
).filter(lambda name: name.isprintable() and name.lower() not in {"_ts", "_diff"})


@given(schemas(depth=3))
def test_ddl_reads_back(schema: Schema) -> None:
    """Printing a schema as DDL and reading it loses nothing but ids, which count up from 1."""
    again = parse_schema_ddl(str(schema))
    assert again.fields == number_fields(schema.fields)
    assert without_ids(again) == without_ids(schema)
    assert str(again) == str(schema)
    assert as_schema(str(schema)) == again


@given(types(), st.booleans())
def test_the_ddl_of_a_type_reads_back(type_: Type, nullable: bool) -> None:
    """Printing one type and reading it loses nothing but ids."""
    again, again_nullable = parse_type_ddl(format_type(type_) + ("" if nullable else " not null"))
    assert number_type(again, count(1)) == number_type(type_, count(1))
    assert again_nullable == nullable


@given(st.lists(any_names, min_size=1, max_size=3, unique_by=str.lower))
def test_any_printable_name_reads_back(names: list[str]) -> None:
    """Whatever is in a name, backticks and dots too, it survives DDL, paths, Arrow and Spark's JSON."""
    members = tuple(Field(at, name, INT) for at, name in enumerate(names, 10))
    schema = Schema((Field(1, names[0], Struct(members)),))
    assert parse_schema_ddl(str(schema)).fields == number_fields(schema.fields)
    assert parse_path(format_path(tuple(names))) == tuple(names)
    assert [schema.load_column(path).id for path in schema.paths()] == [1, *(m.id for m in members)]
    assert without_ids(schema_from_arrow(arrow_schema(schema))) == without_ids(schema)
    assert without_ids(schema_from_spark(json.loads(json.dumps(spark_json(schema))))) == without_ids(schema)


@given(schemas(depth=3))
def test_arrow_reads_back(schema: Schema) -> None:
    """A schema as Arrow, serialized too, reads back the same but for ids, every interval told apart."""
    arrow = arrow_schema(schema)
    assert schema_from_arrow(arrow).fields == number_fields(schema.fields)
    assert as_schema(pa.ipc.read_schema(arrow.serialize())).fields == number_fields(schema.fields)


@given(schemas(depth=3))
def test_arrow_fields_carry_their_ids(schema: Schema) -> None:
    """Each field has its id in Parquet's own metadata; inside parts it is also its name."""
    physical = arrow_schema(schema, Names.FIELD)
    assert physical.names == [f"f{field.id}" for field in schema.fields]
    for field, column in zip(schema.fields, arrow_schema(schema), strict=True):
        assert column.name == field.name
        assert column.nullable == field.nullable
        for arrow in (column, physical.field(f"f{field.id}")):
            assert arrow.metadata[b"PARQUET:field_id"] == str(field.id).encode()
    for _, field in every_field(schema.fields):
        if isinstance(field.type, Struct):
            inside = arrow_schema(Schema((field,)), Names.FIELD).field(0).type
            assert [member.name for member in inside.fields] == [f"f{m.id}" for m in field.type.fields]


@given(schemas(depth=3))
def test_spark_types_read_back(schema: Schema) -> None:
    """A schema as a Spark `StructType`, or as its JSON text, reads back the same but for ids."""
    spark = StructType.fromJson(spark_json(schema))
    assert spark.jsonValue() == spark_json(schema)
    for given_as in (spark, spark.json(), "\n " + json.dumps(spark_json(schema), indent=2)):
        assert as_schema(given_as).fields == number_fields(schema.fields)


@given(pasts(most=1), st.data())
def test_fingerprints_are_equal_exactly_if_schemas_say_the_same(past: Past, data: st.DataObject) -> None:
    """Ids do not count; names, types, nullability and order do, at every level."""
    (schema,) = past.schemas
    renumbered = Schema(number_fields(schema.fields, count(5000)))
    assert fingerprint(schema) == fingerprint(renumbered)
    other = data.draw(st.one_of(schemas(), legal_schemas(schema, past.ids)))
    assert (fingerprint(schema) == fingerprint(other)) == (without_ids(schema) == without_ids(other))
    assert len(fingerprint(schema)) == 64


@given(st.lists(any_names, min_size=2, max_size=2, unique_by=str.lower))
def test_no_name_makes_two_schemas_look_alike(names: list[str]) -> None:
    """Moving characters from one name to the next, or from a name to a type, changes the bytes."""
    one = Schema(tuple(Field(at, name, INT) for at, name in enumerate(names, 1)))
    joined = ", ".join(f"{name} int" for name in names).removesuffix(" int")
    for name in (joined, "".join(names), ",".join(names), "\N{RIGHT-POINTING MAGNIFYING GLASS}".join(names)):
        other = Schema((Field(1, name, INT),))
        assert canonical_bytes(one) != canonical_bytes(other)
        assert fingerprint(one) != fingerprint(other)


def test_no_name_can_hold_what_stands_between_names() -> None:
    """A name made of the very bytes that separate two names does not pass for both of them."""
    one, other = (Schema((Field(1, "aaa", INT), Field(2, name, INT))) for name in ("bbb", "ccc"))
    between = canonical_bytes(one).split(b"aaa")[1].split(b"bbb")[0].decode("latin-1")
    assert canonical_bytes(one) != canonical_bytes(other)
    if between.isprintable():
        early = Schema((Field(1, f"aaa{between}bbb", INT), Field(2, "ccc", INT)))
        late = Schema((Field(1, "aaa", INT), Field(2, f"bbb{between}ccc", INT)))
        assert fingerprint(early) != fingerprint(late)


LOOKALIKES: list[tuple[tuple[Field, ...], tuple[Field, ...]]] = [
    ((Field(1, "a int, b", INT),), (Field(1, "a", INT), Field(2, "b", INT))),
    ((Field(1, "a", Struct((Field(2, "b", INT),))),), (Field(1, "a struct<b", INT),)),
    (
        (Field(1, "a", Struct((Field(2, "b", INT), Field(3, "c", INT)))),),
        (Field(1, "a", Struct((Field(2, "b", INT),))), Field(3, "c", INT)),
    ),
    ((Field(1, "a", INT), Field(2, "b", INT)), (Field(2, "b", INT), Field(1, "a", INT))),
    ((Field(1, "a", INT),), (Field(1, "A", INT),)),
    ((Field(1, "a", INT),), (Field(1, "a", INT, nullable=False),)),
    ((Field(1, "a", List(INT)),), (Field(1, "a", List(INT, element_nullable=False)),)),
    ((Field(1, "a", Map(INT, INT)),), (Field(1, "a", Map(INT, INT, value_nullable=False)),)),
    ((Field(1, "a", Primitive("interval day")),), (Field(1, "a", Primitive("interval day to second")),)),
    ((Field(1, "a", Primitive("timestamp")),), (Field(1, "a", Primitive("timestamp_ntz")),)),
    ((Field(1, "ab", INT), Field(2, "c", INT)), (Field(1, "a", INT), Field(2, "bc", INT))),
]


@pytest.mark.parametrize(("one", "other"), LOOKALIKES)
def test_lookalikes_have_different_fingerprints(one: tuple[Field, ...], other: tuple[Field, ...]) -> None:
    """Schemas that some way of joining names and types would confuse are told apart."""
    assert fingerprint(Schema(one)) != fingerprint(Schema(other))


@given(schemas())
def test_a_schema_is_taken_as_it_is(schema: Schema) -> None:
    """Only a `Schema` speaks by id: it is passed on, and equal schemas are equal in hash too."""
    assert as_schema(schema) is schema
    twin = Schema(tuple(replace(field) for field in schema.fields))
    assert twin == schema
    assert hash(twin) == hash(schema)
