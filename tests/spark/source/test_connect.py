"""Spark Connect: a session that has no JVM at hand reads, writes and streams by the format `instar`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("use_connect.py")

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return what a client saw, in a process of its own: a process has one kind of session."""
    # SPARK_TESTING makes PySpark choose a free port for the server, and find it.
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_TESTING": "1",
    }
    command = [sys.executable, str(SCRIPT), str(tmp_path_factory.mktemp("connect"))]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, timeout=550)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_client_reads_with_a_condition_and_columns(seen: dict[str, dict[str, Any]]) -> None:
    """`where` and `columns` choose, and Spark's filters of one frame do not disturb each other."""
    assert seen["read"] == {
        "where and columns": ["v3", "v4"],
        "one filter": ["v1"],
        "another filter": ["v4"],
    }


def test_a_client_writes_in_one_commit(seen: dict[str, dict[str, Any]]) -> None:
    """A token makes writing again do nothing; a client's frame can also be appended, or begin a table."""
    assert seen["write"] == {
        "appended": 1,
        "keys": [1, 2, 3, 4, 5, 6],
        "compacted": 1,
        "made": [0, 1, 2, 3, 4],
    }


def test_a_client_streams_exactly_once(seen: dict[str, dict[str, Any]]) -> None:
    """A stream goes on from its checkpoint, and repeats nothing."""
    seven = [1, 2, 3, 4, 5, 6, 7]
    assert seen["stream"] == {"first": seven[:-1], "then": seven}


def test_a_client_runs_the_statements_that_need_no_jvm(seen: dict[str, dict[str, Any]]) -> None:
    """`store.sql` updates, deletes and describes in the client's own process, and refuses all else."""
    refused = seen["sql"].pop("refused")
    assert seen["sql"] == {
        "updates": 2,
        "keys": [7, 101],
        "history": ["retracted 5 rows", "changed rows by 2 updates"],
    }
    assert [kind for kind, _ in refused] == ["UsageError", "UsageError"]
    assert all("Spark Connect" in text for _, text in refused)


USAGE = "instar.errors.UsageError: "
MISFIT = "DataMismatchError: column `k` of the data does not fit: "
FENCE = "instar.errors.ReaderFencedError: reader of `t` at schema 0 is fenced: column `k` (field 1)"
ERRORS = {
    "no table": ("AnalysisException", f"{USAGE}the format 'instar' needs .option('table', …)"),
    "no condition": ("AnalysisException", f"{USAGE}'k >' is not a condition in SQL"),
    "undecided": ("PythonException", f"{USAGE}whether \"soundex(v) = 'V000'\" is true for a row"),
    "misfit": ("AnalysisException", f"{MISFIT}the column is not null, and this row has no value. Row 0"),
    "fence": ("AnalysisException", FENCE),
    "fence in a stream": ("StreamingQueryException", FENCE),
    "table.read": ("UsageError", "this session is a Spark Connect client, which has no JVM at hand"),
    "register": ("UsageError", "this session is a Spark Connect client, which has no JVM at hand"),
    "delete": ("UsageError", "in this process, without a session: table.delete(condition)"),
    "merge": ("UsageError", "table.merge(frame.toArrow(), on=…)"),
}


@pytest.mark.parametrize("what", sorted(ERRORS))
def test_a_client_is_told_what_instar_says(seen: dict[str, dict[str, Any]], what: str) -> None:
    """Through the format the class is Spark's, as docs/api.md lists it, and the message is instar's."""
    kind, message = seen["fail"][what]
    assert kind == ERRORS[what][0]
    assert ERRORS[what][1] in message
