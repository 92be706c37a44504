"""A Spark session of our own, for commands that have none to use."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Final

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from instar.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["cancelling", "local_session"]

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",
    "spark.log.level": "ERROR",
}
_LOGS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def local_session(name: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return the session that is there, as it is, or start one on this machine, quiet and without a web page.

    What the JVM prints to the standard error goes nowhere, and neither does what PySpark logs: errors reach
    Python as exceptions. Nothing is left in the current directory.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    warehouse = tempfile.mkdtemp(prefix="instar-warehouse-")
    atexit.register(shutil.rmtree, warehouse, ignore_errors=True)
    builder = SparkSession.builder.master("local[*]").appName(name)
    for key, value in {**_SETTINGS, "spark.sql.warehouse.dir": warehouse, **(settings or {})}.items():
        builder = builder.config(key, value)
    _quieten()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        try:
            with _redirected_stderr(said):
                return _start(builder)
        except PySparkRuntimeError as error:
            said.seek(0)
            why = " ".join(said.read().split()[-40:]) or str(error)
            raise UsageError(
                f"Spark did not start, which needs Java 17 or newer: install it, or set JAVA_HOME ({why})"
            ) from None


@contextmanager
def cancelling(spark: SparkSession) -> Iterator[None]:
    """Cancel what Spark is doing if the user interrupts, and only then go on with the interruption.

    Interrupted while it talks to the JVM, PySpark may find only trouble when it cleans up, and raise that.
    """
    try:
        yield
    except BaseException as error:
        if not _is_interruption(error):
            raise
        with suppress(Py4JError):
            spark.sparkContext.cancelAllJobs()
        raise KeyboardInterrupt from None


def _is_interruption(error: BaseException | None) -> bool:
    """Say whether an error is an interruption, or came up while one was handled."""
    return error is not None and (isinstance(error, KeyboardInterrupt) or _is_interruption(error.__context__))


def _start(builder: SparkSession.Builder) -> SparkSession:
    """Start a session, and keep Python's way to be interrupted.

    PySpark's asks the JVM to cancel its jobs over the very connection that is waiting for an answer.
    A JVM that is interrupted while it starts Spark need not finish first.
    """
    handler = signal.getsignal(signal.SIGINT)
    try:
        return builder.getOrCreate()
    except BaseException as error:
        if not _is_interruption(error):
            raise
        gateway = SparkContext._gateway  # noqa: SLF001 -- there is no other way to the JVM's process
        if gateway is not None:
            gateway.proc.kill()
        raise KeyboardInterrupt from None
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)


def _quieten() -> None:
    """Let PySpark and Py4J, which also does it in the root's name, not log the errors that they raise."""
    for name in _LOGS:
        PySparkLogger.getLogger(name).disabled = True
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)


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
