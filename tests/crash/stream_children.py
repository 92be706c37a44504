"""Processes that write to a stream and copy its tables until they are killed: one for each line of JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import pyarrow as pa

import instar
from tests.crash.ahead import import_ahead

NAME = "billing/events"
SCHEMA = "name string, at timestamp, billed timestamp"
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
KINDS = {"regular": "1d", "hourly": "12h", "repartitioned": "1d", "eod": "1d", "archive": "1y"}


def batch(name: str) -> pa.Table:
    """Return three rows of one write: on three days, billed on others."""
    number = sum(name.encode())
    at = pa.array([FIRST + timedelta(days=(number + day) % 5, hours=13) for day in range(3)], _TIME)
    billed = pa.array([FIRST + timedelta(days=(number * 3 + day) % 4) for day in range(3)], _TIME)
    return pa.table({"name": [f"{name}/{day}" for day in range(3)], "at": at, "billed": billed})


_TIME = pa.timestamp("us", "UTC")


def work(task: dict[str, Any], tell: int) -> None:
    """Write and copy forever, and tell of each write that was acknowledged."""
    stream = instar.open(task["location"]).stream(NAME)
    for number in range(10_000):
        name = f"{task['seed']}-{number}"
        stream.write(batch(name), version="v0.0.1", token=name)
        os.write(tell, f"{name}\n".encode())
        stream.repartition(by="billed")
        for day in range(3):
            stream.close_day(None, FIRST + timedelta(days=day))
        stream.archive(before=FIRST + timedelta(days=3), drop=number % 2 == 1)


def _try_everything() -> None:
    """Do what a worker does, once, in a place that nobody else sees."""
    stream = instar.open("memory://").create_stream(NAME, SCHEMA, version="v0.0.1", time="at", kinds=KINDS)
    stream.write(batch("0-0"), version="v0.0.1", token="0-0")
    stream.repartition(by="billed")
    stream.close_day(None, FIRST)
    stream.archive(before=FIRST + timedelta(days=3), drop=True)


def run(task: dict[str, Any]) -> list[str]:
    """Fork a worker, kill it some time after it has told of some writes, and return what it told."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        work(task, writing)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        said = [told.readline().strip() for _ in range(task["after"])]
        time.sleep(task["seconds"])
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return [*said, *told.read().split()]


if __name__ == "__main__":
    import_ahead(_try_everything)
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)  # noqa: T201 -- the answer
