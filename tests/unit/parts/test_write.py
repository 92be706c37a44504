"""What a part's file looks like inside, and how streams are cut into parts."""

from __future__ import annotations

import math
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from instar.errors import UsageError
from instar.parts import NewPart, PartLimits, RowOrder, decode_row, may_overlap, write_part, write_parts
from instar.schema import Schema, parse_schema_ddl
from tests.properties.schema.data import batch_of, random_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.properties.schema.data import Row

FLOATS = parse_schema_ddl(
    "a double, b float, s struct<c: double>, l array<double>, m map<double, float>, i int"
)


def chunks_of(new: NewPart) -> dict[str, pq.ColumnChunkMetaData]:
    """Return the columns of the first row group by path."""
    group = pq.ParquetFile(pa.BufferReader(new.data)).metadata.row_group(0)
    return {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}


def floats(a: float, c: float) -> NewPart:
    """Write a part with these floats."""
    row = {1: a, 2: 1.5, 3: {4: c}, 5: [math.nan], 6: [(0.5, 1.5)], 7: 1}
    rows = [row, row, dict.fromkeys((1, 2, 3, 5, 6, 7))]
    return write_part(pa.Table.from_batches([batch_of(rows, FLOATS, Random(0))]), FLOATS)


def test_floats_have_no_dictionary() -> None:
    """At any level: a dictionary that has only -0.0 would not be searched for 0.0."""
    for path, chunk in chunks_of(floats(1.0, 1.0)).items():
        has_dictionary = any("DICTIONARY" in encoding for encoding in chunk.encodings)
        assert has_dictionary == (path == "f7")


def test_only_values_that_repeat_have_a_dictionary() -> None:
    """At any level outside of lists; one of values that are all different would be larger than they are."""
    schema = parse_schema_ddl(
        "a bigint, b bigint, c string, d string, e decimal(12,2), s struct<f: int, g: int>, h boolean, "
        "i array<bigint>, j decimal(30,2), k bigint"
    )
    texts = [f"some text {at}" for at in range(100)]
    few = [at % 7 for at in range(100)]
    table = pa.table(
        {
            "a": range(100),
            "b": few,
            "c": texts,
            "d": [texts[at] for at in few],
            "e": pa.array([Decimal(at) for at in range(100)], pa.decimal128(12, 2)),
            "s": pa.array(
                [None, *({"f": at, "g": at % 7} for at in range(99))],
                pa.struct([pa.field("f", pa.int32()), pa.field("g", pa.int32())]),
            ),
            "h": [at % 2 == 0 for at in range(100)],
            "i": [[at] for at in range(100)],
            "j": pa.array([Decimal(at) for at in few], pa.decimal128(30, 2)),
            "k": pa.nulls(100, pa.int64()),
        }
    )
    for order in RowOrder:
        chunks = chunks_of(write_part(table, schema, [1], order=order))
        found = {path for path, chunk in chunks.items() if "RLE_DICTIONARY" in chunk.encodings}
        assert found == {"f2", "f4", "f6.f8", "f10.list.element", "f11", "f12"}


def test_floats_with_nan_have_no_bounds_in_the_file() -> None:
    """Decided for each column of each part: NaN is greater than any bound that Parquet would keep."""
    with_bounds = {path for path, chunk in chunks_of(floats(math.nan, 1.0)).items() if chunk.statistics}
    assert with_bounds == {"f2", "f3.f4", "f7"}
    with_bounds = {path for path, chunk in chunks_of(floats(1.0, math.nan)).items() if chunk.statistics}
    assert with_bounds == {"f1", "f2", "f7"}
    without_index = {
        path for path, chunk in chunks_of(floats(math.nan, 1.0)).items() if not chunk.has_column_index
    }
    assert without_index == {"f1", "f5.list.element", "f6.key_value.key", "f6.key_value.value"}


def test_a_column_that_lost_its_statistics_has_no_bounds_in_the_file() -> None:
    """Without a count of NaN, nobody knows that there is none."""
    schema = parse_schema_ddl("a int, b double")
    table = pa.table({"a": pa.array([1], pa.int32()), "b": [1.5]})
    new = write_part(table, schema, [1], limits=PartLimits(stats_bytes=0))
    assert {path for path, chunk in chunks_of(new).items() if chunk.statistics} == {"f1"}


def test_files_are_compressed_checked_and_without_int96() -> None:
    """Zstandard, microseconds in 64 bits, and a checksum for every page."""
    schema = parse_schema_ddl("t timestamp, n timestamp_ntz, d date, y interval day to second")
    rows = random_rows(Random(1), schema, 20)
    new = write_part(pa.Table.from_batches([batch_of(rows, schema, Random(0))]), schema)
    file = pq.ParquetFile(pa.BufferReader(new.data))
    assert [file.schema.column(at).physical_type for at in range(4)] == ["INT64", "INT64", "INT32", "INT64"]
    logical = [str(file.schema.column(at).logical_type) for at in range(2)]
    assert all("microseconds" in text for text in logical)
    assert "isAdjustedToUTC=true" in logical[0]
    assert "isAdjustedToUTC=false" in logical[1]
    assert {chunk.compression for chunk in chunks_of(new).values()} == {"ZSTD"}


def test_members_of_structs_that_may_be_null_are_optional_in_the_file() -> None:
    """A member that is not null is null where its struct is; elsewhere what is not null stays so."""
    schema = parse_schema_ddl("a int not null, s struct<b: int not null>, r struct<c: int not null> not null")
    rows = [{1: 1, 2: None, 4: {5: 1}}]
    new = write_part(pa.Table.from_batches([batch_of(rows, schema, Random(0))]), schema)
    parquet = pq.ParquetFile(pa.BufferReader(new.data)).schema
    assert [parquet.column(at).max_definition_level for at in range(3)] == [0, 2, 0]


# --- times and diffs ------------------------------------------------------------------------------


def with_columns(**columns: list[int]) -> NewPart:
    """Write a part with an `a` and more."""
    size = len(next(iter(columns.values()), [0]))
    table = pa.table({"a": pa.array(range(size), pa.int32()), **{k: pa.array(v) for k, v in columns.items()}})
    return write_part(table, parse_schema_ddl("a int"))


def test_times_and_diffs_cost_nothing_if_they_are_the_same() -> None:
    """One time, one diff: they are in the metadata, and the file has no column for them."""
    same = with_columns(_ts=[7, 7], _diff=[-1, -1])
    assert (same.part.ts_min, same.part.ts_max, same.part.diff_min, same.part.diff_max) == (7, 7, -1, -1)
    assert set(chunks_of(same)) == {"f1"}
    differ = with_columns(_ts=[7, 8], _diff=[-1, 1])
    assert (differ.part.ts_min, differ.part.ts_max, differ.part.diff_min, differ.part.diff_max) == (
        7,
        8,
        -1,
        1,
    )
    assert set(chunks_of(differ)) == {"f1", "_ts", "_diff"}
    none = with_columns()
    assert (none.part.ts_min, none.part.ts_max, none.part.diff_min, none.part.diff_max) == (None, None, 1, 1)


def test_a_given_time_is_recorded() -> None:
    """A time for all rows stands in the metadata."""
    table = pa.table({"a": pa.array([1], pa.int32())})
    part = write_part(table, parse_schema_ddl("a int"), ts=9).part
    assert (part.ts_min, part.ts_max) == (9, 9)


# --- cutting --------------------------------------------------------------------------------------

NUMBERS = parse_schema_ddl("a bigint, b bigint")


def numbers(batches: int, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of random numbers, which do not compress."""
    random = np.random.default_rng(0)
    for _ in range(batches):
        yield pa.record_batch({name: random.integers(-(2**62), 2**62, rows) for name in "ab"})


def test_parts_come_near_their_target() -> None:
    """However the stream is batched, all but the last part are about as large as they should be."""
    limits = PartLimits(file_bytes=400_000, buffer_bytes=10**9)
    for batches, rows in ((200, 1000), (1, 200_000), (4, 50_000)):
        parts = [new.part for new in write_parts(numbers(batches, rows), NUMBERS, limits=limits)]
        assert sum(part.rows for part in parts) == 200_000
        assert 300_000 < parts[0].size < 1_000_000  # nobody knows yet that these rows do not compress
        assert all(300_000 < part.size < 500_000 for part in parts[1:-1])
        assert [part.run for part in parts] == list(range(len(parts)))


def test_compression_is_learned() -> None:
    """Rows that compress well make larger parts, as far as the buffer goes."""
    limits = PartLimits(file_bytes=100_000, buffer_bytes=1_000_000)
    constant = (pa.record_batch({"a": [at] * 1000, "b": [at] * 1000}) for at in range(400))
    rows = [new.part.rows for new in write_parts(constant, NUMBERS, limits=limits)]
    assert rows[0] * 16 == pytest.approx(200_000, rel=0.2)
    assert rows[1] * 16 == pytest.approx(1_000_000, rel=0.2)


def test_no_more_is_read_than_one_part_needs() -> None:
    """The stream is not read ahead: what is in memory is bounded by one part."""
    read = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal read
        for batch in numbers(100, 1000):
            read += 1
            yield batch

    parts = write_parts(counted(), NUMBERS, limits=PartLimits(file_bytes=160_000))
    next(parts)
    assert read <= 22


def test_no_rows_make_no_parts() -> None:
    """Empty batches leave nothing behind."""
    assert list(write_parts([], NUMBERS)) == []
    assert list(write_parts(numbers(3, 0), NUMBERS)) == []
    with pytest.raises(UsageError):
        write_part(pa.Table.from_batches(numbers(1, 0)), NUMBERS)


@pytest.mark.parametrize("order", RowOrder)
def test_parts_say_how_they_are_ordered(order: RowOrder) -> None:
    """Sorted parts are runs of their own, rows that came sorted are one run, and others are not ordered."""
    rows = pa.table({"a": [3, 1, 2, 9, 8, 7], "b": [0] * 6})
    if order is RowOrder.SORTED:
        rows = rows.sort_by("a")
    halves = [rows.slice(0, 3).to_batches()[0], rows.slice(3).to_batches()[0]]
    parts = list(write_parts(halves, NUMBERS, [1], order=order, limits=PartLimits(buffer_bytes=48)))
    assert [new.part.ordered for new in parts] == [order is not RowOrder.NONE] * 2
    assert [new.part.run for new in parts] == ([0, 1] if order is RowOrder.SORT else [0, 0])
    written = [pq.read_table(pa.BufferReader(new.data))["f1"].to_pylist() for new in parts]
    expected = [[3, 1, 2], [9, 8, 7]] if order is RowOrder.NONE else [[1, 2, 3], [7, 8, 9]]
    assert written == expected
    assert [decode_row(new.part.first_row or b"")[0] for new in parts] == [(1, 1), (1, 7)]
    assert [decode_row(new.part.last_row or b"")[0] for new in parts] == [(1, 3), (1, 9)]
    assert not may_overlap(parts[0].part, parts[1].part)


@pytest.mark.parametrize(
    ("values", "first", "last"),
    [
        ([None, 1.5], None, 1.5),
        ([2.5, 1.5], 1.5, 2.5),
        ([None, None], None, None),
        ([1.5, math.nan], 1.5, "nan"),
        ([math.nan, math.nan], "nan", "nan"),
    ],
)
def test_unordered_parts_know_their_leading_column(
    values: list[float | None], first: object, last: object
) -> None:
    """Null is least and NaN greatest, as in the order of rows."""
    table = pa.table({"a": pa.array(values, pa.float64())})
    part = write_part(table, parse_schema_ddl("a double"), order=RowOrder.NONE).part
    bounds = [decode_row(row or b"")[0][1] for row in (part.first_row, part.last_row)]
    assert ["nan" if bound != bound else bound for bound in bounds] == [first, last]  # noqa: PLR0124


def test_row_groups_are_cut_by_rows_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part has several row groups if it is large, each sorted after the one before."""
    monkeypatch.setattr("instar.parts.write.ROW_GROUP_BYTES", 16_000)
    table = pa.Table.from_batches(numbers(1, 5000))
    file = pq.ParquetFile(pa.BufferReader(write_part(table, NUMBERS, [1]).data))
    assert file.metadata.num_row_groups == 5
    assert file.read()["f1"].to_pylist() == sorted(table["a"].to_pylist())


def test_what_is_present_is_returned() -> None:
    """The fields that a deletion would lose, for the commit to check."""
    schema = parse_schema_ddl("a int, b int, s struct<c: int, d: int>")
    rows = [{1: 1, 2: None, 3: {4: None, 5: 2}}]
    assert _write(rows, schema).present == {1, 3, 5}


def _write(rows: list[Row], schema: Schema) -> NewPart:
    return write_part(pa.Table.from_batches([batch_of(rows, schema, Random(0))]), schema)
