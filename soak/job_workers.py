"""Processes that run one job of a stream on Spark, and are killed at a moment that was chosen before.

All of them use one JVM, which goes on when only the process dies, so that the next one begins soon. What
jobs are, and what must hold after a kill, is in `soak.jobs`.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from subprocess import DEVNULL
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import instar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql import SparkSession

    from instar import Stream

__all__ = ["COPYING", "DROPPING", "Kill", "Order", "Workers"]

COPYING: Final = {
    "begin": ("instar.stream.jobs", "_copy_new"),
    "plan": ("instar.stream.jobs", "plan_new"),
    "tasks": ("instar.spark.stream.write", "_run"),
    "stored": ("instar.stream.jobs", "commit_items"),
    "intent": ("instar.stream.writing", "begin_batch"),
    "moved": ("instar.stream.writing", "finish"),
    "tables": ("instar.stream.writing", "append_item"),
    "ended": ("instar.stream.writing", "end_batch"),
}
"""The moments of a job, each with the function that is about to be called.

Cursors move with the intent: `intent` is right before, and `moved` right after it. At `tables`, some of
several tables have their rows, and at `ended` all of them have, but nobody has noted so.
"""

DROPPING: Final = {
    "drop": ("instar.stream.jobs", "_drop_archived"),
    "dropping": ("instar.stream.jobs", "drop"),
    "dropped": ("instar.stream.jobs", "forget_table"),
}
"""The moments of dropping days after they were archived: at `dropped`, the stream does not know of it yet."""

_QUICKLY: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""How a JVM begins soon: some of them do not live long."""
_PATIENCE: Final = 600.0
"""How many seconds a process may take before it hangs for certain."""
_AHEAD: Final = ("pyspark.sql", "instar.api", "instar.spark", "soak.job_workers")
"""What a process finds loaded when it begins."""
_CONF: Final = {
    "spark.master": "local[2]",
    "spark.app.name": "jobs",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}


class Kill(NamedTuple):
    """When a process dies: some seconds after it has come to a moment so many times."""

    moment: str
    times: int
    seconds: float
    with_jvm: bool


class Order(NamedTuple):
    """A job, or several of them one after another, with the day of `close_day` and the end of `archive`."""

    jobs: Sequence[tuple[str, datetime]]
    kill: Kill | None = None


class _Jvm(NamedTuple):
    """A JVM that others connect to; it ends when its standard input does."""

    process: Any
    port: int
    secret: str

    @classmethod
    def start(cls) -> Self:
        from pyspark.conf import SparkConf  # noqa: PLC0415 -- only who needs Spark loads it
        from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 -- as above

        os.environ.setdefault("JDK_JAVA_OPTIONS", _QUICKLY)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        conf = SparkConf(loadDefaults=False).setAll(list(_CONF.items()))
        quietly = {"start_new_session": True, "stdout": DEVNULL, "stderr": DEVNULL}
        gateway: Any = launch_gateway(conf, quietly)  # type: ignore[no-untyped-call]
        parameters = gateway.gateway_parameters
        gateway.close()
        return cls(gateway.proc, parameters.port, parameters.auth_token)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()


class Workers:
    """Starts processes that carry out orders, and the JVM for them."""

    def __init__(self, location: Path) -> None:
        self._location = location
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(list(_AHEAD))
        self._jvm: _Jvm | None = None

    def carry_out(self, order: Order) -> bool:
        """Let a process work until it is done or killed; return whether it was killed."""
        if self._jvm is None:
            self._jvm = _Jvm.start()
        errors = self._location.with_name(f"{self._location.name}.err")
        worker = self._context.Process(
            target=_work,
            args=(
                str(self._location),
                self._jvm.process.pid,
                self._jvm.port,
                self._jvm.secret,
                order,
                errors,
            ),
        )
        worker.start()
        worker.join(_PATIENCE)
        assert worker.exitcode is not None, f"it hangs at {order}: {errors.read_text()[-4000:]}"
        killed = worker.exitcode == -signal.SIGKILL
        assert killed or worker.exitcode == 0, f"it failed at {order}: {errors.read_text()[-4000:]}"
        if killed and order.kill is not None and order.kill.with_jvm:
            self._jvm.stop()
            self._jvm = None
        return killed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._jvm is not None:
            self._jvm.stop()


def _work(location: str, jvm: int, port: int, secret: str, order: Order, errors: Path) -> None:
    """Carry out an order; this is all that a process does."""
    with errors.open("w") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    os.environ |= {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    try:
        spark = _connect()
        if order.kill is not None:
            _lie_in_wait(order.kill, jvm)
        with instar.open(location) as store:
            stream = store.stream("s")
            for name, day in order.jobs:
                _run(_job(stream, spark, name, day))
    except BaseException:  # noqa: BLE001 -- whoever waits reads it
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)  # the session stays for the next one


def _connect() -> SparkSession:
    """Return a session of one's own in the JVM that all use."""
    from pyspark import SparkContext  # noqa: PLC0415 -- only who needs Spark loads it
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 -- as above
    from pyspark.sql import SparkSession  # noqa: PLC0415 -- as above

    gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
    shared = gateway.jvm.org.apache.spark.SparkContext.getOrCreate()
    context = SparkContext(gateway=gateway, jsc=gateway.jvm.JavaSparkContext.fromSparkContext(shared))
    context.setLogLevel("OFF")
    return SparkSession(context).newSession()


def _job(stream: Stream, spark: SparkSession, name: str, day: datetime) -> Callable[[], object]:
    jobs: dict[str, Callable[[], object]] = {
        "repartition": lambda: stream.repartition(spark, by="billed"),
        "archive": lambda: stream.archive(spark, before=day),
        "drop": lambda: stream.archive(spark, before=day, drop=True),
        "close_day": lambda: stream.close_day(spark, day),
    }
    return jobs[name]


def _lie_in_wait(kill: Kill, jvm: int) -> None:
    """Have this process killed once it has come to a moment."""
    module, name = (COPYING | DROPPING)[kill.moment]
    names = vars(importlib.import_module(module))
    function = names[name]
    came = iter(range(1, sys.maxsize))

    def strike() -> None:
        if kill.with_jvm:
            os.killpg(jvm, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    def call(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 -- whatever the function takes
        if next(came) == kill.times:
            if kill.seconds:
                threading.Timer(kill.seconds, strike).start()
            else:
                strike()
        return function(*arguments, **named)

    names[name] = call


def _run(job: Callable[[], object]) -> None:
    """Run a job. Spark waits ten seconds for a Python worker; on a busy machine, run it again."""
    for _ in range(5):
        try:
            job()
        except Exception:
            if "failed to connect back" not in traceback.format_exc():
                raise
        else:
            return
    raise AssertionError("no Python worker began in time")
