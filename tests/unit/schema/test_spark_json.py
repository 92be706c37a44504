"""Spark's JSON for schemas, and the ways in which a schema may be given."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import types as spark_types

from instar.errors import InvalidSchemaError, UnsupportedTypeError
from instar.schema import Decimal, Primitive, as_schema, schema_from_spark, spark_json

if TYPE_CHECKING:
    from instar.schema.given import SchemaLike


def struct(type_: object, metadata: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the JSON of a schema with one column inside a struct."""
    member = {"name": "b", "type": type_, "nullable": True, "metadata": metadata or {}}
    inner = {"type": "struct", "fields": [member]}
    return {"type": "struct", "fields": [{"name": "a", "type": inner, "nullable": True, "metadata": {}}]}


REFUSED: list[tuple[object, str]] = [
    ("void", "choose the type it will have"),
    ("null", "choose the type it will have"),
    ("interval", "months and days have no order"),
    ("variant", "its values have no columns"),
    ("char(5)", "its padding is not kept"),
    ("varchar(5)", "its length is not enforced"),
    ("time(6)", "Spark has no times of day by default"),
    ("geometry(4326)", "use binary (WKB)"),
    ("geography(4326)", "use binary (WKB)"),
    ("decimal(39,0)", "1 <= precision <= 38"),
    ("decimal(5,-2)", "0 <= scale <= precision"),
    ("object", "it exists only inside a running Spark job"),
    ("string collate UTF8_LCASE", "there is no column type for it"),
    ("whatever", "there is no column type for it"),
    ({"type": "udt", "class": None, "pyClass": "m.Point", "sqlType": "string"}, "store its SQL type instead"),
    ({"type": "udt", "class": "org.Point", "sqlType": "string"}, "store its SQL type instead"),
    ({"type": "option"}, "there is no column type for it"),
]


@pytest.mark.parametrize(("type_", "advice"), REFUSED, ids=lambda value: str(value)[:30])
def test_spark_types_that_a_table_cannot_hold(type_: object, advice: str) -> None:
    """Each is refused by name, with the column's path and what to do instead."""
    with pytest.raises(UnsupportedTypeError) as refusal:
        schema_from_spark(struct(type_))
    assert refusal.value.path == "a.b"
    assert advice in refusal.value.why
    if isinstance(type_, str):
        assert refusal.value.type_name == type_


def test_a_user_defined_type_is_named_by_its_class() -> None:
    """Of a type that somebody made, the class says which one it is."""
    for udt in ({"type": "udt", "class": None, "pyClass": "m.Point"}, {"type": "udt", "class": "m.Point"}):
        with pytest.raises(UnsupportedTypeError, match=r"user-defined type m\.Point"):
            schema_from_spark(struct(udt))


def test_types_inside_lists_and_maps_are_checked() -> None:
    """Elements, keys and values are refused by their paths."""
    element = {"type": "array", "elementType": "void", "containsNull": True}
    key = {"type": "map", "keyType": "void", "valueType": "integer", "valueContainsNull": True}
    value = {"type": "map", "keyType": "integer", "valueType": "void", "valueContainsNull": True}
    for type_, path in ((element, "a.b.element"), (key, "a.b.key"), (value, "a.b.value")):
        with pytest.raises(UnsupportedTypeError) as refusal:
            schema_from_spark(struct(type_))
        assert refusal.value.path == path


def test_char_and_collations_hidden_in_metadata_are_refused() -> None:
    """Spark hides these behind a plain string; taking them for one would lose them in silence."""
    char = {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}
    with pytest.raises(UnsupportedTypeError) as refusal:
        schema_from_spark(struct("string", char))
    assert refusal.value.type_name == "char(5)"
    collation = spark_types.StructType([spark_types.StructField("b", spark_types.StringType("UTF8_LCASE"))])
    with pytest.raises(UnsupportedTypeError, match="strings compare by their bytes"):
        as_schema(collation)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"type": "array"}, "expected the JSON of a Spark struct, found a type 'array'"),
        ({}, "expected the JSON of a Spark struct, found a type None"),
        ({"type": "struct"}, "this is not the JSON of a Spark schema"),
        ({"type": "struct", "fields": 5}, "this is not the JSON of a Spark schema"),
        ({"type": "struct", "fields": ["a"]}, "this is not the JSON of a Spark schema"),
        ({"type": "struct", "fields": [{"name": "a"}]}, "this is not the JSON of a Spark schema"),
        (
            struct({"type": "array", "elementType": "integer"}),
            "a struct in `a` lacks or misplaces 'containsNull'",
        ),
        (struct({}), "a struct in `a` lacks or misplaces 'type'"),
        (struct(None), "this is not the JSON of a Spark schema"),
        (
            {"type": "struct", "fields": [{"name": 5, "type": "integer", "nullable": True}]},
            "JSON of a Spark schema",
        ),
    ],
)
def test_json_that_is_no_spark_schema(value: dict[str, Any], problem: str) -> None:
    """What is missing or misplaced is named, and no lower-level error gets out."""
    with pytest.raises(InvalidSchemaError) as refusal:
        schema_from_spark(value)
    assert problem in str(refusal.value)


def test_decimals_without_digits_are_ten() -> None:
    """Spark's JSON may leave the digits out, and mean decimal(10,0); spaces do not matter."""
    for text, digits in (("decimal", (10, 0)), ("decimal( 12 , 3 )", (12, 3))):
        (column,) = schema_from_spark(
            {"type": "struct", "fields": [{"name": "a", "type": text, "nullable": True, "metadata": {}}]}
        ).fields
        assert column.type == Decimal(*digits)


def test_metadata_that_changes_no_value_is_dropped() -> None:
    """A comment on a Spark column is not part of a table's schema, and does not stop it."""
    typed = spark_types.StructType(
        [spark_types.StructField("a", spark_types.LongType(), nullable=False, metadata={"comment": "x"})]
    )
    schema = as_schema(typed)
    assert str(schema) == "a bigint not null"
    assert spark_json(schema)["fields"][0]["metadata"] == {}


def test_json_text_that_is_no_json_says_where() -> None:
    """Text that starts with a brace is JSON, and an error in it has a position."""
    with pytest.raises(InvalidSchemaError) as refusal:
        as_schema('  {"type": struct}')
    assert refusal.value.position == 11
    assert "this is not JSON" in str(refusal.value)
    with pytest.raises(InvalidSchemaError, match="expected the JSON of a Spark struct"):
        as_schema(json.dumps({"type": "map"}))


@pytest.mark.parametrize("given", [None, 5, b"a int", ["a int"], {"a": "int"}, Primitive("int")])
def test_other_things_are_no_schemas(given: SchemaLike) -> None:
    """What cannot be read as a schema is refused by the name of its Python type."""
    with pytest.raises(InvalidSchemaError, match=f"cannot read a schema from {type(given).__name__}"):
        as_schema(given)


@pytest.mark.parametrize("levels", [70, 400, 100_000])
def test_endless_nesting_is_refused_not_crashed_on(levels: int) -> None:
    """JSON that nests too deeply gets an error of ours, however deep it goes."""
    opening = '{"type": "array", "containsNull": true, "elementType": '
    column = '{"name": "a", "nullable": true, "type": ' + opening * levels + '"integer"' + "}" * levels + "}"
    with pytest.raises(InvalidSchemaError, match="nested more than 64 levels deep"):
        as_schema('{"type": "struct", "fields": [' + column + "]}")
