"""`instar sql` as a user runs it, on the session of the tests."""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import instar
from tests.unit.cli.command import instar as run

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> str:
    """Return where a store is, with a table."""
    place = str(tmp_path / "lake")
    with instar.open(place) as store:
        store.create_table("a/b", "id long, n int").append([{"id": 1, "n": 1}, {"id": 2, "n": 2}])
    return place


def answer(statement: str, lake: str) -> Any:  # noqa: ANN401 -- whatever JSON says
    """Run a statement with `--json`, and return what it prints."""
    done = run("sql", statement, "--store", lake, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_statements_read_and_change_tables(lake: str) -> None:
    """Names need no prefix; a statement without rows says so, and one that fails ends with its error."""
    assert answer("select sum(n) as s from `a/b`", lake) == [{"s": 3}]
    assert answer("alter table `a/b` add column x string;", lake) == []
    assert answer("update `a/b` set x = 'new' where id = 2", lake) == [{"version": 3, "updates": 2}]
    text = run("sql", "select id, x from `a/b` order by id", "--store", lake, "--csv").stdout
    assert text.splitlines() == ["id,x", "1,", "2,new"]
    assert run("sql", "drop table `a/b`", "--store", lake).returncode == 0
    done = run("sql", "select * from `a/b`", "--store", lake)
    assert (done.returncode, done.stdout) == (3, "")
    assert "`a/b` was dropped. `instar undrop a/b`" in done.stderr
    assert run("sql", " ;", "--store", lake).returncode == 2


def test_many_statements_come_from_the_standard_input(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, until one fails."""
    text = "insert into `a/b` values (3, 3);\nselect count(*) as n from `a/b`; selec; drop table `a/b`"
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    done = run("sql", "--store", lake, "--ndjson")
    assert (done.returncode, done.stdout) == (2, '{"n": 3}\n')
    with instar.open(lake) as store:
        assert store.tables() == ["a/b"]


def test_a_prompt_goes_on_after_errors(lake: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each is one line without a traceback; Ctrl-C clears what is typed, and Ctrl-D leaves."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        pipe.send_text("selec 1;\rdrop table nobody;\rhalf\x03select 7 as x;\r\x04")
        done = run("sql", "--store", lake)
    assert done.returncode == 0, done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert [error.partition("]")[0] for error in errors] == [
        "error: [PARSE_SYNTAX_ERROR",
        "error: [TABLE_OR_VIEW_NOT_FOUND",
    ]
    assert "7" in done.stdout
    assert "Traceback" not in done.stderr + done.stdout
