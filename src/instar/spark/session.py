"""A Spark session of our own, for commands that have none to use."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from instar.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["local_session"]

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",
    "spark.log.level": "ERROR",
}


def local_session(name: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return the session that is there, as it is, or start one on this machine, quiet and without a web page.

    What the JVM prints to the standard error goes nowhere: errors reach Python as exceptions.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[*]").appName(name)
    for key, value in {**_SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        try:
            with _redirected_stderr(said):
                return builder.getOrCreate()
        except PySparkRuntimeError as error:
            said.seek(0)
            why = " ".join(said.read().split()[-40:]) or str(error)
            raise UsageError(
                f"Spark did not start, which needs Java 17 or newer: install it, or set JAVA_HOME ({why})"
            ) from None


@contextmanager
def _redirected_stderr(target: IO[str]) -> Iterator[None]:
    """Let the standard error of processes started meanwhile go to a file."""
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        os.dup2(target.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
