"""Importing instar is quick: what takes long to load is loaded by what needs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.meta.modules import ROOT, module_names
from tools.generate_docs import commands

PROGRAM = """
import importlib, sys
slow = set(sys.argv[1].split())
for name in sys.argv[2:]:
    importlib.import_module(name)
    found = slow & sys.modules.keys()
    if found:
        sys.exit(f"importing {name} loads {found}")
"""
COMMANDS = """
import contextlib, io, shlex, sys
from instar.cli import main
slow = set(sys.argv[1].split())
for line in sys.argv[2:]:
    sys.argv = shlex.split(line)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        try:
            main()
        except SystemExit as end:
            code = end.code
    found = slow & sys.modules.keys()
    if code or found or not output.getvalue():
        sys.exit(f"{line} ends with {code}, prints {output.getvalue()!r} and loads {found}")
print(output.getvalue())
"""
SPARK = "pyspark py4j"
SLOW = f"{SPARK} pandas sqlglot psycopg numpy pyarrow sqlalchemy alembic starlette obstore"


def run(program: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, where nothing has been imported."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )


@pytest.mark.parametrize(
    ("slow", "names"),
    [(SPARK, ["instar", *module_names()]), (SLOW, ["instar", "instar.cli"])],
    ids=["any module", "the first import"],
)
def test_importing_loads_nothing_slow(slow: str, names: list[str]) -> None:
    """No module outside instar.spark brings pyspark or its bridge along, and people do not wait at first."""
    done = run(PROGRAM, slow, *names)
    assert done.returncode == 0, done.stderr


def test_help_loads_nothing_slow() -> None:
    """Whoever asks what there is, of instar or of any command, waits for no library that works on data."""
    names = [name for name, _ in commands()]
    assert "instar schema evolve" in names
    asked = [f"{name} --help" for name in names]
    done = run(COMMANDS, SLOW, "instar --version", "instar -h", "instar schema evolve -h", *asked)
    assert done.returncode == 0, done.stderr


def test_the_version_loads_no_command() -> None:
    """Scripts that ask which version there is do not wait for the command line to be built."""
    asked = "import atexit, sys; sys.argv[1:] = ['--version']; from instar.cli import main"
    done = run(f"{asked}; atexit.register(lambda: print('rich' in sys.modules)); main()")
    assert done.stdout.split()[::2] == ["instar", "False"], done.stderr


@pytest.mark.parametrize(
    ("line", "found"),
    [("instar sch", "schema"), ("instar schema ev", "evolve"), ("instar log --st", "--store")],
)
def test_completion_loads_nothing_slow(line: str, found: str) -> None:
    """A shell completes names of commands and of options while somebody types, so at once."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    done = run(COMMANDS, SLOW, "instar", _INSTAR_COMPLETE="complete_bash", **words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [found]


def test_only_tests_import_tests() -> None:
    """What benchmarks and soaks share with tests is in `testbed`, which needs no pytest."""
    wrong = {"bench": "tests", "soak": "tests", "testbed": "tests|bench|soak|pytest"}
    offences = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for folder, names in wrong.items()
        for path in (ROOT / folder).rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.match(rf"\s*(from|import) ({names})\b", line)
    ]
    assert offences == []
