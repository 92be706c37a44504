"""Arrow schemas: which types a table takes, and which it refuses by name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from instar.errors import InvalidSchemaError, UnsupportedTypeError
from instar.schema import (
    Decimal,
    Field,
    List,
    Map,
    Names,
    Primitive,
    Schema,
    Struct,
    arrow_field,
    arrow_schema,
    arrow_type,
    as_schema,
    field_name,
    schema_from_arrow,
)

REFUSED = [
    (pa.null(), "choose the type it will have"),
    (pa.uint8(), "cast it to the next larger signed integer"),
    (pa.uint16(), "cast it to the next larger signed integer"),
    (pa.uint32(), "cast it to the next larger signed integer"),
    (pa.uint64(), "cast it to the next larger signed integer"),
    (pa.float16(), "cast it to float"),
    (pa.date64(), "cast it to date32"),
    (pa.time32("s"), "cast it to string, or to int64 and then duration[us]"),
    (pa.time32("ms"), "cast it to string, or to int64 and then duration[us]"),
    (pa.time64("us"), "cast it to string, or to int64 and then duration[us]"),
    (pa.time64("ns"), "cast it to string, or to int64 and then duration[us]"),
    (pa.month_day_nano_interval(), "use int32 months or duration[us]"),
    (pa.decimal256(39, 0), "cast it to decimal128"),
    (pa.decimal128(10, -2), "cast it to decimal128"),
    (pa.decimal128(5, 7), "cast it to decimal128"),
    (pa.dense_union([pa.field("x", pa.int32())]), "use a struct with a member for each"),
    (pa.sparse_union([pa.field("x", pa.int32())]), "use a struct with a member for each"),
    (pa.run_end_encoded(pa.int32(), pa.int32()), "there is no column type for it; cast it first"),
    (pa.dictionary(pa.int8(), pa.uint8()), "cast it to the next larger signed integer"),
    (pa.uuid(), "Spark has no such type; cast it to binary(16), or to string"),
]

TAKEN = [
    (pa.large_string(), Primitive("string")),
    (pa.string_view(), Primitive("string")),
    (pa.large_binary(), Primitive("binary")),
    (pa.binary_view(), Primitive("binary")),
    (pa.binary(16), Primitive("binary")),
    (pa.timestamp("s"), Primitive("timestamp_ntz")),
    (pa.timestamp("ns"), Primitive("timestamp_ntz")),
    (pa.timestamp("ns", "UTC"), Primitive("timestamp")),
    (pa.duration("ns"), Primitive("interval day to second")),
    (pa.timestamp("ms"), Primitive("timestamp_ntz")),
    (pa.timestamp("us", "Europe/Berlin"), Primitive("timestamp")),
    (pa.timestamp("ms", "+01:00"), Primitive("timestamp")),
    (pa.duration("s"), Primitive("interval day to second")),
    (pa.duration("ms"), Primitive("interval day to second")),
    (pa.decimal32(5, 2), Decimal(5, 2)),
    (pa.decimal64(18, 0), Decimal(18, 0)),
    (pa.decimal256(38, 38), Decimal(38, 38)),
    (pa.dictionary(pa.int8(), pa.string()), Primitive("string")),
    (pa.large_list(pa.int32()), List(Primitive("int"))),
    (pa.list_(pa.int32(), 3), List(Primitive("int"))),
    (pa.list_view(pa.int32()), List(Primitive("int"))),
    (pa.large_list_view(pa.int32()), List(Primitive("int"))),
    (
        pa.list_(pa.field("item", pa.int8(), nullable=False)),
        List(Primitive("tinyint"), element_nullable=False),
    ),
    (pa.dictionary(pa.int8(), pa.list_(pa.int32())), List(Primitive("int"))),
]


@pytest.mark.parametrize(("type_", "advice"), REFUSED, ids=lambda value: str(value)[:30])
def test_arrow_types_that_a_table_cannot_hold(type_: pa.DataType, advice: str) -> None:
    """Each is refused by its Arrow name, with the column's path and what to do, at any depth."""
    for column, path in (
        (pa.field("a", type_), "a"),
        (pa.field("a b", pa.list_(pa.struct([pa.field("c", type_)]))), "`a b`.element.c"),
        (pa.field("m", pa.map_(pa.string(), type_)), "m.value"),
    ):
        with pytest.raises(UnsupportedTypeError) as refusal:
            schema_from_arrow(pa.schema([pa.field("fine", pa.int32()), column]))
        error = refusal.value
        assert error.path == path
        assert error.why.endswith(advice)
        assert f"of column `{path}` cannot be stored" in str(error)
        named = type_.value_type if pa.types.is_dictionary(type_) else type_
        assert error.type_name == str(named)


def test_a_key_that_cannot_be_held_is_named_by_its_path() -> None:
    """A map's key is checked like its value."""
    with pytest.raises(UnsupportedTypeError, match=r"`m\.key`"):
        schema_from_arrow(pa.schema([pa.field("m", pa.map_(pa.uint8(), pa.int32()))]))


@pytest.mark.parametrize(("arrow", "type_"), TAKEN, ids=lambda value: str(value)[:40])
def test_arrow_types_that_hold_the_same_values(arrow: pa.DataType, type_: object) -> None:
    """Other layouts and coarser units of the same values are read as the type that holds them all."""
    (field,) = schema_from_arrow(pa.schema([pa.field("a", arrow)])).fields
    assert field.type == type_


@pytest.mark.parametrize(
    ("type_", "arrow"),
    [
        (Primitive("boolean"), pa.bool_()),
        (Primitive("tinyint"), pa.int8()),
        (Primitive("smallint"), pa.int16()),
        (Primitive("int"), pa.int32()),
        (Primitive("bigint"), pa.int64()),
        (Primitive("float"), pa.float32()),
        (Primitive("double"), pa.float64()),
        (Primitive("string"), pa.string()),
        (Primitive("binary"), pa.binary()),
        (Primitive("date"), pa.date32()),
        (Primitive("timestamp"), pa.timestamp("us", "UTC")),
        (Primitive("timestamp_ntz"), pa.timestamp("us")),
        (Primitive("interval day to second"), pa.duration("us")),
        (Primitive("interval hour"), pa.duration("us")),
        (Primitive("interval year to month"), pa.int32()),
        (Primitive("interval month"), pa.int32()),
        (Decimal(20, 3), pa.decimal128(20, 3)),
        (
            List(Primitive("int"), element_nullable=False),
            pa.list_(pa.field("element", pa.int32(), nullable=False)),
        ),
        (
            Map(Primitive("string"), Primitive("int"), value_nullable=False),
            pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False)),
        ),
        (
            Struct((Field(7, "x", Primitive("int"), nullable=False),)),
            pa.struct([pa.field("x", pa.int32(), nullable=False)]),
        ),
    ],
)
def test_every_type_has_its_arrow_type(type_: object, arrow: pa.DataType) -> None:
    """The Arrow type of each type is fixed: parts already written depend on it."""
    assert arrow_type(type_) == arrow  # type: ignore[arg-type]


def test_physical_names_come_from_ids_at_every_level() -> None:
    """Inside parts a field is called `f<id>`, members too; elements, keys and values keep their words."""
    column = Field(
        4,
        "m",
        Map(Struct((Field(9, "k", Primitive("int")),)), List(Struct((Field(6, "v", Primitive("int")),)))),
    )
    physical = arrow_field(column, Names.FIELD)
    assert physical.name == field_name(4) == "f4"
    assert physical.type.key_type.field(0).name == "f9"
    assert physical.type.item_type.value_type.field(0).name == "f6"
    assert physical.type.item_type.value_field.name == "element"
    assert (physical.type.key_field.name, physical.type.item_field.name) == ("key", "value")
    assert physical.type.item_type.value_type.field(0).metadata == {b"PARQUET:field_id": b"6"}


def test_intervals_that_arrow_cannot_tell_apart_are_named_in_metadata() -> None:
    """A plain int32 is an int; with its name beside it, it is the interval that was written."""
    schema = Schema(
        (Field(1, "a", Primitive("interval year")), Field(2, "l", List(Primitive("interval hour"))))
    )
    arrow = arrow_schema(schema)
    assert schema_from_arrow(arrow) == schema
    assert schema_from_arrow(arrow.remove_metadata()).fields[0].type == Primitive("interval year")
    bare = pa.schema([pa.field("a", pa.int32()), pa.field("l", pa.list_(pa.duration("us")))])
    assert [field.type for field in schema_from_arrow(bare).fields] == [
        Primitive("int"),
        List(Primitive("interval day to second")),
    ]


@pytest.mark.parametrize("name", [b"interval year", b"nonsense", b"\xff", b"string"])
def test_a_name_that_does_not_fit_its_arrow_type_is_ignored(name: bytes) -> None:
    """Metadata names an interval only where the data could hold it; otherwise the Arrow type speaks."""
    field = pa.field("a", pa.int64(), metadata={b"instar:type": name})
    assert schema_from_arrow(pa.schema([field])).fields[0].type == Primitive("bigint")


def test_foreign_field_ids_are_not_trusted() -> None:
    """An Arrow schema's own ids belong to another table: here ids count up from 1."""
    fields = [pa.field(name, pa.int32(), metadata={b"PARQUET:field_id": b"70"}) for name in "ab"]
    assert [field.id for field in as_schema(pa.schema(fields)).fields] == [1, 2]


def test_arrow_schemas_obey_the_same_rules() -> None:
    """Empty structs, duplicates and reserved names are refused from Arrow as from anywhere."""
    for fields, problem in (
        ([], "at least one column"),
        ([pa.field("a", pa.int32()), pa.field("A", pa.int32())], "appears twice"),
        ([pa.field("a", pa.struct([]))], "has no members"),
        ([pa.field("_ts", pa.int64())], "is reserved"),
    ):
        with pytest.raises(InvalidSchemaError, match=problem):
            schema_from_arrow(pa.schema(fields))


@pytest.mark.parametrize("levels", [70, 2000])
def test_endless_nesting_is_refused_not_crashed_on(levels: int) -> None:
    """An Arrow type that nests too deeply gets an error of ours, however deep it goes."""
    type_ = pa.int32()
    for _ in range(levels):
        type_ = pa.list_(type_)
    with pytest.raises(InvalidSchemaError, match="nested more than 64 levels deep"):
        schema_from_arrow(pa.schema([pa.field("a", type_)]))
