"""A standalone cluster with the store on S3 and logs in PostgreSQL: the whole tour, and workers that die."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from testbed.s3_proxy import S3Proxy
from testbed.s3a import s3a_settings
from testbed.spark_cluster import can_hide
from tests.servers import postgres, s3

if TYPE_CHECKING:
    from testbed.servers import PostgresServer, S3Server

__all__ = ["postgres", "s3"]

SCRIPT = Path(__file__).with_name("tour.py")
SECRETS = ("not-to-be-seen-5b1e", "nor-this-77c0")
ROWS, SUM = 300, sum(range(300))

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the worker through /proc"),
]


def test_the_whole_tour_on_a_cluster(tmp_path: Path, s3: S3Server, postgres: PostgresServer) -> None:
    """Rows are right and there once, though workers have other credentials, another disk, and are killed."""
    driver, cluster = tmp_path / "driver", tmp_path / "cluster"
    driver.mkdir()
    cluster.mkdir()
    (driver / "temporary").mkdir()
    with S3Proxy(s3.endpoint) as proxy:
        options = {
            **s3.options,
            "AWS_ENDPOINT_URL": proxy.endpoint,
            "AWS_ACCESS_KEY_ID": "of-the-driver",
            "AWS_SECRET_ACCESS_KEY": SECRETS[0],
        }
        given: dict[str, Any] = {
            "url": s3.url(),
            "options": options,
            "consensus": postgres.url().replace("postgres:@", f"postgres:{SECRETS[1]}@"),
            "settings": s3a_settings(),
            "driver": str(driver),
            "cluster": str(cluster),
            "hide": can_hide(driver),
        }
        assert SECRETS[1] in given["consensus"]
        seen, logged = run(given, driver)
        users = {request.user for request in proxy.take()}
    assert seen["warnings"] == []
    assert "FileScan parquet" in seen["shown"]
    assert seen["read"] == [2 * ROWS, 2 * ROWS, sum(range(2 * ROWS))]
    assert seen["skip"] == seen["audit"] == [ROWS, ROWS, sum(range(ROWS, 2 * ROWS))]
    assert all(read < total for read, total in seen["parts"])
    assert seen["view"] == [2 * ROWS - 1, ROWS + 7, "two"]
    assert seen["told"] == 2 * ROWS + 3
    assert seen["compacted"] > 1
    assert seen["tables"] == 3
    assert seen["range"] == [ROWS, ROWS, SUM]
    for what in ("appended", "read under fire", "streamed"):
        assert seen[what] == [ROWS, ROWS, SUM], what
    assert seen["killed"] == ["killed-append", "killed-batch", "killed-read"]
    assert seen["commits"] == [1, 1]
    assert users == {"of-the-driver"}
    for secret in SECRETS:
        assert secret not in seen["shown"] + logged


def run(given: dict[str, Any], driver: Path) -> tuple[dict[str, Any], str]:
    """Run the tour in a process of its own; return what it saw, and what it logged."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"TMPDIR": str(driver / "temporary"), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(SCRIPT), json.dumps(given)]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment, timeout=850, cwd=driver
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-8000:]
    return json.loads(done.stdout.splitlines()[-1]), done.stderr
