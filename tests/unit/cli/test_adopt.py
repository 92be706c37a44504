"""`instar adopt` and `instar analyze`: what they say, and that a directory is taken once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

import instar as library
from tests.unit.cli.command import instar

if TYPE_CHECKING:
    from pathlib import Path


def test_a_directory_is_adopted(tmp_path: Path) -> None:
    """A table is made from the files; again, there is nothing new; and what does not fit leaves no table."""
    lake, files = str(tmp_path / "lake"), tmp_path / "files" / "day=2026-11-15"
    files.mkdir(parents=True)
    pq.write_table(pa.table({"a": [1, 2, 3], "x": [0.5, 1.5, 2.5]}), files / "x.parquet")
    instar("init", lake)
    missing = instar("adopt", str(files), "--table", "t", "--store", lake)
    assert missing.returncode == 3
    done = instar("adopt", str(tmp_path / "files"), "--table", "t", "--create", "--store", lake)
    assert done.stdout.startswith("Adopted 1 file (")
    assert done.stdout.endswith("into t under schema 0: 3 rows.\n")
    again = instar("adopt", str(tmp_path / "files"), "--table", "t", "--store", lake)
    assert again.stdout == "Nothing new. 1 file had been adopted before.\n"
    report = json.loads(instar("adopt", str(files), "--table", "t", "--json", "--store", lake).stdout)
    assert (report["files"], report["known"]) == (0, 1)
    assert instar("analyze", "t", "--store", lake).stdout.startswith("Read 1 file (")
    assert instar("analyze", "t", "--store", lake).stdout == "Nothing to do: all parts have statistics.\n"
    with library.open(lake) as store:
        assert str(store.table("t").schema) == "a bigint, x double, day date"
        assert store.table("t").count("x > 1 and day = '2026-11-15'") == 2
        assert store.table("t").history()[1].what.startswith("adopted 1 file, 3 rows at ")
    (tmp_path / "bad.parquet").write_bytes(b"hello")
    bad = instar("adopt", str(tmp_path / "bad.parquet"), "--table", "u", "--create", "--store", lake)
    assert "not a Parquet file" in bad.stderr
    assert instar("tables", "--store", lake, "--json").stdout.count('"u"') == 0
