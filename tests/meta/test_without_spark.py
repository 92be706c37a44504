"""instar needs no pyspark until a Spark session is used."""

from __future__ import annotations

import subprocess
import sys

from tests.meta.modules import module_names

PROGRAM = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
    if {"pyspark", "py4j"} & sys.modules.keys():
        sys.exit(f"importing {name} loads pyspark")
"""


def test_importing_never_loads_pyspark() -> None:
    """Neither instar nor any module outside instar.spark brings pyspark or its bridge along."""
    names = ["instar", *module_names()]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *names], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
