"""Migrating each form of data, and what cannot be migrated."""

from __future__ import annotations

import pyarrow as pa
import pytest

from instar.errors import IncompatibleSchemaError, UsageError
from instar.schema import (
    Field,
    List,
    Map,
    Migration,
    Names,
    Primitive,
    Schema,
    Struct,
    Type,
    arrow_schema,
    arrow_type,
    migrate,
    parse_schema_ddl,
    plan_migration,
)

INT, LONG = Primitive("int"), Primitive("bigint")
OLD = Schema((Field(1, "a", INT), Field(2, "b", Primitive("string")), Field(3, "c", INT)))
NEW = Schema((Field(4, "n", Primitive("date")), Field(1, "a", LONG), Field(3, "d", INT)))
ROWS = [{"a": 1, "b": "x", "c": 2}, {"a": None, "b": None, "c": 3}]
EXPECTED = [{"n": None, "a": 1, "d": 2}, {"n": None, "a": None, "d": 3}]


def batch() -> pa.RecordBatch:
    """Return two rows of the old schema."""
    return pa.RecordBatch.from_pylist(ROWS, schema=arrow_schema(OLD))


def test_a_batch() -> None:
    """Added columns are null, deleted ones gone, widened ones cast, renamed ones renamed."""
    after = migrate(batch(), OLD, NEW)
    assert isinstance(after, pa.RecordBatch)
    assert after.to_pylist() == EXPECTED
    assert after.schema.equals(arrow_schema(NEW), check_metadata=True)


def test_a_table() -> None:
    """A table migrates chunk by chunk; one without any chunk keeps its new columns."""
    table = pa.Table.from_batches([batch(), batch().slice(1)])
    after = migrate(table, OLD, NEW)
    assert isinstance(after, pa.Table)
    assert after.to_pylist() == EXPECTED + EXPECTED[1:]
    assert after.column("a").num_chunks == 2
    empty = migrate(table.schema.empty_table(), OLD, NEW)
    assert empty.num_rows == 0
    assert empty.schema.equals(arrow_schema(NEW), check_metadata=True)


def test_a_struct_array() -> None:
    """An array of structs stands for a batch; a null row stays null."""
    structs = pa.StructArray.from_arrays(
        batch().columns, fields=list(arrow_schema(OLD)), mask=pa.array([False, True])
    )
    assert migrate(structs, OLD, NEW).to_pylist() == [EXPECTED[0], None]
    assert migrate(structs.slice(1), OLD, NEW).to_pylist() == [None]


def test_a_chunked_array() -> None:
    """A chunked array of structs stays chunked, and keeps its type when it has no chunk."""
    structs = batch().to_struct_array()
    after = migrate(pa.chunked_array([structs, structs.slice(1)]), OLD, NEW)
    assert isinstance(after, pa.ChunkedArray)
    assert [len(chunk) for chunk in after.chunks] == [2, 1]
    assert after.to_pylist() == EXPECTED + EXPECTED[1:]
    empty = migrate(pa.chunked_array([], type=structs.type), OLD, NEW)
    assert empty.type == pa.struct(list(arrow_schema(NEW)))


@pytest.mark.parametrize(
    ("old", "new", "values", "expected"),
    [
        (INT, LONG, [1, None], [1, None]),
        (List(INT), List(Primitive("double")), [[1, None], None, []], [[1.0, None], None, []]),
        (Map(INT, INT), Map(INT, LONG), [[(1, 2)], None], [[(1, 2)], None]),
        (
            Struct((Field(1, "x", INT), Field(2, "y", INT))),
            Struct((Field(2, "z", LONG), Field(3, "w", INT))),
            [{"x": 1, "y": 2}, None],
            [{"z": 2, "w": None}, None],
        ),
        (
            List(Struct((Field(0, "x", INT),))),
            List(Struct((Field(0, "x", INT), Field(1, "y", INT)))),
            [[{"x": 1}]],
            [[{"x": 1, "y": None}]],
        ),
    ],
)
def test_a_plain_array(old: Type, new: Type, values: list[object], expected: list[object]) -> None:
    """Any array migrates between two types, whatever ids their members have."""
    array = pa.array(values, arrow_type(old))
    after = migrate(array, old, new)
    assert after.type == arrow_type(new)
    assert after.to_pylist() == expected
    assert migrate(array.slice(1), old, new).to_pylist() == expected[1:]


def test_a_schema_does_not_migrate_to_a_type() -> None:
    """Either two schemas or two types."""
    mixed: list[tuple[object, object]] = [(OLD, INT), (INT, OLD)]
    for old, new in mixed:
        with pytest.raises(UsageError, match="between two schemas or between two types"):
            migrate(batch(), old, new)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "wrong",
    [
        "a bigint, b string, c int",
        "a int, b string",
        "a int, b string, c int, d int",
        "a int, b string, c array<int>",
        "a int, b string, c struct<x: int>",
    ],
)
def test_data_of_another_layout_is_refused(wrong: str) -> None:
    """Columns are found by position, so the shape of the data must be that of its schema."""
    other = arrow_schema(parse_schema_ddl(wrong))
    with pytest.raises(UsageError, match="does not have the layout of its schema"):
        migrate(pa.RecordBatch.from_pylist([], schema=other), OLD, NEW)
    with pytest.raises(UsageError, match="does not have the layout of its schema"):
        migrate(other.empty_table(), OLD, NEW)
    with pytest.raises(UsageError, match="does not have the layout of its schema"):
        migrate(pa.array([], pa.struct(list(other))), OLD, NEW)


@pytest.mark.parametrize(
    ("schema", "arrow"),
    [
        ("l array<struct<x: int>>", pa.list_(pa.struct([pa.field("x", pa.int64())]))),
        ("m map<int, int>", pa.map_(pa.int32(), pa.int64())),
        ("m map<int, int>", pa.list_(pa.struct([pa.field("k", pa.int32()), pa.field("v", pa.int32())]))),
        ("s struct<x: int, y: int>", pa.struct([pa.field("x", pa.int32())])),
        ("a string", pa.large_string()),
        ("a timestamp", pa.timestamp("us")),
        ("a timestamp", pa.timestamp("us", "Europe/Berlin")),
        ("a decimal(5,2)", pa.decimal128(5, 3)),
    ],
)
def test_data_of_another_inner_layout_is_refused(schema: str, arrow: pa.DataType) -> None:
    """The same at every level, down to units, zones and digits."""
    whole = parse_schema_ddl(schema)
    with pytest.raises(UsageError, match="does not have the layout of its schema"):
        migrate(pa.RecordBatch.from_pylist([], schema=pa.schema([pa.field("x", arrow)])), whole, whole)


def test_names_and_nullability_of_the_data_do_not_matter() -> None:
    """Data may still have the names it was written with: fields are known by position and id."""
    named = batch().rename_columns(["f1", "f2", "f3"])
    assert migrate(named, OLD, NEW).to_pylist() == EXPECTED
    physical = migrate(named, OLD, NEW, Names.FIELD)
    assert physical.schema.names == ["f4", "f1", "f3"]


def test_a_reader_may_choose_its_order() -> None:
    """Columns and members come out in the order of the new schema."""
    old = parse_schema_ddl("a int, s struct<x: int, y: int>")
    new = Schema((Field(2, "s", Struct((Field(4, "y", INT), Field(3, "x", INT)))), Field(1, "a", INT)))
    data = pa.RecordBatch.from_pylist([{"a": 1, "s": {"x": 2, "y": 3}}], schema=arrow_schema(old))
    after = migrate(data, old, new)
    assert after.to_pylist() == [{"s": {"y": 3, "x": 2}, "a": 1}]
    assert list(after.to_pylist()[0]["s"]) == ["y", "x"]


@pytest.mark.parametrize(
    "new",
    [
        Schema((Field(1, "a", Primitive("string")),)),
        Schema((Field(1, "a", Primitive("smallint")),)),
        Schema((Field(1, "a", INT, nullable=False),)),
        Schema((Field(9, "n", INT, nullable=False),)),
        Schema((Field(9, "s", Struct((Field(1, "a", INT),))),)),
    ],
)
def test_what_breaks_the_rules_does_not_migrate(new: Schema) -> None:
    """Narrowing, retyping, requiring and moving are refused before any data is touched."""
    with pytest.raises(IncompatibleSchemaError):
        migrate(batch(), OLD, new)
    with pytest.raises(IncompatibleSchemaError):
        Migration(OLD, new)


@pytest.mark.parametrize("within", ["table", "struct", "list", "value"])
def test_a_name_used_again_does_not_bring_values_back(within: str) -> None:
    """A field dropped and added again, the same in all but its id, reads as null at every level."""

    def schema(field_id: int) -> Schema:
        member = Field(field_id, "x", INT)
        match within:
            case "table":
                return Schema((member,))
            case "struct":
                return Schema((Field(1, "a", Struct((member,))),))
            case "list":
                return Schema((Field(1, "a", List(Struct((member,)))),))
        return Schema((Field(1, "a", Map(INT, Struct((member,)))),))

    values: dict[str, object] = {"struct": {"x": 5}, "list": [{"x": 5}], "value": [(1, {"x": 5})]}
    nulls: dict[str, object] = {"struct": {"x": None}, "list": [{"x": None}], "value": [(1, {"x": None})]}
    row = {"a": values[within]} if within in values else {"x": 5}
    expected = {"a": nulls[within]} if within in nulls else {"x": None}
    data = pa.RecordBatch.from_pylist([row], schema=arrow_schema(schema(2)))
    assert migrate(data, schema(2), schema(3)).to_pylist() == [expected]
    assert migrate(data, schema(2), schema(2)).to_pylist() == [row]


def test_a_migration_is_worked_out_once() -> None:
    """The same pair of schemas gives the same plan."""
    assert plan_migration(OLD, NEW) is plan_migration(OLD, NEW)
    assert plan_migration(OLD, NEW) is not plan_migration(OLD, NEW, Names.FIELD)


def test_values_under_nulls_do_not_leak_or_fail() -> None:
    """A null list over elements, or a null struct over members, stays null and hides what is under it."""
    inner = pa.StructArray.from_arrays(
        [pa.array([1, 2, 3], pa.int32())], names=["x"], mask=pa.array([False, True, False])
    )
    lists = pa.ListArray.from_arrays(
        pa.array([0, 1, 3], pa.int32()),
        inner,
        type=pa.list_(pa.field("element", inner.type)),
        mask=pa.array([False, True]),
    )
    old = List(Struct((Field(1, "x", INT),)))
    new = List(Struct((Field(2, "y", INT), Field(1, "x", LONG))))
    assert migrate(lists, old, new).to_pylist() == [[{"y": None, "x": 1}], None]
    assert migrate(lists.slice(1), old, new).to_pylist() == [None]
