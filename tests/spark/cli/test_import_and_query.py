"""`instar import` and `instar query` as a user runs them, on the session of the tests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import instar
from instar.errors import UsageError
from instar.files import guess_format
from tests.unit.cli.command import instar as run

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> str:
    """Return where a store is."""
    place = str(tmp_path / "lake")
    with instar.open(place) as store:
        store.initialise()
    return place


def answer(*arguments: str) -> Any:  # noqa: ANN401 -- whatever JSON says
    """Run a command with `--json`, and return what it prints."""
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def error(*arguments: str) -> str:
    """Run a command that fails, and return its only line of complaint, which is no traceback."""
    done = run(*arguments)
    assert done.returncode not in {0, 70}, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "at org.apache" not in done.stderr
    return done.stderr


def test_parquet_becomes_a_table(lake: str, tmp_path: Path) -> None:
    """A table is created from the file's schema, and a query sees its rows."""
    pq.write_table(pa.table({"k": [3, 1, 2], "v": ["c", "a", None]}), tmp_path / "x.parquet")
    where = ("--store", lake)
    report = answer("import", str(tmp_path / "x.parquet"), "-t", "a/x", "--create", "--order-by", "k", *where)
    assert (report["table"], report["rows"], report["parts"]) == ("a/x", 3, 1)
    rows = answer("query", "select k, v from `a/x` order by k", *where)
    assert rows == [{"k": 1, "v": "a"}, {"k": 2, "v": None}, {"k": 3, "v": "c"}]
    text = run("query", "select k from `a/x` order by k", "--limit", "2", *where).stdout
    assert "There are more rows" in text


def test_text_takes_the_types_of_the_table(lake: str, tmp_path: Path) -> None:
    """CSV and JSON are read by the table's types; a value that does not fit stops the import."""
    where = ("--store", lake)
    run("create", "t", "code string, at date, n bigint", *where)
    (tmp_path / "a.csv").write_text("n,code\n1,007\n2,008\n", encoding="utf-8")
    (tmp_path / "b.jsonl").write_text('{"code": "009", "at": "2026-11-15"}\n', encoding="utf-8")
    assert answer("import", str(tmp_path / "a.csv"), "-t", "t", *where)["rows"] == 2
    assert answer("import", str(tmp_path / "b.jsonl"), "-t", "t", *where)["rows"] == 1
    rows = answer("query", "select * from t order by code", *where)
    assert [row["code"] for row in rows] == ["007", "008", "009"]
    assert rows[2] == {"code": "009", "at": "2026-11-15", "n": None}
    (tmp_path / "bad.csv").write_text("n,code\nmany,1\n", encoding="utf-8")
    misfit = error("import", str(tmp_path / "bad.csv"), "-t", "t", *where)
    assert "column `n` of the data does not fit: 'many' is not of its type bigint" in misfit
    assert "in bad.csv" in misfit
    (tmp_path / "bad.json").write_text('{"at": "noday", "code": "1"}\n', encoding="utf-8")
    misfit = error("import", str(tmp_path / "bad.json"), "-t", "t", *where)
    assert "column `at` of the data does not fit: 'noday' is not of its type date" in misfit
    assert len(answer("query", "select * from t", *where)) == 3


def test_directories_with_values_in_their_names_are_read_with_these(lake: str, tmp_path: Path) -> None:
    """Spark reads them, with our types; two quotes inside quotes are one, and no column is lost."""
    where = ("--store", lake)
    for day, text in ((1, '"say ""hi"", twice",1.5'), (2, "C:\\dir,2")):
        (tmp_path / "in" / f"day={day}").mkdir(parents=True)
        (tmp_path / "in" / f"day={day}" / "x.csv").write_text(f"said,n\n{text}\n", encoding="utf-8")
    assert answer("import", f"{tmp_path}/in", "-f", "csv", "-t", "t", "--create", *where)["rows"] == 2
    assert answer("query", "select * from t order by day", *where) == [
        {"said": 'say "hi", twice', "n": 1.5, "day": 1},
        {"said": "C:\\dir", "n": 2.0, "day": 2},
    ]
    (tmp_path / "in" / "day=2" / "x.csv").write_text("said,n\nno,NA\n", encoding="utf-8")
    assert "'NA' is not of its type double" in error(
        "import", f"{tmp_path}/in", "-f", "csv", "-t", "t", *where
    )
    assert "not below directories" in error(
        "import", f"{tmp_path}/in", "-f", "csv", "-t", "t", "--null", "NA", *where
    )


def test_new_columns_need_leave(lake: str, tmp_path: Path) -> None:
    """A column that the table has not is refused, or with --evolve added."""
    where = ("--store", lake)
    run("create", "t", "k int", *where)
    file = tmp_path / "x.json"
    file.write_text('{"k": 1, "extra": "e"}\n', encoding="utf-8")
    assert "`extra`" in error("import", str(file), "-t", "t", *where)
    assert answer("import", str(file), "-t", "t", "--evolve", *where)["schema_id"] == 1
    assert answer("query", "select * from t", *where) == [{"k": 1, "extra": "e"}]


def test_a_failed_import_leaves_no_table(lake: str, tmp_path: Path) -> None:
    """A table that was made for an import goes with it."""
    file = tmp_path / "x.csv"
    file.write_text("a,b\n1,2\n3\n", encoding="utf-8")
    error("import", str(file), "-t", "t", "--create", "--store", lake)
    assert answer("tables", "--store", lake) == []


def test_what_cannot_be_imported_is_said(lake: str, tmp_path: Path) -> None:
    """No table, no file, no format: each has its own answer."""
    where = ("--store", lake)
    assert "table `t` does not exist" in error("import", "x.csv", "-t", "t", *where)
    missing = error("import", str(tmp_path / "no.parquet"), "-t", "t", "--create", *where)
    assert "there is no file" in missing
    assert "say --format" in error("import", "stuff", "-t", "t", "--create", *where)


def test_a_query_reads_the_past(lake: str) -> None:
    """`--as-of` takes a time; tables without a change since are read as they are."""
    with instar.open(lake) as store:
        table = store.create_table("t", "k int")
        first = table.append(pa.table({"k": pa.array([1], pa.int32())}))
        table.append(pa.table({"k": pa.array([2], pa.int32())}))
    where = ("--store", lake)
    assert answer("query", "select k from t", "--as-of", str(first.ts), *where) == [{"k": 1}]
    assert "is not a time" in error("query", "select k from t", "--as-of", "noon", *where)


def test_mistakes_in_a_query_are_explained_without_a_stack(lake: str) -> None:
    """Spark's own message is enough: what is wrong, and where."""
    where = ("--store", lake)
    run("create", "t", "k int", *where)
    assert "PARSE_SYNTAX_ERROR" in error("query", "selec 1", *where)
    unknown = error("query", "select nope from t", *where)
    assert "`nope` cannot be resolved" in unknown
    assert "SQLSTATE" not in unknown
    assert "table `u` does not exist" in error("query", "select * from t join u using (k)", *where)
    assert "DIVIDE_BY_ZERO" in error("query", "select 1 / 0", *where)
    assert "two columns have one name" in run("query", "select 1 as a, 2 as a", *where, "--json").stdout


def test_commands_leave_the_session_as_it_was(lake: str, spark: SparkSession) -> None:
    """A query makes views in a session of its own, and no setting is touched."""
    before = dict(spark.conf.getAll)
    run("create", "t", "k int", "--store", lake)
    spark.range(3).createOrReplaceTempView("t")
    try:
        assert answer("query", "select * from t", "--store", lake) == []
        assert spark.table("t").count() == 3
        assert dict(spark.conf.getAll) == before
    finally:
        spark.catalog.dropTempView("t")


def test_every_value_has_a_text(lake: str) -> None:
    """Nested values, bytes, dates and what JSON has no number for."""
    sql = """select named_struct('a', 1, 'b', array(date'2026-11-15')) as s, map('k', 1.5D) as m,
             X'00ff' as b, double('NaN') as n, 1.20BD as d, null as z"""
    assert answer("query", sql, "--store", lake) == [
        {"s": {"a": 1, "b": ["2026-11-15"]}, "m": {"k": 1.5}, "b": "00ff", "n": "NaN", "d": "1.20", "z": None}
    ]
    assert '{"a": 1' in run("query", sql, "--store", lake).stdout


@pytest.mark.parametrize(
    "statement",
    [
        "create table made (k int)",
        "create temporary view made as select 1",
        "insert into t values (1)",
        "with c as (select 1) insert into t select * from c",
        "drop table t",
        "set spark.sql.ansi.enabled = false",
        "cache table t",
        "begin select 1; end",
    ],
)
def test_a_query_only_reads(lake: str, statement: str) -> None:
    """What would change something of Spark's, and nothing of the store, is refused."""
    run("create", "t", "k int", "--store", lake)
    assert "is not a query" in error("query", statement, "--store", lake)


def test_every_way_to_read_is_a_query(lake: str) -> None:
    """Whatever it begins with."""
    run("create", "t", "k int", "--store", lake)
    for statement in (
        "/* of note */ select k from t",
        "(select k from t) union all (select 1)",
        "with c as (select * from t) select * from c",
        "values (1)",
        "from t select k",
        "table t",
        "from t |> where k > 1",
        "DESCRIBE t",
        "desc function abs",
        "show functions like 'abs'",
        "explain select * from t",
    ):
        assert run("query", statement, "--store", lake).returncode == 0, statement


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/B.CSV", "csv"),
        ("s3://bucket/events.parquet/", "parquet"),
        ("new/*.csv.gz", "csv"),
        ("part-0.snappy.parquet", "parquet"),
        ("x.ndjson", "json"),
        ("events.csv.parquet", "parquet"),
        ("my.json-notes.csv", "csv"),
        ("x.csvs", None),
        ("x.json.bak", None),
        ("parquet", None),
        (".gz", None),
    ],
)
def test_the_end_of_a_name_tells_the_format(path: str, expected: str | None) -> None:
    """Only the end, and before it what says how the file is compressed."""
    if expected is None:
        with pytest.raises(UsageError, match="say --format"):
            guess_format([path])
    else:
        assert guess_format([path, path]) == expected
