"""instar needs no pyspark until a Spark session is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.meta.modules import module_names


@pytest.mark.parametrize("module", ["instar", *module_names()])
def test_importing_never_loads_pyspark(module: str) -> None:
    """Whichever module is imported first, neither pyspark nor its bridge comes along."""
    program = f"import sys, {module}; sys.exit(bool({{'pyspark', 'py4j'}} & sys.modules.keys()))"
    subprocess.run([sys.executable, "-c", program], check=True)
