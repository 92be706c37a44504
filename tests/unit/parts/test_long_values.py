"""Values of many megabytes: they are copied no more often than Parquet itself must, and have short bounds."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from instar.parts import write_part
from instar.schema import parse_schema_ddl

SCHEMA = parse_schema_ddl("v binary, t string, s struct<t: string>, l array<map<string, binary>>")
MEMBERS = pa.struct([("t", pa.string())])
LISTED = pa.list_(pa.map_(pa.string(), pa.binary()))
MEASURE = """
import resource, sys
import pyarrow as pa
import instar

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

with instar.open(sys.argv[1]) as store:
    table = store.create_table("t", "v binary")
    table.append(pa.table({"v": [b"small"]}))
    size = 128 << 20
    long = pa.table({"v": pa.array([bytes(size)])})
    before = peak()
    table.append(long)
    print((peak() - before) / size)
"""


def test_a_long_value_is_copied_few_times(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Writing it takes less than five times its size: the copies of Parquet, and no copy of statistics."""
    place = tmp_path_factory.mktemp("long") / "store"
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, place], capture_output=True, text=True, check=True, timeout=120
    )
    assert float(done.stdout) < 5


def test_long_values_have_no_dictionary_and_no_bounds_in_the_file() -> None:
    """Parquet would copy them for either, and keep neither."""
    long, short = "x" * (2 << 20), "y"
    entries = pa.array([[[("k", long.encode())]], None, None], LISTED)
    members = pa.array([{"t": short}] * 3, MEMBERS)
    rows = pa.table({"v": [b"abc"] * 3, "t": [long, None, None], "s": members, "l": entries})
    group = pq.ParquetFile(pa.BufferReader(write_part(rows, SCHEMA).data)).metadata.row_group(0)
    chunks = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
    assert {path: bool(chunk.statistics) for path, chunk in chunks.items()} == {
        "f1": True,
        "f2": False,
        "f3.f4": True,
        "f5.list.element.key_value.key": True,
        "f5.list.element.key_value.value": False,
    }
    assert chunks["f1"].has_dictionary_page
    assert not chunks["f2"].has_dictionary_page


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("before", range(5))
def test_bounds_of_long_texts_hold_wherever_a_character_ends(width: int, before: int) -> None:
    """Only the beginnings of long texts are looked at, which may end inside a character."""
    character = "aé☃😀"[width - 1]
    low, high = ("b" * before + character * 500, "c" * before + character * 501)
    members = pa.array([{"t": low}, None], MEMBERS)
    entries = pa.array([None, []], LISTED)
    rows = pa.table({"v": [low.encode(), high.encode()], "t": [low, high], "s": members, "l": entries})
    found = write_part(rows, SCHEMA).part.stats[2]
    assert isinstance(found.min, str)
    assert isinstance(found.max, str)
    assert low.startswith(found.min)
    assert found.max.encode() > high.encode()
    assert 56 < len(found.min.encode()) <= 64
    assert len(found.max.encode()) <= 64
