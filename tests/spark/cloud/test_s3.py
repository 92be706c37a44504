"""A store at `s3://` on a Spark without any file system for it; `tests/spark/cluster` has Hadoop's S3A."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from testbed.s3a import s3a_settings
from tests.servers import s3

if TYPE_CHECKING:
    from testbed.servers import S3Server

__all__ = ["s3"]

SCRIPT = Path(__file__).with_name("run_on_s3.py")
FAULTS = Path(__file__).with_name("faults_on_s3.py")
SECRET = "not-to-be-seen-5b1e"

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def run(s3: S3Server, script: Path = SCRIPT, *more: str) -> tuple[dict[str, Any], str]:
    """Run a script in a process that has no credentials in its environment; return what it saw and logged."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    options = {**s3.options, "AWS_SECRET_ACCESS_KEY": SECRET}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, str(script), s3.url(), json.dumps(options), *more]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, timeout=550)
    assert done.returncode == 0, done.stderr[-8000:]
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def check_rows(seen: dict[str, Any]) -> None:
    """Compare with what the tour does to a table on a local disk."""
    assert seen["rows"] == [[200, sum(range(200)), "a99"]]
    assert seen["chosen"] == 50
    assert seen["view"] == [[199, 1]]
    assert seen["changes"] == 200 + 1 + 2


def test_without_a_file_system_workers_read_a_store_on_s3(s3: S3Server) -> None:
    """The rows are right, one warning names the package to add, and changes on Spark say the same."""
    seen, logged = run(s3)
    check_rows(seen)
    (told,) = seen["warnings"]
    assert "spark.jars.packages=org.apache.hadoop:hadoop-aws:" in told
    assert "hadoop-aws" in seen["delete"]
    assert "MapInArrow" in seen["plan"]
    assert SECRET not in seen["plan"] + logged


def test_faults_on_the_way_cost_time_or_are_told(s3: S3Server) -> None:
    """After 503, a reset and half a body the rows are right; an error says that keys have expired."""
    seen, logged = run(s3, FAULTS, json.dumps(s3a_settings()))
    assert seen["in the end"] == [3 * 200 + 200, 3 * 200 + 200, 3 * 200 + 200]
    for fault in ("SLOW_DOWN", "RESET"):
        assert seen[f"{fault} append"] == [200, True]
    for fault in ("SLOW_DOWN", "RESET", "TRUNCATED"):
        for way in ("s3a", "workers"):
            assert seen[f"{fault} {way}"] == [True, True], (fault, way, seen)
    for way in ("append", "s3a", "workers"):
        (kind, said), happened = seen[f"EXPIRED {way}"]
        assert "xpired" in said, (way, kind, said)
        assert happened
    assert seen["EXPIRED append"][0][0] == "StorageError"
    assert SECRET not in logged + json.dumps(seen)
