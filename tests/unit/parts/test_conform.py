"""What fits a table and what does not, and how a misfit is reported."""

from __future__ import annotations

import math
import pickle
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from instar.errors import DataMismatchError, UsageError
from instar.parts import Conformer, conform, new_columns
from instar.schema import arrow_schema, format_type, parse_schema_ddl

if TYPE_CHECKING:
    from collections.abc import Iterator


def conformed(data: object, ddl: str, *, updates: bool = False) -> pa.Table:
    """Conform data to a schema."""
    return pa.Table.from_batches(conform(data, parse_schema_ddl(ddl), updates=updates))


def column(values: list[Any], type_: pa.DataType) -> pa.Table:
    """Return a table of one column `a`."""
    return pa.table({"a": pa.array(values, type_)})


@pytest.mark.parametrize(
    ("given", "ddl"),
    [
        (pa.int8(), "smallint"),
        (pa.int8(), "double"),
        (pa.int16(), "int"),
        (pa.int32(), "bigint"),
        (pa.int32(), "double"),
        (pa.uint8(), "smallint"),
        (pa.uint16(), "int"),
        (pa.uint32(), "bigint"),
        (pa.float16(), "float"),
        (pa.float32(), "double"),
        (pa.decimal128(5, 2), "decimal(7,3)"),
        (pa.decimal256(60, 0), None),
        (pa.int32(), "interval year to month"),
        (pa.duration("s"), "interval day to second"),
        (pa.duration("us"), "interval hour to minute"),
        (pa.null(), "array<int>"),
    ],
)
def test_numbers_widen(given: pa.DataType, ddl: str | None) -> None:
    """Every type that holds all values of the data takes it, and only such a type."""
    data = column([None, 1] if not pa.types.is_null(given) else [None, None], given)
    if ddl is None:
        with pytest.raises(DataMismatchError):
            conformed(data, "a int")
        return
    found = conformed(data, f"a {ddl}").column("a")
    assert found.null_count == (2 if pa.types.is_null(given) else 1)


@pytest.mark.parametrize(
    ("given", "ddl", "reason"),
    [
        (pa.int64(), "double", "is int64, which is not double"),
        (pa.uint64(), "decimal(20,0)", "is uint64"),
        (pa.float64(), "bigint", "is double"),
        (pa.float64(), "float", "cannot hold every double"),
        (pa.float32(), "int", "is float"),
        (pa.int32(), "decimal(10,0)", "is int32"),
        (pa.decimal128(7, 3), "decimal(5,2)", "cannot hold every decimal128"),
        (pa.decimal128(5, 2), "decimal(5,3)", "is decimal128"),
        (pa.string(), "int", "is string"),
        (pa.string(), "date", "is string"),
        (pa.binary(), "string", "is binary"),
        (pa.timestamp("us"), "timestamp", "which has no time zone, and the column needs one"),
        (pa.timestamp("us", "UTC"), "timestamp_ntz", "is timestamp"),
        (pa.timestamp("us"), "date", "is timestamp"),
        (pa.time64("us"), "bigint", "is time64"),
        (pa.list_(pa.int32()), "int", "is list"),
        (pa.int32(), "array<int>", "is int32"),
        (pa.map_(pa.string(), pa.int32()), "struct<x: int>", "is map"),
        (pa.list_(pa.float64()), "array<float>", "cannot hold every double"),
        (pa.bool_(), "tinyint", "is bool"),
    ],
)
def test_nothing_is_narrowed_or_guessed(given: pa.DataType, ddl: str, reason: str) -> None:
    """A type that does not fit is refused before any row is read, even if all values would fit."""
    with pytest.raises(DataMismatchError, match=reason) as caught:
        conform(column([None], given), parse_schema_ddl(f"a {ddl}"))
    assert caught.value.row is None
    assert caught.value.column in {"a", "a.element"}


_WIDTHS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_INTEGERS = [getattr(pa, f"{sign}int{width}")() for sign in ("", "u") for width in (8, 16, 32, 64)]


@pytest.mark.parametrize("given", _INTEGERS, ids=str)
@pytest.mark.parametrize("name", _WIDTHS)
def test_whole_numbers_fit_by_their_values(given: pa.DataType, name: str) -> None:
    """Of any width, signed or not: the least and greatest that fit are kept, and the next ones refused."""
    bits, signed = given.bit_width, pa.types.is_signed_integer(given)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    least, most = -(2 ** (_WIDTHS[name] - 1)), 2 ** (_WIDTHS[name] - 1) - 1
    kept = [max(low, least), min(high, most), None, 0]
    assert conformed(pa.table({"a": pa.array(kept, given)}), f"a {name}").column("a").to_pylist() == kept
    for beyond in (least - 1, most + 1):
        if low <= beyond <= high:
            with pytest.raises(DataMismatchError) as caught:
                conformed(pa.table({"a": pa.array([0, None, beyond, 1], given)}), f"a {name}")
            assert (caught.value.column, caught.value.row, caught.value.sample) == ("a", 2, str(beyond))
            assert f"this value of {given} is not exactly a {name}" in caught.value.reason


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize(("precision", "beyond"), [(38, 2**127 - 1), (38, -(10**38)), (5, 10**5)])
def test_a_decimal_has_no_more_digits_than_its_type_says(
    precision: int, beyond: int, *, wrapped: bool
) -> None:
    """Arrow can hold such a value, but no reader would take it: it is refused with its column and row."""
    values = [10**precision - 1, beyond, 1 - 10**precision]
    buffer = pa.py_buffer(b"".join(value.to_bytes(16, "little", signed=True) for value in values))
    array = pa.Array.from_buffers(pa.decimal128(precision, 0), 3, [None, buffer])
    ddl, path = f"a decimal({precision},0)", "a"
    if wrapped:
        array = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), array)
        ddl, path = f"a array<decimal({precision},0)>", "a.element"
    with pytest.raises(DataMismatchError, match="has more digits than decimal") as caught:
        conformed(pa.table({"a": array}), ddl)
    assert (caught.value.column, caught.value.row, caught.value.sample) == (path, 1, str(beyond))
    kept = pa.table({"a": array}).take([0, 2])
    assert conformed(kept, ddl).column("a").to_pylist() == kept.column("a").to_pylist()


def test_whole_numbers_fit_by_their_values_at_every_level() -> None:
    """In members, elements, keys and values, and behind dictionaries; a misfit has the row of the table."""
    given = pa.struct(
        [("x", pa.int64()), ("l", pa.list_(pa.uint64())), ("m", pa.map_(pa.int64(), pa.int64()))]
    )
    ddl = "s struct<x: int, l: array<tinyint>, m: map<smallint, int>>"
    fine = {"x": 1, "l": [127], "m": [(2, 3)]}
    found = conformed(pa.table({"s": pa.array([fine, None], given)}), ddl)
    assert found.column("s").to_pylist() == [fine, None]
    for bad, path in (
        ({**fine, "x": 2**40}, "s.x"),
        ({**fine, "l": [1, 128]}, "s.l.element"),
        ({**fine, "m": [(1, 1), (2**20, 1)]}, "s.m.key"),
        ({**fine, "m": [(1, 2**40)]}, "s.m.value"),
    ):
        with pytest.raises(DataMismatchError) as caught:
            conformed(pa.table({"s": pa.array([fine, None, bad], given)}), ddl)
        assert (caught.value.column, caught.value.row) == (path, 2)
    encoded = pa.array([1, 300, 1], pa.int64()).dictionary_encode()
    assert conformed(pa.table({"a": encoded}), "a smallint").column("a").to_pylist() == [1, 300, 1]


@pytest.mark.parametrize(
    ("values", "given", "ddl", "sample"),
    [
        ([0, 1000, 1], pa.timestamp("ns"), "timestamp_ntz", "1970-01-01 00:00:00.000000001"),
        ([0, None, 2**62], pa.timestamp("s", "UTC"), "timestamp", "4611686018427387904"),
        ([0, 0, 1], pa.date64(), "date", ""),
        ([0, 0, 5], pa.duration("ns"), "interval day to second", ""),
        ([None, 0, 2**61], pa.duration("ms"), "interval day to second", ""),
    ],
)
def test_times_are_kept_exactly_or_refused(
    values: list[Any], given: pa.DataType, ddl: str, sample: str
) -> None:
    """What microseconds or days cannot say is refused, with the row and the value."""
    array = pa.array(values, pa.int64()).view(given)
    with pytest.raises(DataMismatchError, match="is not exactly a") as caught:
        conformed(pa.table({"a": array}), f"a {ddl}")
    assert caught.value.row == 2
    assert sample in (caught.value.sample or "")
    assert conformed(pa.table({"a": array.slice(0, 2)}), f"a {ddl}").num_rows == 2


def test_instants_keep_their_instant() -> None:
    """A time in any zone is the same time in UTC."""
    zoned = pa.array([datetime(2026, 11, 15, 12, tzinfo=UTC)], pa.timestamp("ms", "America/New_York"))
    found = conformed(pa.table({"a": zoned}), "a timestamp").column("a")
    assert found.type == pa.timestamp("us", "UTC")
    assert found.to_pylist() == [datetime(2026, 11, 15, 12, tzinfo=UTC)]


# --- nulls ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ddl", "values", "path", "row"),
    [
        ("a int not null", [1, None, 2], "a", 1),
        ("a struct<b: int not null>", [None, {"b": 1}, {"b": None}], "a.b", 2),
        ("a array<int not null>", [None, [1], [], [2, 3, None]], "a.element", 3),
        ("a array<int not null>", [[1], [1], [None, 2]], "a.element", 2),
        ("a array<array<int not null>>", [[[1], None], [], [[2], [3, None]]], "a.element.element", 2),
        ("a map<string, int not null>", [[("x", 1)], [("y", 1), ("z", None)]], "a.value", 1),
        ("a array<struct<b: int not null>>", [[None], [{"b": 1}, {"b": None}]], "a.element.b", 1),
        ("a struct<b: struct<c: int not null>>", [{"b": None}, None, {"b": {"c": None}}], "a.b.c", 2),
    ],
)
def test_a_null_where_none_may_be_is_reported(ddl: str, values: list[Any], path: str, row: int) -> None:
    """With its path, its row counted over all batches, and the row itself; a null above it is no offence."""
    schema = parse_schema_ddl(ddl)
    nullable = parse_schema_ddl(ddl.replace(" not null", ""))
    type_ = next(conform(pa.table({"a": pa.nulls(1)}), nullable)).schema.field("a").type
    chunks = pa.chunked_array([pa.array(values[:1], type_), pa.array(values[1:], type_)])
    with pytest.raises(DataMismatchError, match="not null, and this row has no value") as caught:
        list(conform(pa.table({"a": chunks}), schema))
    assert (caught.value.column, caught.value.row) == (path, row)
    assert (caught.value.sample or "").startswith("a=")
    good = pa.table({"a": chunks.slice(0, row)})
    assert sum(batch.num_rows for batch in conform(good, schema)) == row


def test_garbage_under_a_null_is_no_value() -> None:
    """What lies under a null list or struct is neither a null nor a value of ours."""
    inside = pa.array([1, None, 3], pa.int32())
    lists = pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3], pa.int32()), inside, mask=pa.array([False, True, False])
    )
    assert conformed(pa.table({"a": lists}), "a array<int not null>")["a"].to_pylist() == [[1], None, [3]]
    structs = pa.StructArray.from_arrays([inside], names=["b"], mask=pa.array([False, True, False]))
    assert conformed(pa.table({"a": structs}), "a struct<b: int not null>")["a"].to_pylist() == [
        {"b": 1},
        None,
        {"b": 3},
    ]


def test_a_null_in_a_dictionary_is_a_null() -> None:
    """Values behind a dictionary may be null although its indices are not."""
    encoded = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["x", None]))
    with pytest.raises(DataMismatchError) as caught:
        conformed(pa.table({"a": encoded}), "a string not null")
    assert caught.value.row == 1


# --- names ----------------------------------------------------------------------------------------


def test_columns_are_matched_by_name_at_every_level() -> None:
    """In any order and case; missing nullable ones are null."""
    data = pa.table({"B": ["x"], "s": [{"Y": 2, "x": [{"Q": 1}]}]})
    found = conformed(
        data, "a int, b string, S struct<x: array<struct<q: bigint, r: int>>, y: bigint, z: int>"
    )
    assert found.to_pylist() == [{"a": None, "b": "x", "S": {"x": [{"q": 1, "r": None}], "y": 2, "z": None}}]


@pytest.mark.parametrize(
    ("names", "ddl", "reason", "path"),
    [
        (["a", "b"], "a int", "has no such column", "b"),
        (["a", "A"], "a int", "more than one column of this name", "A"),
        (["b", "b"], "a int", "more than one column of this name", "b"),
        (["a"], "a int, b int not null", "the data does not have it", "b"),
        (["a", "_diff"], "a int", "has no such column", "_diff"),
    ],
)
def test_names_that_do_not_fit_are_refused(names: list[str], ddl: str, reason: str, path: str) -> None:
    """Unknown, ambiguous and missing columns are told by name."""
    data = pa.Table.from_arrays([pa.array([1], pa.int32())] * len(names), names=names)
    with pytest.raises(DataMismatchError, match=reason) as caught:
        conform(data, parse_schema_ddl(ddl))
    assert caught.value.column == path


@pytest.mark.parametrize(
    ("members", "ddl", "path"),
    [
        (["x", "X"], "a struct<x: int>", "a.X"),
        (["x", "y"], "a struct<x: int>", "a.y"),
        (["x"], "a struct<x: int, y: int not null>", "a.y"),
    ],
)
def test_members_that_do_not_fit_are_refused(members: list[str], ddl: str, path: str) -> None:
    """The same inside structs."""
    array = pa.StructArray.from_arrays([pa.array([1], pa.int32())] * len(members), names=members)
    with pytest.raises(DataMismatchError) as caught:
        conform(pa.table({"a": array}), parse_schema_ddl(ddl))
    assert caught.value.column == path


def test_updates_may_bring_their_time_and_diff() -> None:
    """`_ts` and `_diff` are integers without nulls, behind the columns, if the caller expects them."""
    data = pa.table({"_diff": pa.array([1, -1], pa.int8()), "a": pa.array([1, 2], pa.int32())})
    found = conformed(data, "a int", updates=True)
    assert found.schema.names == ["a", "_diff"]
    assert found.schema.field("_diff").type == pa.int64()
    with pytest.raises(DataMismatchError):
        conformed(pa.table({"a": [None], "_diff": pa.array([None], pa.int64())}), "a int", updates=True)


def test_new_columns_are_found_at_every_level() -> None:
    """What the data has and the table has not, with the types of the data; known columns keep theirs."""
    row = {
        "a": 1,
        "n": pa.scalar(0, pa.timestamp("ns")),
        "s": {"x": 1, "new": [1.5]},
        "m": [("k", {"v": 1, "w": Decimal("1.5")})],
        "l": [{"p": 1, "q": True}],
    }
    type_ = pa.map_(pa.string(), pa.struct([("v", pa.int64()), ("w", pa.decimal128(5, 2))]))
    data = pa.table({name: pa.array([row[name]], type_ if name == "m" else None) for name in row})
    schema = parse_schema_ddl(
        "A int, s struct<x: int>, m map<string, struct<v: bigint>>, l array<struct<p: int>>"
    )
    found = {new.path: format_type(new.type) for new in new_columns(data.schema, schema)}
    assert found == {
        "n": "timestamp_ntz",
        "s.new": "array<double>",
        "m.value.w": "decimal(5,2)",
        "l.element.q": "boolean",
    }
    with pytest.raises(DataMismatchError, match="all its values are null"):
        new_columns(pa.schema([("z", pa.null())]), schema)


def test_new_columns_are_nullable_at_every_level() -> None:
    """Whatever the data says of its own nulls: the next data may have some."""
    item = pa.field("element", pa.int32(), nullable=False)
    given = pa.schema(
        [
            pa.field("s", pa.struct([pa.field("c", pa.int32(), nullable=False)]), nullable=False),
            pa.field("l", pa.list_(item)),
            pa.field("m", pa.map_(pa.string(), item)),
        ]
    )
    found = [format_type(new.type) for new in new_columns(given, parse_schema_ddl("a int"))]
    assert found == ["struct<c: int>", "array<int>", "map<string, int>"]


def test_what_arrow_has_no_type_for_is_known_by_its_name() -> None:
    """Intervals that one table hands to another are new columns of their type, and not whole numbers."""
    ddl = "y interval year, s struct<h: interval hour to minute>"
    given = arrow_schema(parse_schema_ddl(ddl))
    found = [format_type(new.type) for new in new_columns(given, parse_schema_ddl("a int"))]
    assert found == ["interval year", "struct<h: interval hour to minute>"]
    with pytest.raises(DataMismatchError, match="is interval year, which is not int"):
        conform(given.empty_table(), parse_schema_ddl("y int, s struct<h: interval hour to minute>"))


# --- where data comes from ------------------------------------------------------------------------


def test_data_comes_in_many_forms() -> None:
    """Tables, batches and readers of Arrow, frames of others; the index of a pandas frame is no column."""
    table = pa.table({"a": pa.array([1, 2], pa.int32()), "b": ["x", None]})
    frame = pd.DataFrame({"a": pd.array([1, 2], dtype="int32"), "b": ["x", None]}, index=["x", "y"])
    with duckdb.connect() as connection:
        relation = connection.from_arrow(table)
        for data in (table, table.to_batches()[0], table.to_reader(), frame, pl.from_arrow(table), relation):
            assert conformed(data, "a int, b string").to_pylist() == table.to_pylist(), type(data)
    with pytest.raises(UsageError, match="cannot read rows from list"):
        conform([1, 2], parse_schema_ddl("a int"))


@pytest.mark.parametrize("data", [pl.Series([1]), pd.Series([1]), pa.chunked_array([[1]]), [1]])
def test_what_has_no_rows_of_columns_is_refused(data: object) -> None:
    """Single values are no rows, whatever library they come from."""
    with pytest.raises(UsageError, match="cannot read rows from"):
        conform(data, parse_schema_ddl("a int"))


def test_data_without_columns_is_refused() -> None:
    """Rows without columns would all be lost."""
    with pytest.raises(UsageError, match="the data has no columns"):
        conform(pa.table({}), parse_schema_ddl("a int"))


@pytest.mark.parametrize("values", [[1, "x"], [b"x", 1], [{1: 2}, 3], [object()]])
def test_objects_of_many_types_are_refused(values: list[Any]) -> None:
    """A column of pandas or Polars that holds any Python object is named."""
    with pytest.raises(DataMismatchError, match="its values are not of one type") as caught:
        conform(pd.DataFrame({"a": [1] * len(values), "b c": values}), parse_schema_ddl("a int"))
    assert caught.value.column == "b c"
    frame = pl.DataFrame({"b": pl.Series(values, dtype=pl.Object)})
    with pytest.raises(DataMismatchError, match="it holds Python objects"):
        conform(frame, parse_schema_ddl("b binary"))


def test_missing_values_of_pandas_are_nulls() -> None:
    """In a frame NaN means that there is no value."""
    frame = pd.DataFrame({"a": [1.5, float("nan")]})
    assert conformed(frame, "a double")["a"].to_pylist() == [1.5, None]


def test_streams_are_read_batch_by_batch() -> None:
    """No more is read than was asked for, and large batches are cut."""
    read = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(3):
            read.append(number)
            yield pa.record_batch({"a": pa.array(range(300_000), pa.int32())})

    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int32())]), batches())
    stream = conform(reader, parse_schema_ddl("a int"))
    assert next(stream).num_rows == 128 * 1024
    assert read == [0]


@pytest.mark.parametrize("make", [pa.ListViewArray, pa.LargeListViewArray])
def test_views_of_lists_are_read_in_order(make: type[pa.Array]) -> None:
    """Sliced, out of order, overlapping: each list has its items."""
    width = pa.int32() if make is pa.ListViewArray else pa.int64()
    view = make.from_arrays(pa.array([2, 0, 1], width), pa.array([1, 2, 2], width), pa.array([10, 20, 30]))
    assert conformed(pa.table({"a": view}), "a array<bigint>")["a"].to_pylist() == [[30], [10, 20], [20, 30]]
    assert conformed(pa.table({"a": view}).slice(1), "a array<bigint>")["a"].to_pylist() == [
        [10, 20],
        [20, 30],
    ]


@pytest.mark.parametrize(
    ("array", "ddl", "expected"),
    [
        (pa.array([[1, 2], None], pa.list_(pa.int32(), 2)), "array<int>", [[1, 2], None]),
        (pa.RunEndEncodedArray.from_arrays([2, 3], ["x", None]), "string", ["x", "x", None]),
        (pa.array([b"ab"], pa.binary(2)), "binary", [b"ab"]),
        (
            pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16], pa.binary(16))),
            "binary",
            [b"0" * 16],
        ),
        (pa.array(["x", "y"]).dictionary_encode(), "string", ["x", "y"]),
    ],
)
def test_other_encodings_of_the_same_values_fit(array: pa.Array, ddl: str, expected: list[Any]) -> None:
    """Fixed-size lists, run lengths, fixed-size bytes, transparent extensions, dictionaries."""
    assert conformed(pa.table({"a": array}), f"a {ddl}")["a"].to_pylist() == expected


def test_categories_of_polars_are_texts() -> None:
    """`Categorical` and `Enum`, whose texts Arrow keeps as views, fit a string column, also inside lists."""
    texts = ["b", None, "a", "b"]
    for type_ in (pl.Categorical(), pl.Enum(["a", "b"])):
        data = pl.DataFrame({"a": pl.Series(texts, dtype=type_), "b": [[text] for text in texts]})
        data = data.with_columns(pl.col("b").cast(pl.List(type_)))
        assert conformed(data, "a string, b array<string>").to_pydict() == {
            "a": texts,
            "b": [[text] for text in texts],
        }


def test_errors_survive_the_way_from_an_executor() -> None:
    """A misfit says the same after it was pickled."""
    error = DataMismatchError("a.b", "it is wrong", row=3, sample="a=1")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert (again.column, again.row) == ("a.b", 3)


def test_an_update_that_adds_a_row_no_times_is_left_out() -> None:
    """A diff of 0 says nothing, and is not stored."""
    data = pa.table({"a": pa.array([1, 2, 3], pa.int32()), "_diff": [0, 1, -3]})
    assert conformed(data, "a int", updates=True).to_pylist() == [{"a": 2, "_diff": 1}, {"a": 3, "_diff": -3}]


@pytest.mark.parametrize(
    ("key", "maps"),
    [
        (pa.string(), [[("a", 1), ("b", 2)], None, [], [("a", 1), ("b", 2), ("a", 3)]]),
        (pa.float64(), [[(0.0, 1)], [(1.0, 1), (2.0, 2)], None, [(-0.0, 1), (0.0, 2)]]),
        (pa.float64(), [[(math.nan, 1)], [(math.nan, 1)], [(0.5, 0)], [(math.nan, 1), (math.nan, 2)]]),
        (
            pa.struct({"x": pa.int32()}),
            [[], [({"x": 1}, 1), ({"x": 2}, 1)], [], [({"x": 1}, 1), ({"x": 1}, 2)]],
        ),
    ],
)
def test_a_map_has_each_key_once(key: pa.DataType, maps: list[Any]) -> None:
    """Two values for one key are refused with the row, and equal keys of different maps are not."""
    kinds = {"string": "string", "double": "double"}
    ddl = f"a map<{kinds.get(str(key), 'struct<x: int>')}, int>"
    type_ = pa.map_(key, pa.int32())
    assert conformed(column(maps[:3], type_), ddl).num_rows == 3
    with pytest.raises(DataMismatchError, match="more than once") as refusal:
        conformed(column(maps, type_), ddl)
    assert (refusal.value.row, refusal.value.column) == (3, "a")


def test_maps_inside_of_lists_and_maps_have_each_key_once() -> None:
    """At every level, and the row is that of the table."""
    inner = pa.map_(pa.string(), pa.int32())
    twice = [("k", 1), ("k", 2)]
    for type_, ddl, values in (
        (pa.list_(inner), "a array<map<string, int>>", [[[("k", 1)]], [[("k", 1)], twice]]),
        (pa.map_(pa.string(), inner), "a map<string, map<string, int>>", [[], [("x", twice)]]),
    ):
        with pytest.raises(DataMismatchError, match="more than once") as refusal:
            conformed(column(values, type_), ddl)
        assert refusal.value.row == 1


def test_all_unknown_columns_are_named() -> None:
    """Whoever leaves them out, or adds them, need not try one after the other."""
    with pytest.raises(DataMismatchError, match=r"`b` of the data .* nor `c`, `d`. .* evolve=True") as info:
        Conformer(pa.schema([(name, pa.int32()) for name in "abcd"]), parse_schema_ddl("a int"))
    assert info.value.column == "b"


def test_numbers_whose_type_nobody_chose_go_where_each_of_them_fits() -> None:
    """Python's 5 is a double too, and pandas makes floats of whole numbers with others missing."""
    assert conformed([{"d": 5}, {"d": None}], "d double")["d"].to_pylist() == [5.0, None]
    assert conformed([{"n": 5.0}], "n int")["n"].to_pylist() == [5]
    frame = pd.DataFrame({"n": [181.0, None], "d": [1, 2]})
    assert conformed(frame, "n bigint, d float").to_pylist() == [{"n": 181, "d": 1.0}, {"n": None, "d": 2.0}]
    for data, ddl in (
        ([{"n": 5.5}], "n int"),
        (pd.DataFrame({"n": [1.0, float("inf")]}), "n bigint"),
        ([{"n": 2.0**40}], "n int"),
        ([{"d": 2**53 + 1}], "d double"),
        ([{"d": 2**24 + 1}], "d float"),
    ):
        with pytest.raises(DataMismatchError, match="is not exactly a") as refused:
            conformed(data, ddl)
        assert refused.value.row is not None
    with pytest.raises(DataMismatchError, match="which is not bigint"):
        conformed(pa.table({"n": [5.0]}), "n bigint")
