"""Importing instar is quick: what takes long to load is loaded by what needs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.meta.modules import module_names

PROGRAM = """
import importlib, sys
slow = set(sys.argv[1].split())
for name in sys.argv[2:]:
    importlib.import_module(name)
    found = slow & sys.modules.keys()
    if found:
        sys.exit(f"importing {name} loads {found}")
"""
SPARK = "pyspark py4j"
SLOW = f"{SPARK} pandas sqlglot psycopg"


@pytest.mark.parametrize(
    ("slow", "names"),
    [(SPARK, ["instar", *module_names()]), (SLOW, ["instar", "instar.cli"])],
    ids=["any module", "the first import"],
)
def test_importing_loads_nothing_slow(slow: str, names: list[str]) -> None:
    """No module outside instar.spark brings pyspark or its bridge along, and people do not wait at first."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, slow, *names], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
