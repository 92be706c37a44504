"""What people see on a terminal of 80 columns: a process of its own, whose output is a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

import instar as library
from tests.unit.cli.command import PROCESS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store with a wide table and a narrow one."""
    place = tmp_path_factory.mktemp("terminal") / "lake"
    wide = [f"column_{at}" for at in range(19)]
    with library.open(place) as store:
        store.create_table("wide", ", ".join(f"{name} int" for name in wide)).append(
            [{name: 10 ** (at % 4) for at, name in enumerate(wide)}]
        )
        vast = {f"c{at}": at for at in range(500)}
        store.create_table("vast", ", ".join(f"{name} int" for name in vast)).append([vast])
        store.create_table("narrow", "n int, s string").append([{"n": 7, "s": ""}, {"n": 1234}])
    return place


def shown(lake: Path, *arguments: str) -> list[str]:
    """Run a command on a terminal, and return the lines that it shows, without colours."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm", "INSTAR_STORE": str(lake)}
    given = [*PROCESS, *arguments]
    with subprocess.Popen(given, stdout=theirs, stderr=subprocess.DEVNULL, env=environment) as process:
        os.close(theirs)
        received = b""
        try:
            while more := os.read(ours, 65536):
                received += more
        except OSError:  # Linux says so when the last writer has gone
            pass
        finally:
            os.close(ours)
    assert process.returncode == 0, received
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", received.decode())
    return [line.rpartition("\r")[2].rstrip() for line in text.replace("\r\n", "\n").split("\n")]


def test_a_wide_table_shows_what_fits_and_names_the_rest(lake: Path) -> None:
    """No column is squeezed to nothing, and no line is longer than the terminal is wide."""
    lines = shown(lake, "head", "wide")
    assert max(map(len, lines)) <= 80
    heading = next(line for line in lines if "column_0" in line)
    fitting = heading.split()
    assert fitting == [f"column_{at}" for at in range(len(fitting))]
    text = " ".join(lines)
    assert f"{len(fitting)} of 19 columns fit here; not shown: column_{len(fitting)}," in text
    assert "--vertical shows all" in text
    assert "…" not in text


def test_a_table_of_very_many_columns_does_not_fill_the_screen(lake: Path) -> None:
    """Of those that do not fit some are named, and the others are counted."""
    lines = shown(lake, "head", "vast")
    assert len(lines) < 20
    assert re.search(r"and 4\d\d more\.", " ".join(lines))
    assert "c499" not in " ".join(lines)


def test_numbers_stand_digit_below_digit_and_null_is_no_empty_text(lake: Path) -> None:
    """As in other databases: numbers end at the right, and what is missing is called null."""
    lines = [line for line in shown(lake, "head", "narrow") if line.strip() and "─" not in line]
    assert lines == ["    n   s", "    7", " 1234   null"]


def test_every_command_explains_itself_in_80_columns(lake: Path) -> None:
    """Help has no types of Python, and an example begins as it is typed."""
    for command in ("import", "head", "sql", "restore"):
        lines = shown(lake, command, "-h")
        assert max(map(len, lines)) <= 80
        text = "\n".join(lines)
        assert "<str>" not in text
        assert "<bool>" not in text
        assert f"\n $ instar {command} " in text
