"""Rows on the command line, without Spark: files in, rows out, and what people are told about it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import instar as library
from instar.files import Format
from tests.unit.cli.command import instar

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a store, which is the one that commands find, and let no command start Spark."""
    place = tmp_path / "lake"
    with library.open(place) as store:
        store.initialise()
    monkeypatch.setenv("INSTAR_STORE", str(place))
    monkeypatch.setattr("instar.spark.session.local_session", lambda *_: pytest.fail("Spark was started"))
    return place


def answer(*arguments: str) -> Any:  # noqa: ANN401 -- whatever JSON says
    """Run a command with `--json`, and return what it prints."""
    done = instar(*arguments, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def said(*arguments: str) -> str:
    """Run a command that works, and return what it prints."""
    done = instar(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def write(path: Path, text: str) -> str:
    """Write a file and return its name."""
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_csv_is_imported_the_same_way_into_old_tables_and_new(lake: Path) -> None:
    """Columns that --evolve adds have the types that --create gives them, and are named."""
    text = "n,at,ok,price,zip\n1,2026-11-15 12:00,true,1.5,01067\n"
    said("import", write(lake.parent / "a.csv", text), "-t", "new", "--create")
    said("import", write(lake.parent / "b.csv", "n\n1\n"), "-t", "old", "--create")
    refused = instar("import", str(lake.parent / "a.csv"), "-t", "old")
    assert refused.returncode == 2
    assert "`at`" in refused.stderr
    assert "nor `ok`, `price`, `zip`" in refused.stderr
    evolved = said("import", str(lake.parent / "a.csv"), "-t", "old", "--evolve")
    assert "Added 4 columns: at timestamp, ok boolean, price double, zip string." in evolved
    with library.open(lake) as store:
        assert store["old"].schema.names == store["new"].schema.names
        assert str(store["old"].schema) == str(store["new"].schema)


def test_csv_of_any_size_is_read_by_one_set_of_rules(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark splits a quoted text at its line break, and knows other nulls: it is not asked, however large."""
    monkeypatch.setattr("instar.cli.sources._MOST", dict.fromkeys(Format, 0))
    text = 'said,n,at\n"one\ntwo, ""three""",NA,2026-11-15T12:00+01\nx,1,2026-11-15 11:00\n'
    said("import", write(lake.parent / "a.csv", text), "-t", "t", "--create")
    assert answer("head", "t") == [
        {"said": 'one\ntwo, "three"', "n": None, "at": "2026-11-15T11:00:00Z"},
        {"said": "x", "n": 1, "at": "2026-11-15T11:00:00Z"},
    ]


def test_texts_that_stand_for_no_value_are_null_where_they_can_be_nothing_else(lake: Path) -> None:
    """NA among numbers is null, in new tables and old; among texts it is text, unless --null is said."""
    file = write(lake.parent / "a.csv", 'mm,sex,code\n39.1,male,1\nNA,NA,2\n"NA",female,\\N\n')
    created = said("import", file, "-t", "t", "--create")
    assert "Read NA as null in mm.\nRead \\N as null in code.\n" in created
    assert "Kept NA as text in sex: --null NA makes it null." in created
    with library.open(lake) as store:
        assert str(store["t"].schema) == "mm double, sex string, code bigint"
    rows = [
        {"mm": 39.1, "sex": "male", "code": 1},
        {"mm": None, "sex": "NA", "code": 2},
        {"mm": None, "sex": "female", "code": None},
    ]
    assert answer("head", "t") == rows
    again = answer("import", file, "-t", "t", "--null", "NA", "--null", "male")
    assert again["nulls"] == {"\\N": ["code"]}
    assert again["not_nulls"] == {}
    assert [row["sex"] for row in answer("head", "t")][3:] == [None, None, "female"]
    (lake.parent / "b.csv").write_text("mm\nnone\n", encoding="utf-8")
    refused = instar("import", str(lake.parent / "b.csv"), "-t", "t")
    assert "'none' is not of its type double" in refused.stderr


def test_a_former_name_needs_leave(lake: Path) -> None:
    """The error names both remedies, and each of them works."""
    with library.open(lake) as store:
        table = store.create_table("t", "user string")
        table.evolve().rename_column("user", "user_id").commit()
    file = write(lake.parent / "a.csv", "user\nada\n")
    for asked, remedy in ((["--evolve"], "--allow-former-names"), ([], "is called `user_id` since schema 1")):
        refused = instar("import", file, "-t", "t", *asked)
        assert refused.returncode == 2
        assert "--schema 0" in refused.stderr
        assert remedy in refused.stderr
    assert answer("import", file, "-t", "t", "--schema", "0")["schema_id"] == 0
    assert answer("import", file, "-t", "t", "--evolve", "--allow-former-names")["added"] == ["user string"]
    assert answer("head", "t") == [{"user_id": "ada", "user": None}, {"user_id": None, "user": "ada"}]


def test_parquet_of_pandas_is_taken(lake: Path) -> None:
    """Nanoseconds too, as long as none of them would be lost; one that would is refused by its row."""
    times = pd.to_datetime(["2026-11-15 12:00:00.000001"]).astype("datetime64[ns]")
    frame = pd.DataFrame({"at": times, "n": pd.array([1], "UInt16")})
    frame.to_parquet(lake.parent / "x.parquet")
    assert answer("import", str(lake.parent / "x.parquet"), "-t", "t", "--create")["rows"] == 1
    assert answer("head", "t") == [{"at": "2026-11-15T12:00:00.000001", "n": 1}]
    with library.open(lake) as store:
        made = store.create_table("u", pa.Schema.from_pandas(frame[["at"]], preserve_index=False))
        assert str(made.schema) == "at timestamp_ntz"
    frame["at"] += pd.Timedelta(1, "ns")
    pq.write_table(pa.Table.from_pandas(frame), lake.parent / "x.parquet")
    refused = instar("import", str(lake.parent / "x.parquet"), "-t", "t")
    assert refused.returncode == 2
    assert "Row 0" in refused.stderr


def test_an_import_takes_a_key_a_token_a_condition_and_a_delimiter(lake: Path) -> None:
    """A key is not checked by it, and it says so; with a token it happens once."""
    file = write(lake.parent / "a.csv", "k;v\n1;a\n2;b\n3;c\n")
    options = ("-t", "t", "--delimiter", ";", "--where", "k > 1", "--token", "one")
    text = said("import", file, *options, "--create", "--key", "k")
    assert "Imported 2 rows into t under schema 0" in text
    assert "The key (k) was not checked: `instar upsert` replaces rows by it." in text
    again = "Nothing was written: commit 1 of t, by the same token, has these 2 rows."
    assert said("import", file, *options).splitlines()[0] == again
    assert answer("import", file, *options)["repeated"]
    assert answer("count", "t")["rows"] == 2
    both = said("upsert", write(lake.parent / "c.csv", "k,v\n2,a\n9,n\n"), "-t", "t")
    assert both.startswith("Upserted 2 rows into t under schema 0, 1 of them in place of others: 1 part, ")
    said("delete", "t", "k = 9", "--yes")
    upserted = said("upsert", write(lake.parent / "b.csv", "k,v\n3,z\n"), "-t", "t")
    assert "Upserted" in upserted
    assert answer("head", "t", "--where", "k = 3") == [{"k": 3, "v": "z"}]
    assert "one character" in instar("import", file, "-t", "t", "--delimiter", ";;").stderr


@pytest.mark.parametrize("name", ["nosuch.csv", "no/*.parquet", "nosuch.json.gz"])
def test_missing_files_are_reported_at_once(lake: Path, name: str) -> None:
    """Before anything is started or created."""
    done = instar("import", str(lake.parent / name), "-t", "t", "--create")
    assert done.returncode == 3
    assert "there is no file" in done.stderr
    assert answer("tables") == []


def test_a_failed_import_leaves_no_table(lake: Path) -> None:
    """A table that was made for it goes with it, and the error names what does not fit."""
    with library.open(lake) as store:
        store.create_table("n", "n int, code string")
    bad = write(lake.parent / "bad.csv", "n,code\n1,x\nmany,y\n")
    done = instar("import", bad, "-t", "n")
    assert (
        "column `n` of the data does not fit: 'many' is not of its type int, in bad.csv. Row 1" in done.stderr
    )
    assert instar("import", write(lake.parent / "c.csv", "a,b\n1\n"), "-t", "t", "--create").returncode == 2
    assert [table["name"] for table in answer("tables")] == ["n"]


def test_statements_that_write_are_refused_at_once(lake: Path) -> None:
    """No Spark is needed to tell that a statement is no query."""
    done = instar("query", "drop table t")
    assert done.returncode == 2
    assert "is not a query" in done.stderr


@pytest.fixture
def table(lake: Path) -> list[int]:
    """Write two commits and return the time of each."""
    with library.open(lake) as store:
        made = store.create_table("t", "k int, at timestamp, s struct<x: double>, m map<string, int>")
        rows = [{"k": 1, "at": pd.Timestamp("2026-11-15", tz="UTC"), "s": {"x": 0.5}}]
        first = made.append(pa.Table.from_pylist(rows))
        maps = pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int32()))
        second = made.append(pa.table({"k": [2, 3], "m": maps}))
    return [first.ts, second.ts]


def test_rows_are_printed_in_every_shape(table: list[int]) -> None:
    """For people in a table or value by value, for programs as JSON, lines of JSON, or CSV."""
    assert said("head", "t", "-c", "k", "-n", "2").splitlines() == [
        "k",
        "1",
        "2",
        "There are more rows; --limit shows more.",
    ]
    assert said("head", "t", "-n", "1", "--vertical").splitlines()[:4] == [
        "row 1",
        "  k   1",
        "  at  2026-11-15T00:00:00Z",
        '  s   {"x": 0.5}',
    ]
    first = {"k": 1, "at": "2026-11-15T00:00:00Z", "s": {"x": 0.5}, "m": None}
    assert answer("head", "t", "--where", "k = 1") == [first]
    assert json.loads(said("head", "t", "--ndjson").splitlines()[0]) == first
    assert said("head", "t", "--csv").splitlines()[:3] == [
        "k,at,s,m",
        '1,2026-11-15T00:00:00Z,"{""x"": 0.5}",',
        '2,,,"{""a"": 1}"',
    ]
    assert "give only one of" in instar("head", "t", "--csv", "--ndjson").stderr


def test_what_the_log_prints_is_a_time_to_read_at(table: list[int]) -> None:
    """A line of the log, pasted, reads what its commit wrote and nothing later; so does its seqno."""
    lines = said("log", "t").splitlines()
    for line, rows in zip(reversed(lines[1:]), (0, 1, 3), strict=True):
        seqno, day, time = line.split()[:3]
        assert answer("count", "t", "--version", seqno)["rows"] == rows
        if rows:
            assert answer("count", "t", "--as-of", f"{day} {time}")["rows"] == rows
            assert answer("count", "t", "--as-of", f"{day}T{time}Z")["rows"] == rows
    early = instar("count", "t", "--as-of", "2020-01-01")
    assert early.returncode == 2
    assert "it was created at" in early.stderr


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.ndjson", "x.arrow"])
def test_what_is_exported_can_be_imported(lake: Path, table: list[int], name: str) -> None:
    """In every format, the rows are the same again."""
    file = str(lake.parent / name)
    assert "Exported 3 rows of t" in said("export", "t", file, "-c", "k", "-c", "at")
    with library.open(lake) as store:
        store.create_table("u", "k int, at timestamp")
    said("import", file, "-t", "u")
    assert answer("head", "u") == answer("head", "t", "-c", "k", "-c", "at")
    assert "already exists" in instar("export", "t", file).stderr
    assert said("export", "t", "-", "-f", "csv", "-c", "k", "--where", "k > 2") == "k\n3\n"


def test_rows_are_deleted_after_a_question(table: list[int]) -> None:
    """A dry run counts them; where nobody answers, nothing goes without --yes."""
    assert "2 rows of t would go" in said("delete", "t", "k > 1", "--dry-run")
    assert "add --yes" in instar("delete", "t", "k > 1").stderr
    assert "Deleted 2 rows of t." in said("delete", "t", "k > 1", "--yes")
    assert answer("count", "t")["rows"] == 1
    assert answer("count", "t", "--as-of", str(table[1]))["rows"] == 3
    assert "there is no column `nosuch`" in instar("delete", "t", "nosuch = 1", "--yes").stderr


def test_changes_are_printed_as_they_come(table: list[int]) -> None:
    """One a line, with their time and whether they came or went."""
    lines = said("listen", "t", "--since", str(table[0]), "-c", "k", "--timeout", "0").splitlines()
    assert [json.loads(line) for line in lines] == [
        {"k": 2, "_ts": table[1], "_diff": 1},
        {"k": 3, "_ts": table[1], "_diff": 1},
    ]
    assert said("listen", "t", "--since", str(table[0]), "-c", "k", "--timeout", "0", "--csv").startswith(
        "k,_ts"
    )


def test_tables_are_counted_in_rows(lake: Path) -> None:
    """What was retracted, by position or by value, is no row; a key that nobody checks is called that."""
    with library.open(lake) as store:
        made = store.create_table("t", "k int", key=["k"])
        made.append(pa.table({"k": [1, 2, 3, 4]}))
        made.delete("k = 1")
        made.apply(pa.table({"k": [2], "_diff": [-1]}))
    assert answer("tables")[0]["rows"] == answer("describe", "t")["rows"] == 2
    assert "2 rows (5 updates) in 2 parts" in said("describe", "t")
    assert "k (upserts replace by it, appends do not check it)" in said("describe", "t")


def test_columns_without_bounds_are_named(lake: Path) -> None:
    """What a wide table cannot skip by is said; a column without values lacks nothing."""
    with library.open(lake) as store:
        wide = store.create_table("wide", ", ".join(f"c{at} bigint" for at in range(1000)))
        wide.append(pa.table({f"c{at}": [at + 2**40] for at in range(1000)}))
        store.create_table("t", "a int, b string, l array<int>").append([{"a": 1, "l": [1]}])
    found = answer("describe", "wide")["unbounded"]
    assert found[-1] == "c999"
    assert "c100" not in found
    assert f"… c999 ({len(found):,} columns)" in said("describe", "wide")
    assert answer("describe", "t")["unbounded"] == []
    assert "without bounds     -" in said("describe", "t")


def test_a_restore_says_how_many_rows_there_were_and_are(lake: Path) -> None:
    """It asks first, unless told not to; the rows come back by version or by time, and that is a commit."""
    with library.open(lake) as store:
        made = store.create_table("t", "k int")
        made.append([{"k": 1}, {"k": 2}])
        before = made.upper - 1
        made.delete("k = 1")
    assert "add --yes" in instar("restore", "t", "--version", "1").stderr
    assert said("restore", "t", "--version", "1", "--yes") == "Restored t: 1 row before, 2 rows now.\n"
    with library.open(lake) as store:
        store.table("t").delete("true")
    found = answer("restore", "t", "--as-of", str(before), "--yes")
    assert (found["table"], found["before"], found["after"]) == ("t", 0, 2)
    with library.open(lake) as store:
        assert store.table("t").history()[0].seqno == found["seqno"]
        assert store.table("t").count() == 2
