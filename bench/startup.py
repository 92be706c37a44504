"""`./dev bench startup`: how long `import instar` and commands take that do no work, beside sqlite-utils.

Each is a new process of Python; what is told is how many times as long as `python -c pass` it takes.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from bench.measure import Ratio, machine, timing, warmed
from bench.report import Column, Report, Section

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DEFAULT", "FULL", "QUICK", "Plan", "run"]

_BASE: Final = "python -c pass"
_PEER: Final = "sqlite_utils"


@dataclass(frozen=True)
class Plan:
    """How often each is started."""

    rounds: int


DEFAULT: Final = Plan(rounds=15)
FULL: Final = Plan(rounds=40)
QUICK: Final = Plan(rounds=1)


def run(plan: Plan, command: str, _directory: Path | None) -> Report:
    """Start every program by turns, and return how long each took."""
    report = Report(command, machine())
    programs = _programs()
    if not any(_PEER in " ".join(words) for words, _ in programs.values()):
        report.skipped.append("sqlite-utils, which is not installed")
    times = warmed(
        "start-up", {name: timing(_start, *program) for name, program in programs.items()}, plan.rounds
    )
    rows = [
        {"what": name, "ratio": Ratio.of(own, times[_BASE]), "ms": median(own) * 1000}
        for name, own in times.items()
    ]
    columns = {
        "what": Column("process"),
        "ratio": Column(f"times {_BASE}"),
        "ms": Column("median ms", ",.0f"),
    }
    report.sections.append(Section("Starting up", columns, rows))
    return report


def _programs() -> dict[str, tuple[Sequence[str], dict[str, str]]]:
    """Return what is started, and the environment of each."""
    python, none = sys.executable, dict[str, str]()
    instar = str(Path(python).with_name("instar"))
    completion = {"_INSTAR_COMPLETE": "complete_bash", "COMP_WORDS": "instar ", "COMP_CWORD": "1"}
    programs: dict[str, tuple[Sequence[str], dict[str, str]]] = {
        _BASE: ([python, "-c", "pass"], none),
        "import instar": ([python, "-c", "import instar"], none),
        "instar --version": ([instar, "--version"], none),
        "instar --help": ([instar, "--help"], none),
        "instar, completion": ([instar], completion),
    }
    if importlib.util.find_spec(_PEER) is not None:
        programs["import sqlite_utils"] = ([python, "-c", f"import {_PEER}"], none)
        programs["sqlite-utils --version"] = ([python, "-m", _PEER, "--version"], none)
        programs["sqlite-utils --help"] = ([python, "-m", _PEER, "--help"], none)
    return programs


def _start(words: Sequence[str], environment: dict[str, str]) -> None:
    """Run a program to its end; what it prints does not count."""
    subprocess.run(words, env={**os.environ, **environment}, check=True, capture_output=True)
