"""Jobs of a stream on Spark that are killed at any moment and started again: no row is lost or doubled.

Rows of several days and versions are written here; a process of its own, with its own JVM, copies them to the
repartitioned, end-of-day and archive tables, and drops days. It is killed in the middle of a job, alone or
with its JVM, and another one goes on.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

import instar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from instar import Store, Stream
    from soak.turns import Turn

__all__ = ["run_jobs"]

_KILLS: Final = 6
_DAYS: Final = 4
_VERSIONS: Final = 4
_FIRST: Final = datetime(2024, 1, 30, tzinfo=UTC)
_COLUMNS: Final = "user string not null, at timestamp, billed timestamp"
_KINDS: Final = {"hourly": "12h", "regular": "1d", "repartitioned": "1d", "eod": "1d", "archive": "1M"}
_QUICKLY: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""How a JVM begins soon: most of them do not live long."""
_PATIENCE: Final = 600.0
"""How many seconds a process may be silent before it hangs for certain."""


def run_jobs(place: Path, turns: Iterable[Turn], kills: int = _KILLS) -> Counter[str]:
    """Kill the jobs of some streams, each so often, and return how often which job was hit."""
    done: Counter[str] = Counter()
    for at, turn in enumerate(turns):
        location = place / f"lake{at}"
        with instar.open(location) as store, _Crew(location, kills + 1) as crew:
            stream = store.create_stream("s", _schema(1), version="v0.0.1", time="at", kinds=_KINDS)
            written: list[str] = []
            hit = 0
            while hit < kills:
                written += _write(store, stream, turn.random, f"{len(written)}")
                if struck := crew.work_until_killed(turn.random):
                    hit += 1
                    done.update([struck, "killed"])
                _check_unfinished(stream, written, turn.name)
            crew.finish()
            _check(stream, written, turn.name)
            done["rows"] += len(written)
    return done


def _schema(version: int) -> str:
    number = "bigint" if version > 2 else "int"
    return f"{_COLUMNS}, n {number}" + "".join(f", c{each} string" for each in range(2, version + 1))


def _write(store: Store, stream: Stream, random: Random, name: str) -> list[str]:
    """Write rows of any day and version, and sometimes merge the parts that are there; return their names."""
    users: list[str] = []
    moment = pa.timestamp("us", "UTC")
    for number in range(random.randint(2, 4)):
        version = random.randint(1, _VERSIONS)
        own = [f"{name}-{number}-{at}" for at in range(random.randint(5, 40))]
        times = [_FIRST + timedelta(hours=random.randrange(24 * _DAYS)) for _ in own]
        rows = {
            "user": pa.array(own),
            "at": pa.array(times, moment),
            "billed": pa.array([it + timedelta(days=random.randrange(3)) for it in times], moment),
            "n": pa.array([version] * len(own), pa.int64() if version > 2 else pa.int32()),
            **{f"c{each}": pa.array([f"{each}"] * len(own)) for each in range(2, version + 1)},
        }
        stream.write(pa.table(rows), version=f"v0.0.{version}")
        users += own
    if random.random() < 0.5:
        store.maintenance(grace_ms=3_600_000).run_once()
    return users


class _Crew:
    """Processes that run jobs: one at work, and one that gets ready meanwhile, for a JVM takes its time."""

    def __init__(self, location: Path, size: int) -> None:
        self._location = location
        self._size = size
        self._killed = 0
        self._longest = 1.0  # seconds that a job took
        self._workers = [_Worker(location) for _ in range(min(size, 2))]

    def work_until_killed(self, random: Random) -> str | None:
        """Let jobs run and kill them at some moment; return which was running, or none if none was."""
        worker = self._worker()
        worker.hear("ready")
        worker.say(f"work {random.randrange(2**32)}")
        moment = random.choice(["begin", "begin", "plan", "commit", "commit"])
        for _ in range(random.randint(1, 3)):
            if not worker.hear(moment):
                return None
        worker.listen_for(random.uniform(0.0, 0.05 if moment == "commit" else self._longest))
        struck = worker.kill(alone=random.choice([True, False]))
        self._longest = max(self._longest, worker.longest)
        if self._killed:
            self._workers[self._killed - 1].close()
        self._killed += 1  # if it was killed alone, its JVM may be at work still, beside the next one
        if len(self._workers) < self._size:
            self._workers.append(_Worker(self._location))
        return struck

    def finish(self) -> None:
        """Let every job come to its end."""
        worker = self._worker()
        worker.hear("ready")
        worker.say("finish")
        assert worker.hear("done"), "it did not come to its end"

    def _worker(self) -> _Worker:
        if self._killed == len(self._workers):  # more were killed than planned, some between two jobs
            self._workers.append(_Worker(self._location))
        return self._workers[self._killed]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers[max(0, self._killed - 1) :]:
            worker.close()


class _Worker:
    """A process with Spark, and what it says: a line when it begins, plans, commits and ends a job."""

    def __init__(self, location: Path) -> None:
        hear, speak = os.pipe()
        self._hear, self._rest = hear, b""
        self._running: str | None = None
        self._began = 0.0
        self._ready = False
        self.longest = 0.0
        self._errors = location.with_name(f"{location.name}-{hear}-{time.monotonic_ns()}.err")
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "soak.jobs", str(location), str(speak)],
                stdin=subprocess.PIPE,
                stdout=errors,
                stderr=errors,
                pass_fds=[speak],
                start_new_session=True,
                env={"JDK_JAVA_OPTIONS": _QUICKLY, **os.environ},
                cwd=Path(__file__).parents[1],
            )
        os.close(speak)

    def say(self, line: str) -> None:
        """Tell it what to do."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def hear(self, wanted: str) -> bool:
        """Wait until it says something; false if it has come to the end of its work first."""
        if wanted == "ready" and self._ready:
            return True
        while True:
            word = self._next_word(_PATIENCE)
            assert word is not None, f"it hangs: {self._errors.read_text()[-4000:]}"
            if word == wanted:
                return True
            if word == "done":
                return False

    def listen_for(self, seconds: float) -> None:
        """Hear what it says for a while."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and self._next_word(left) is not None:
            pass

    def kill(self, *, alone: bool) -> str | None:
        """End it at once, alone or with its JVM, and return the job that it was at."""
        if alone:
            self._process.kill()
        else:
            os.killpg(self._process.pid, signal.SIGKILL)
        while self._next_word(_PATIENCE) is not None:  # what it said before
            pass
        return self._running

    def close(self) -> None:
        """End what is left of it. Until here nobody else can have its number, since nobody waited for it."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        os.close(self._hear)

    def _next_word(self, seconds: float) -> str | None:
        """Return the first word of its next line; none if there is none in time, or ever."""
        while b"\n" not in self._rest:
            if not select.select([self._hear], [], [], seconds)[0]:
                return None
            found = os.read(self._hear, 4096)
            if not found:
                assert self._ended_by_us(), f"it failed: {self._errors.read_text()[-4000:]}"
                return None
            self._rest += found
        line, _, self._rest = self._rest.partition(b"\n")
        word, _, job = line.decode().partition(" ")
        self._ready = self._ready or word == "ready"
        if word == "begin":
            self._running, self._began = job, time.monotonic()
        elif word == "end":
            self._running, self.longest = None, max(self.longest, time.monotonic() - self._began)
        return word

    def _ended_by_us(self) -> bool:
        status = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        return status is not None and status.si_status == signal.SIGKILL


def _rows(stream: Stream, kind: str) -> pa.Table:
    with stream.snapshot(kind) as snapshot:
        return snapshot.to_arrow().sort_by("user")


def _check_unfinished(stream: Stream, written: list[str], name: str) -> None:
    """Look at a stream whose jobs were killed: every row is there, and none is twice in a kind of table."""
    seen = {kind: Counter(_rows(stream, kind)["user"].to_pylist()) for kind in _KINDS}
    for kind, found in seen.items():
        assert not found - Counter(written), f"turn {name}: {kind} tables have doubled rows"
    assert seen["hourly"] == Counter(written), f"turn {name}: hourly tables have lost rows"
    assert set(seen["regular"]) | set(seen["archive"]) == set(written), f"turn {name}: days have lost rows"


def _check(stream: Stream, written: list[str], name: str) -> None:
    """Look at a stream whose jobs are done: every kind of table has the same rows."""
    wanted = _rows(stream, "hourly")
    assert Counter(wanted["user"].to_pylist()) == Counter(written), f"turn {name}: writes were lost"
    for kind in ("repartitioned", "eod", "archive"):
        assert _rows(stream, kind).equals(wanted), f"turn {name}: {kind} tables have other rows"


def _work(location: str, tell: int) -> None:
    """Do what lines of the standard input say, until the process is killed or the lines end."""
    from instar.stream import jobs  # noqa: PLC0415 -- only workers need it
    from soak.sessions import open_spark  # noqa: PLC0415 -- as above

    def say(*words: str) -> None:
        os.write(tell, (" ".join(words) + "\n").encode())

    def before(word: str, function: Any) -> Any:  # noqa: ANN401 -- any function
        def call(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 -- whatever it takes
            say(word)
            return function(*arguments, **named)

        return call

    jobs_names: dict[str, Any] = vars(jobs)
    jobs_names["plan_new"] = before("plan", jobs_names["plan_new"])
    jobs_names["commit_items"] = before("commit", jobs_names["commit_items"])
    with open_spark() as spark, instar.open(location) as store:
        spark.range(1).count()
        say("ready")
        for line in sys.stdin:
            stream = store.stream("s")
            work: dict[str, Callable[[], object]] = {
                "repartition": partial(stream.repartition, spark, by="billed"),
                "archive": partial(stream.archive, spark, before=_FIRST + timedelta(days=_DAYS), drop=True),
            }
            for day in range(_DAYS):
                work[f"close_day {day}"] = partial(stream.close_day, spark, _FIRST + timedelta(days=day))
            names = list(work)
            if line.startswith("work"):
                Random(line).shuffle(names)
            for name in names:
                say("begin", name)
                _run(work[name])
                say("end", name)
            say("done")


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


if __name__ == "__main__":
    _work(sys.argv[1], int(sys.argv[2]))
