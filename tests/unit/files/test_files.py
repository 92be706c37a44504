"""Files in and out: the same rows, whatever they were written as."""

from __future__ import annotations

import gzip
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq
import pytest

from instar.errors import DataMismatchError, InputNotFoundError, UsageError
from instar.files import Format, find_files, guess_format
from instar.files.read import TextOptions, read_files
from instar.files.write import write_file
from instar.schema import parse_schema_ddl

if TYPE_CHECKING:
    from pathlib import Path

ROWS = pa.table(
    {
        "n": pa.array([1, None, 3], pa.int64()),
        "t": pa.array(["a,b", "", None]),
        "at": pa.array([0, 1_000_000, None], pa.timestamp("us", "UTC")),
        "f": [1.5, float("nan"), float("inf")],
        "ok": [True, False, None],
    }
)


@pytest.mark.parametrize("kind", list(Format))
def test_what_was_written_is_read(kind: Format, tmp_path: Path) -> None:
    """In every format, by the types of the table; a text without characters is not null."""
    path = tmp_path / f"x.{kind}"
    assert write_file(path, kind, ROWS.schema, ROWS.to_batches()) == 3
    schema = parse_schema_ddl("n bigint, t string, at timestamp, f double, ok boolean")
    read = read_files([path], kind, schema).read_all()
    assert repr(read.to_pylist()) == repr(ROWS.to_pylist())
    with pytest.raises(UsageError, match="already exists"):
        write_file(path, kind, ROWS.schema, [])
    write_file(path, kind, ROWS.schema, [], replace=True)
    assert [it.name for it in tmp_path.iterdir()] == [path.name]


def test_csv_is_guessed_the_same_way_whether_there_is_a_table_or_not(tmp_path: Path) -> None:
    """A column that the table lacks has the type that it would have in a new table."""
    path = tmp_path / "x.csv"
    path.write_text("N,at,ok,name\n1,2026-11-15 12:00,true,x\n", encoding="utf-8")
    new = read_files([path], Format.CSV).schema
    beside = read_files([path], Format.CSV, parse_schema_ddl("n int")).schema
    assert [str(it) for it in new.types] == ["int64", "timestamp[us, tz=UTC]", "bool", "string"]
    assert [str(it) for it in beside.types] == ["int32", "timestamp[us, tz=UTC]", "bool", "string"]


def test_files_may_differ_in_their_columns(tmp_path: Path) -> None:
    """What one of them lacks is null, and a type is that of all of them together."""
    (tmp_path / "a.csv").write_text("a,b\n1,x\n", encoding="utf-8")
    with gzip.open(tmp_path / "b.csv.gz", "wt") as file:
        file.write("B,a\ny,2.5\n")
    (tmp_path / "_SUCCESS").touch()
    paths = find_files([str(tmp_path)])
    assert paths is not None
    assert read_files(paths, Format.CSV).read_all().to_pydict() == {"a": [1.0, 2.5], "b": ["x", "y"]}
    pq.write_table(pa.table({"a": pa.array([1], pa.int32())}), tmp_path / "c.parquet")
    pq.write_table(pa.table({"a": [2], "c": [3]}), tmp_path / "d.parquet")
    paths = find_files([f"{tmp_path}/*.parquet"])
    assert paths is not None
    assert read_files(paths, Format.PARQUET).read_all().to_pydict() == {"a": [1, 2], "c": [None, 3]}


def test_json_takes_the_types_of_the_table_at_every_level(tmp_path: Path) -> None:
    """Text becomes times, objects become maps, whole numbers become doubles; the rest stays as it is."""
    path = tmp_path / "x.json"
    path.write_text(
        '{"at": "2026-11-15", "S": {"d": "2026-01-01", "q": 1}, "m": {"k": 1}, "l": ["1", 2], "f": 1}\n'
        '\n{"s2": [1], "f": null, "c": 0.1}\n',
        encoding="utf-8",
    )
    ddl = "at timestamp, s struct<d: date>, m map<string, double>, l array<string>, f double, c decimal(5,2)"
    read = read_files([path], Format.JSON, parse_schema_ddl(ddl)).read_all()
    first, second = read.to_pylist()
    assert first["at"].year == 2026
    assert (str(first["S"]["d"]), first["S"]["q"]) == ("2026-01-01", 1)
    assert (first["m"], first["l"], first["f"]) == ([("k", 1.0)], ["1", "2"], 1.0)
    assert (second["s2"], str(second["c"]), second["S"]) == ([1], "0.10", None)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"n": "x"}', "'x' is not of its type int, in x.json"),
        ('{"n": true}', "'true' is not of its type int"),
        ('{"n": 1.5}', "'1.5' is not of its type int"),
        ('{"n": 3000000000}', "'3000000000' is not of its type int"),
        ('{"l": {}}', "is not of its type array<int>"),
        ('{"q": [1, "x"]}', "not of one type"),
    ],
)
def test_json_that_does_not_fit_is_refused(text: str, why: str, tmp_path: Path) -> None:
    """By column, value and type."""
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    with pytest.raises(DataMismatchError) as info:
        read_files([tmp_path / "x.json"], Format.JSON, parse_schema_ddl("n int, l array<int>"))
    assert why in str(info.value)


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("x.json", b"[1", "line 1 of .*x.json is not JSON"),
        ("x.json", b"\n3", "line 2 of .*x.json is not an object"),
        ("x.json", b"\xff", "cannot read .*x.json"),
        ("x.csv", b"a,b\n1\n", "cannot read .*x.csv.*Expected 2 columns, got 1"),
        ("x.parquet", b"PAR1", "cannot read .*x.parquet"),
    ],
)
def test_files_that_are_broken_are_named(name: str, data: bytes, why: str, tmp_path: Path) -> None:
    """With what is wrong, and where."""
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError, match=why):
        read_files([tmp_path / name], Format(name.partition(".")[2])).read_all()


def test_files_are_looked_for_before_anything_else(tmp_path: Path) -> None:
    """One that is not there is an error at once, and one that is elsewhere is left to Spark."""
    for path in (str(tmp_path / "no.csv"), f"{tmp_path}/*.csv"):
        with pytest.raises(InputNotFoundError):
            find_files([path])
    assert find_files(["s3://bucket/x.csv"]) is None


def test_csv_may_have_another_delimiter(tmp_path: Path) -> None:
    """As spreadsheets write it where a comma is in the numbers; a value may go over several lines."""
    (tmp_path / "x.csv").write_text('a;b\n"1\n2";3\n', encoding="utf-8")
    read = read_files([tmp_path / "x.csv"], Format.CSV, options=TextOptions(";")).read_all()
    assert read.to_pydict() == {"a": ["1\n2"], "b": [3]}


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.parquet"])
def test_whoever_waits_hears_how_many_bytes_were_read(tmp_path: Path, name: str) -> None:
    """Of guessing and of reading, for all files together: numbers that only grow, up to their sizes."""
    rows = pa.table({"n": list(range(700_000)), "text": [f"value {at}" for at in range(700_000)]})
    paths = [tmp_path / f"{at}{name}" for at in (1, 2)]
    for path in paths:
        if name.endswith(".parquet"):
            pq.write_table(rows, path)
        else:
            with pa.output_stream(path, compression="detect") as out:
                pc_csv.write_csv(rows, out)
    size = sum(path.stat().st_size for path in paths)
    looked: list[int] = []
    told: list[int] = []
    kind = guess_format([str(paths[0])])
    read = read_files(paths, kind, look=looked.append, tell=told.append)
    assert told == []
    assert sum(batch.num_rows for batch in read) == 1_400_000
    for heard in (looked, told) if kind is Format.CSV else (told,):
        assert heard == sorted(heard)
        assert len(set(heard)) >= 2
        assert paths[0].stat().st_size < heard[-1] <= size


def test_csv_that_nobody_reads_to_its_end_keeps_no_process_from_ending(tmp_path: Path) -> None:
    """Arrow reads ahead in threads: whoever stops early, because of an error or for good, still gets away."""
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + f"1,{'x' * 70}\n" * 400_000, encoding="utf-8")
    leaving = (
        "import sys; from pathlib import Path; from instar.files.read import TextOptions, _csv_batches\n"
        "for _ in range(3):\n"
        "    with _csv_batches(Path(sys.argv[1]), TextOptions()) as (header, batches):\n"
        "        assert header == ['a', 'b']\n"
        "        assert next(batches).column(1)[0].as_py() == 'x' * 70\n"
        "sys.exit(3)"
    )
    command = [sys.executable, "-c", leaving, str(path)]
    assert subprocess.run(command, timeout=600, check=False).returncode == 3


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.csv", b"a,b,a\n1,2,3\n", "two columns called `a`"),
        ("x.csv", b",a\n0,1\n", "column 1 of .* has no name"),
        ("x.csv", b"a;b\n0;1\n", "add --delimiter ';'"),
        ("x.csv", b"a,b\n0,caf\xe9\n", "Save it as UTF-8"),
        ("x.csv", b"a,A\n1,2\n", "two columns `a` and `A`, which differ only in case"),
        ("x.csv", b"", "is empty, and CSV begins with the names of its columns"),
        ("x.csv.xz", b"\xfd7zXZ", "unpack it first, or compress it as .gz"),
    ],
)
def test_csv_that_would_lose_values_is_refused(tmp_path: Path, name: str, text: bytes, said: str) -> None:
    """Two columns of one name cannot both be kept, nor one without; the remedy is told."""
    (tmp_path / name).write_bytes(text)
    with pytest.raises(UsageError, match=said):
        read_files([tmp_path / name], Format.CSV).read_all()
