"""docs/format.md is true of what is written, read here with nothing but Parquet and MessagePack."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import instar
from instar.state import Appended

if TYPE_CHECKING:
    from pathlib import Path

    from instar import Table
    from instar.state import Part

    Written = list[tuple[Part, pq.ParquetFile]]

COLUMNS = """
    flag boolean, small smallint, k int not null, price double, ratio double, text string,
    day date, at timestamp, local timestamp_ntz, amount decimal(9,2),
    addr struct<city: string not null, tags: array<struct<x: int>>>, wait interval day to second
"""
PARQUET = """
    optional boolean field_id=1 f1;
    optional int32 field_id=2 f2 (Int(bitWidth=16, isSigned=true));
    required int32 field_id=3 f3;
    optional double field_id=4 f4;
    optional double field_id=5 f5;
    optional binary field_id=6 f6 (String);
    optional int32 field_id=7 f7 (Date);
    optional int64 field_id=8 f8 (Timestamp(isAdjustedToUTC=true, timeUnit=microseconds));
    optional int64 field_id=9 f9 (Timestamp(isAdjustedToUTC=false, timeUnit=microseconds));
    optional int32 field_id=10 f10 (Decimal(precision=9, scale=2));
    optional group field_id=11 f11 {
    optional binary field_id=12 f12 (String);
    optional group field_id=13 f13 (List) {
    repeated group field_id=-1 list {
    optional group field_id=-1 element {
    optional int32 field_id=14 f14;
    }
    }
    }
    }
    optional int64 field_id=15 f15;
"""
UPDATES = "required int64 field_id=-1 _ts; required int64 field_id=-1 _diff;"


def parts_of(table: Table) -> list[Part]:
    """Return the parts that the commits of a table carry."""
    steps = (step for entry in table._log.entries() for step in entry.commit.steps)
    return [part for step in steps if isinstance(step, Appended) for part in step.batch.parts]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Return two parts of a sorted table: rows of one time, and updates of several."""
    rows = pa.table(
        {
            "k": [2, 1, 3],
            "price": [1.5, math.nan, -0.0],
            "ratio": [0.5, None, 0.25],
            "text": ["b", "x" * 100, "a"],
            "addr": [None, {"city": "Turin", "tags": None}, {"city": "Rome", "tags": [{"x": 1}]}],
        }
    )
    with instar.open(tmp_path / "lake") as store:
        table = store.create_table("t", COLUMNS, order_by=["addr.city", "k"])
        table.append(rows)
        times = [table.upper, table.upper + 1]
        table.apply(pa.table({"k": [4, 5], "_ts": times, "_diff": [1, 2]}))
        parts = parts_of(table)
    return [(part, pq.ParquetFile(tmp_path / "lake" / part.key)) for part in parts]


def tokens(text: str) -> list[str]:
    """Return the words of a Parquet schema, without what pyarrow says of older versions of the format."""
    kept = re.sub(r", is_from_converted_type=\w+, force_set_converted_type=\w+", "", text)
    return kept.split()


def test_a_part_is_named_by_its_write_its_task_and_a_number(written: Written) -> None:
    """In process there is one task, which is 0."""
    for part, _ in written:
        assert re.fullmatch(r"tables/[0-9a-f]{32}/parts/[0-9a-f]{32}-0-0\.parquet", part.key)


def test_columns_are_named_by_field_ids_and_times_are_there_only_if_they_differ(written: Written) -> None:
    """Every field carries its id at every level; `_ts` and `_diff` have none."""
    (_, rows), (_, updates) = written
    for file, expected in ((rows, PARQUET), (updates, PARQUET + UPDATES)):
        text = str(file.schema)
        assert tokens(text[text.index("{") + 1 : text.rindex("}")]) == tokens(expected)


def test_columns_are_encoded_as_the_page_says(written: Written) -> None:
    """Zstandard, page indexes, no dictionaries of floats, and no bounds of floats that hold NaN."""
    _, file = written[0]
    group = file.metadata.row_group(0)
    columns = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
    assert file.metadata.format_version == "2.6"
    assert {column.compression for column in columns.values()} == {"ZSTD"}
    assert {name for name, column in columns.items() if not column.has_offset_index} == set()
    without = {name for name, column in columns.items() if not column.has_dictionary_page}
    floats, booleans, unique = {"f4", "f5"}, {"f1"}, {"f3", "f6", "f11.f12"}
    assert without == floats | booleans | unique  # Parquet has no dictionaries of booleans
    assert {name for name, column in columns.items() if not column.is_stats_set} == {"f4"}
    assert b"ARROW:schema" in file.metadata.metadata


def test_bounds_of_rows_are_pairs_of_field_id_and_value(written: Written) -> None:
    """They follow the order of rows, and end where a text was cut."""
    part, _ = written[0]
    first, last = (msgspec.msgpack.decode(row or b"") for row in (part.first_row, part.last_row))
    # The least row is the one without an address: its city is null.
    assert first[:5] == [[12, None], [3, 2], [1, None], [2, None], [4, 1.5]]
    assert last[0] == [12, "Turin"]
    assert last[1] == [3, 1]
    name, price = last[4]
    assert name == 4
    assert math.isnan(price)
    assert last[-1] == [6, "x" * 63 + "y"]


def test_bounds_of_an_unordered_part_have_one_pair(tmp_path: Path) -> None:
    """It is made from statistics: nil is least, and NaN greatest."""
    with instar.open(tmp_path / "lake") as store:
        table = store.create_table("t", "price double")
        table.append(pa.table({"price": [1.0, None, math.nan]}))
        (part,) = parts_of(table)
    assert not part.ordered
    assert msgspec.msgpack.decode(part.first_row or b"") == [[1, None]]
    ((field_id, greatest),) = msgspec.msgpack.decode(part.last_row or b"")
    assert field_id == 1
    assert math.isnan(greatest)
