"""A stream whose driver is killed between storing and committing, and right after: every row exactly once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import instar
from tests.spark.streaming.stream_until_killed import start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCRIPT = Path(__file__).with_name("stream_until_killed.py")


def run(lake: Path, checkpoint: Path, when: str) -> None:
    """Run the stream in processes of its own until it kills itself.

    Spark waits ten seconds for a Python worker, which a busy machine may not start in time: a stream that
    fails to begin begins again.
    """
    command = [sys.executable, str(SCRIPT), str(lake), str(checkpoint), when]
    said = checkpoint.with_suffix(".txt")
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    for _ in range(5):
        # A file, since workers that outlive their driver would keep a pipe open.
        with said.open("w") as file:
            code = subprocess.call(command, stdout=file, stderr=file, env=environment)
        if "failed to connect back" not in said.read_text(encoding="utf-8"):
            break
    assert code == -signal.SIGKILL, said.read_text(encoding="utf-8")


@pytest.mark.timeout(1200)
def test_a_stream_that_is_killed_goes_on_without_losing_or_doubling_a_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Killed before the commit, the batch is written again; killed after it, the repetition does nothing."""
    lake, checkpoint = tmp_path / "lake", tmp_path / "cp"
    with instar.open(lake) as store:
        origin = store.create_table("origin", "k bigint, v string")
        copy = store.create_table("copy", "k bigint, v string")

        def add(first: int) -> None:
            keys = list(range(first, first + 100))
            origin.append(pa.table({"k": keys, "v": [str(key) for key in keys]}))

        def keys() -> list[int]:
            return sorted(copy.snapshot().to_arrow().column("k").to_pylist())

        add(0)
        run(lake, checkpoint, "before")
        assert keys() == []
        stored = [item.key for item in copy._services.blob.list() if item.key.endswith(".parquet")]
        assert len(stored) > origin.state.totals.parts, "the batch was stored and not committed"
        run(lake, checkpoint, "after")
        assert keys() == list(range(100))
        add(100)
        instar.register(spark, store)
        start(spark, str(lake), str(checkpoint)).awaitTermination()
        assert keys() == list(range(200))
        appended = [commit for commit in copy.history() if commit.what.startswith("appended")]
        assert len(appended) == 2
