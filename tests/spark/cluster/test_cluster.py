"""A cluster of two executors as processes of their own: an append lands exactly once, or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("run_on_cluster.py")

pytestmark = pytest.mark.spark


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the executor through /proc")
@pytest.mark.timeout(600)
def test_an_append_survives_its_executors_or_does_not_happen(tmp_path: Path) -> None:
    """A killed executor's tasks run again elsewhere; if they fail for good, nothing of them is committed."""
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, str(SCRIPT), str(tmp_path / "lake")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, timeout=550)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["appended"] == [999, 999, sum(range(1000)) - 1]
    assert seen["killed once"] == [1999, 1999, sum(range(2000)) - 1]
    assert seen["killed always"]
    assert seen["in the end"] == seen["killed once"]
    assert seen["commits"] == 3
