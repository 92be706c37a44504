"""What people meet first: help that reads well, and answers to the mistakes that everybody makes once."""

from __future__ import annotations

from datetime import time
from typing import TYPE_CHECKING

import pytest

import instar as library
from instar.errors import (
    ColumnNotFoundError,
    DataMismatchError,
    InvalidSchemaError,
    TableNotFoundError,
    UsageError,
)
from tests.unit.cli.command import instar

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a store with a table, which is the one that commands find."""
    place = tmp_path / "lake"
    with library.open(place) as store:
        table = store.create_table("flights", "carrier string, delay string, minute int")
        table.append([{"carrier": "UA", "delay": "NA", "minute": 5}, {"carrier": "AA", "delay": "7"}])
    monkeypatch.setenv("INSTAR_STORE", str(place))
    return place


def refused(*arguments: str) -> str:
    """Run a command that fails, and return the one line that says why."""
    done = instar(*arguments)
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_help_is_grouped_and_its_paragraphs_are_as_wide_as_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Commands stand under what they are about, lines are not broken twice, and switches have no type."""
    monkeypatch.setenv("COLUMNS", "80")
    overview = instar("-h").stdout
    at = [overview.index(f"─ {title} ─") for title in ("Tables", "Rows", "Upkeep", "Beyond one table")]
    assert at == sorted(at)
    assert at[1] < overview.index("│ import ") < at[2]
    text = instar("import", "-h").stdout
    assert (
        "Values of text take the types of the \n table's columns; if one does not fit, the import stops"
        in text
    )
    assert "<list[str]>" not in text.partition("─ Options")[2]
    create = next(line for line in text.splitlines() if " --create " in line)
    assert "<bool>" not in create


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["import", "a.csv"], "Missing option '--table' / '-t'. `instar import -h` shows how it is called."),
        (["imprt"], "Did you mean 'import'? `instar -h` shows how it is called."),
        (["head", "flights", "-n", "x"], "`instar head -h` shows how it is called."),
        (["head", "flihgts"], "Did you mean `flights`? `instar tables` lists all tables."),
        (["import", "a.csv", "-t", "new"], "lists all tables. Or add --create to create it."),
        (["export", "flights", "x.xlsx"], "say --format, which is one of parquet, csv, json, arrow"),
        (["restore", "flights"], "say which version to restore: --version N or --as-of TIME"),
        (["count", "flights", "--where", "delay > 5"], "delay is a string used as bigint"),
        (["count", "flights", "--where", "carrier rlike 'U'"], "cannot compute rlike(carrier, 'U')"),
    ],
)
def test_mistakes_are_told_in_one_line_with_a_way_out(lake: Path, arguments: list[str], said: str) -> None:
    """What is wrong, why, and what to do about it."""
    assert said in refused(*arguments)


def test_there_is_nothing_to_ask_where_nothing_is_deleted(lake: Path) -> None:
    """A condition that is true for no row is told, and no commit is made."""
    for done in (
        instar("delete", "flights", "minute = 99"),
        instar("delete", "flights", "minute = 99", "--yes"),
    ):
        assert (done.returncode, done.stdout) == (
            0,
            "The condition is true for no row of flights: nothing was deleted.\n",
        )
    done = instar("restore", "flights", "--version", "1", "--yes")
    assert done.stdout == "flights has the same rows as then: nothing was written.\n"
    with library.open(lake) as store:
        assert store["flights"].state.seqno == 1


def test_schemas_are_compared_with_the_one_before(lake: Path) -> None:
    """An evolution says which schema it made; `schema diff` without ids shows the last change."""
    done = instar("schema", "evolve", "flights", "--rename", "delay=arrival", "--drop", "minute")
    assert done.stdout.endswith("The latest schema is now 1.\n")
    assert "renamed: delay → arrival" in instar("schema", "diff", "flights").stdout
    assert instar("schema", "show", "flights").stdout.startswith("flights, schema 1, the latest\n")
    assert instar("schema", "show", "flights", "--id", "0").stdout.startswith("flights, schema 0 of 0 to 1\n")


def test_values_of_dropped_columns_can_be_let_go(lake: Path) -> None:
    """A file with columns of an old schema is refused, and --discard-dropped takes the rest of it."""
    instar("schema", "evolve", "flights", "--drop", "minute")
    file = lake.parent / "old.csv"
    file.write_text("carrier,minute\nDL,3\n", encoding="utf-8")
    assert "--discard-dropped" in refused("import", str(file), "-t", "flights", "--schema", "0")
    done = instar("import", str(file), "-t", "flights", "--schema", "0", "--discard-dropped")
    assert done.returncode == 0, done.stderr
    assert '"carrier": "DL"' in instar("head", "flights", "--json").stdout


def test_tsv_is_separated_by_tabs(lake: Path) -> None:
    """Files whose names say so need no --delimiter."""
    file = lake.parent / "x.tsv"
    file.write_text("a\tb\n1,5\t2\n", encoding="utf-8")
    assert instar("import", str(file), "-t", "x", "--create").returncode == 0
    with library.open(lake) as store:
        assert store["x"].head().to_pylist() == [{"a": "1,5", "b": 2}]


def test_odd_names_are_quoted_once(lake: Path) -> None:
    """Columns that need backticks have one pair of them in errors."""
    file = lake.parent / "raw.csv"
    file.write_text("Sample Number,Date Egg\n1,2007-11-11\n", encoding="utf-8")
    assert "column `Sample Number` of the data" in refused("import", str(file), "-t", "flights")
    assert "nor `Date Egg`." in refused("import", str(file), "-t", "flights")


def test_python_answers_mistakes_too(lake: Path, tmp_path: Path) -> None:
    """A misspelt table, a frame in place of a schema, a file in place of a store, an update in a prompt."""
    with library.open(lake) as store:
        with pytest.raises(TableNotFoundError, match="Did you mean `flights`"):
            store["flight"]
        with pytest.raises(InvalidSchemaError, match=r"pyarrow.table\(frame\)\.schema"):
            store.create_table("x", store["flights"].to_pandas())
        with pytest.raises(
            UsageError, match="needs a SparkSession, not NoneType: give one, or read with to_arr"
        ):
            store["flights"].read(None)  # type: ignore[arg-type]
        update = store["flights"].evolve().rename_column("delay", "late").drop_column("minute")
        assert repr(update) == (
            "SchemaUpdate(minute: deleted, late: renamed; .commit() makes it the latest schema)"
        )
    (tmp_path / "a.csv").write_text("x", encoding="utf-8")
    with pytest.raises(UsageError, match=r"a\.csv is a file, and a store is a directory"):
        library.open(tmp_path / "a.csv")


def test_types_that_no_column_has_are_told_with_what_to_do(lake: Path) -> None:
    """A time of day, and a column of nothing but nulls."""
    with library.open(lake) as store:
        table = store["flights"]
        with pytest.raises(
            DataMismatchError, match=r"it is time64\[us\]: Spark has no times of day by default"
        ):
            table.append([{"carrier": "UA", "at": time(1, 2)}], evolve=True)
        with pytest.raises(
            DataMismatchError, match="all its values are null, so it has no type: leave it out"
        ):
            table.append([{"carrier": "UA", "note": None}], evolve=True)


def test_an_unknown_column_of_very_many_is_told_in_a_few_words() -> None:
    """Some columns are listed, the nearest is named wherever it is, and a quoted name is quoted once."""
    error = ColumnNotFoundError("`c 99`", known=[f"c{at}" for at in range(2000)])
    assert str(error).startswith("there is no column `c 99`: the columns are c0, c1, ")
    assert "c29 and 1,970 more. Did you mean `c" in str(error)


def test_the_shell_completes_names_of_tables(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the store that is meant; where there is none, nothing is offered and nothing fails."""
    monkeypatch.setenv("_INSTAR_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "instar head fl")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert instar().stdout.split() == ["flights"]
    monkeypatch.setenv("INSTAR_STORE", str(lake / "nothing"))
    assert instar().stdout.split() == []
