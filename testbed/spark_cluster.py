"""A standalone Spark cluster on this machine: a master and workers as processes, from PySpark's own jars.

Workers see an empty directory where the driver has its files, as if they were other machines.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import pyspark

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

__all__ = ["SparkCluster", "can_hide"]

_CLASS: Final = Path(pyspark.__file__).parent / "bin" / "spark-class"
_HIDE: Final = ("unshare", "--user", "--map-root-user", "--mount", "--propagation", "private")
_COVERED: Final = 'mount -t tmpfs none "$0" && exec "$@"'
_KEPT: Final = ("PATH", "JAVA_HOME", "JDK_JAVA_OPTIONS", "LANG")
_SMALL: Final = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_IP": "127.0.0.1"}


def can_hide(directory: Path) -> bool:
    """Whether this machine can start processes that do not see a directory."""
    command = [*_HIDE, "sh", "-c", _COVERED, str(directory), "true"]
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


class SparkCluster:
    """A master, and workers of one core each that can be killed and replaced.

    `hidden` is a directory that workers and what they start do not see, and `environment` is all that they
    find in theirs, beside what Spark needs.
    """

    def __init__(
        self, place: Path, workers: int, *, hidden: Path | None, environment: Mapping[str, str]
    ) -> None:
        self._place = place
        self._hidden = hidden
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self._environment = {**kept, "HOME": str(place), "TMPDIR": str(place), **_SMALL, **environment}
        self._processes: list[subprocess.Popen[str]] = []
        master = self._start("master", "org.apache.spark.deploy.master.Master")
        self.url = _said(master, re.compile(r"Starting Spark master at (spark://\S+)"))
        self.add_workers(workers)

    def add_workers(self, count: int = 1) -> None:
        """Start workers, and wait until the master knows them."""
        started = []
        for _ in range(count):
            home = self._place / f"worker{len(self._processes)}"
            home.mkdir()
            options = ("--cores", "1", "--memory", "1g", "--work-dir", str(home), self.url)
            started.append(self._start("worker", "org.apache.spark.deploy.worker.Worker", *options))
        for worker in started:
            _said(worker, re.compile(r"(Successfully registered with master)"))

    def close(self) -> None:
        """End all processes; executors end with their workers."""
        for process in reversed(self._processes):
            process.kill()
        for process in self._processes:
            process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self, role: str, name: str, *arguments: str) -> subprocess.Popen[str]:
        command = [str(_CLASS), name, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0", *arguments]
        if role == "worker" and self._hidden is not None:
            command = [*_HIDE, "sh", "-c", _COVERED, str(self._hidden), *command]
        process = subprocess.Popen(
            command,
            env=self._environment,
            cwd=self._place,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._processes.append(process)
        return process


def _said(process: subprocess.Popen[str], wanted: re.Pattern[str]) -> str:
    """Wait until a process says something, and let it say on what it likes."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        found = wanted.search(line)
        if found:
            threading.Thread(target=process.stdout.read, daemon=True).start()
            return found[1]
    raise RuntimeError("it ended: " + "".join(lines))
