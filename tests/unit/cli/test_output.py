"""What is printed arrives as it is, or the command says that it did not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import instar as library
from tests.unit.cli.command import PROCESS, instar
from tools.generate_docs import commands

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Make a store whose names and values look like markup."""
    location = tmp_path_factory.mktemp("output") / "lake"
    with library.open(location) as opened:
        opened.create_table("t", "`[/red]` int, `:bug:` struct<`[bold]`: string>").append(
            pa.table({"[/red]": pa.array([1], pa.int32())})
        )
    return str(location)


def test_python_runs_the_command_as_a_module() -> None:
    """Where the script is not on the path, `python -m instar` is the same."""
    found = subprocess.run(
        [sys.executable, "-m", "instar", "tables", "--store", "/nowhere/at/all"],
        capture_output=True,
        text=True,
        check=False,
    )
    same = instar("tables", "--store", "/nowhere/at/all")
    assert (found.returncode, found.stdout, found.stderr) == (same.returncode, same.stdout, same.stderr)
    assert found.returncode == 3


def shell(line: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of shell in which `"$@"` is the command, in a process of its own."""
    return subprocess.run(
        ["sh", "-c", line, "sh", *PROCESS, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("describe", "t"), "`[/red]` int, `:bug:` struct<`[bold]`: string>"),
        (("schema", "show", "t"), "[bold]"),
        (("explain", "t", "`[/red]` > 0 and `:bug:`.`[bold]` = '[red]x[/red]'", "--parts"), "'[red]x[/red]'"),
        (("explain", "t", "[/red]"), "[/red]"),
        (("tables", "[/x]"), "under [/x]"),
        (("schema", "evolve", "t", "--add", "`[/y]` int", "--dry-run"), "[/y]"),
    ],
)
def test_nothing_that_users_write_is_markup(store: str, arguments: tuple[str, ...], expected: str) -> None:
    """Brackets and colons come out as they went in, in answers, titles and errors."""
    done = instar(*arguments, "--store", store)
    assert done.returncode in {0, 2}, done.stderr
    assert expected in done.stdout + done.stderr


def test_a_store_may_be_called_anything(tmp_path: Path) -> None:
    """Also where a place is part of a sentence."""
    done = instar("init", str(tmp_path / "w[/x]eird"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "w[/x]eird" in done.stdout
    done = instar("create", "e", "`[/x]` int", "--store", str(tmp_path / "w[/x]eird"))
    assert done.stdout == "Created e: `[/x]` int\n"


def test_a_pipe_gets_every_row_whole_and_on_one_line(store: str) -> None:
    """Keys of parts are longer than a terminal is wide."""
    told = json.loads(instar("explain", "t", "`[/red]` > 0", "--parts", "--json", "--store", store).stdout)
    lines = instar("explain", "t", "`[/red]` > 0", "--parts", "--store", store).stdout.splitlines()
    (part,) = told["parts"]
    assert any(part["key"] in line and part["why"] in line for line in lines)


@pytest.mark.parametrize("extra", [(), ("--json",), ("--help",)])
def test_an_output_that_fails_is_an_ending_of_its_own(store: str, extra: tuple[str, ...]) -> None:
    """A full disk is said in one line; a reader that went away needs no line at all."""
    arguments = ("log", "t", "--store", store, *extra)
    full = shell('"$@" >/dev/full', *arguments)
    assert (full.returncode, full.stderr) == (
        74,
        "error: cannot write to the standard output: No space left on device\n",
    )
    closed = shell('"$@" >&-', *arguments)
    assert (closed.returncode, closed.stderr) == (
        74,
        "error: cannot write to the standard output: it is closed\n",
    )
    gone = shell('{ "$@"; echo $? >&2; } | true', *arguments)
    assert gone.stderr == "141\n"


def test_an_answer_of_no_is_still_an_answer(store: str) -> None:
    """Whoever cannot be told no is told that, and a reader that went away is not told an error either."""
    check = ("schema", "check", "a bigint", "a int")
    assert shell('"$@" >/dev/full', *check).returncode == 74
    wrong = shell('"$@" >/dev/full', "log", "nowhere", "--json", "--store", store)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (74, 1)


def test_an_encoding_that_cannot_say_it_all_says_what_it_can(tmp_path: Path) -> None:
    """Help degrades; JSON is as exact as ever."""
    poor = {"PYTHONIOENCODING": "ascii"}
    done = shell('"$@"', "vacuum", "--help", **poor)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--dry-run" in done.stdout
    lake = str(tmp_path / "lake")
    assert instar("init", lake).returncode == 0
    done = shell('"$@"', "create", "t", "`größe` int, `🦗` int", "--store", lake, "--json", **poor)
    assert json.loads(done.stdout)["schema"] == "`größe` int, `🦗` int"


@pytest.mark.parametrize("arguments", [(), ("schema",)])
def test_no_command_is_a_question_for_help(arguments: tuple[str, ...]) -> None:
    """Help is printed, and no empty error after it."""
    done = instar(*arguments)
    assert (done.returncode, done.stderr) == (2, "")
    assert "Usage: instar" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("log", "t", "--limit", "0"), "--limit"),
        (("schema", "diff", "t", "a"), "OLD"),
        (("schema", "check", "a int"), "NEW"),
        (("log", "t", "--limit"), "--limit"),
    ],
)
def test_a_wrong_argument_is_named(arguments: tuple[str, ...], named: str) -> None:
    """The message says which option or argument it is about."""
    done = instar(*arguments)
    assert done.returncode == 2
    assert named.lower() in done.stderr.lower()


def test_every_command_speaks_json() -> None:
    """As the help promises."""
    leaves = [(name, command) for name, command in commands() if not hasattr(command, "commands")]
    assert [name for name, command in leaves if not any("--json" in own.opts for own in command.params)] == []


def test_an_interruption_while_loading_is_no_traceback() -> None:
    """However early it comes."""
    early = "import sys; sys.meta_path.insert(0, type('F', (), {'find_spec': staticmethod(stop)}))"
    stop = "def stop(name, *_):\n    if name == 'typer': raise KeyboardInterrupt\n"
    line = f"{stop}{early}\nfrom instar.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "error: interrupted; nothing that was committed is lost\n")


def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    """What has to be installed is said; it is no bug."""
    line = "import sys; sys.modules['pyspark'] = None; from instar.cli import main; main()"
    library.open(tmp_path / "lake").create_table("t", "k int")
    command = [sys.executable, "-c", line, "query", "select 1", "--store", str(tmp_path / "lake")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'instar[spark]'" in done.stderr
