"""A Spark session of our own, for commands that have none to use."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import signal
import subprocess
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
    from types import FrameType

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
    """Cancel what Spark is doing if the user interrupts, and let the interruption come through after that.

    PySpark does not take an interruption well: while it collects rows it waits for its job to end all the
    same, in a finalizer it is lost, and a call to the JVM that it cuts short leaves only trouble to clean
    up. So jobs are cancelled first, which ends most of what can be waited for, by a thread that can talk to
    the JVM meanwhile. What is not over then is interrupted, again and again.
    """
    over = threading.Event()
    asked = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            signal.default_int_handler(number, frame)
        asked.set()
        threading.Thread(target=_cancel, args=(spark, over), daemon=True).start()

    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, interrupt) if is_main else None
    try:
        yield
    except BaseException as error:
        if not asked.is_set() and not _is_interruption(error):
            raise
        asked.set()
    finally:
        over.set()
        if is_main:
            signal.signal(signal.SIGINT, before)
    if asked.is_set():
        atexit.register(_end_jvm, grace_seconds=5)
        raise KeyboardInterrupt


def _cancel(spark: SparkSession, over: threading.Event) -> None:
    """Cancel jobs, also those that are submitted yet, until the interruption has come through."""
    while not over.is_set():
        for _ in range(4):
            with suppress(Py4JError):
                spark.sparkContext.cancelAllJobs()
            if over.wait(0.25):
                return
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def _end_jvm(*, grace_seconds: float) -> None:
    """Let the JVM that PySpark started not outlive this process: a task in a tight loop keeps it forever."""
    process = getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001 -- there is no other way to it
    if process is None:
        return
    process.stdin.close()  # which it takes as the end
    try:
        process.wait(grace_seconds)
    except subprocess.TimeoutExpired:
        process.kill()


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
        _end_jvm(grace_seconds=0)
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
