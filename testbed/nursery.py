"""Processes that are forked, and killed: a nursery has imported everything, so a child is at work at once.

`Nursery` is the side that asks. The module that it names is the side that answers: it calls `serve`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Nursery", "Place", "Task", "serve"]

Task = dict[str, Any]


@dataclass
class Place:
    """Where a store is."""

    kind: str
    location: str
    consensus: str | None = None
    options: dict[str, str] = field(default_factory=dict)


class Nursery:
    """Lets children do something in a place, and returns what they say."""

    def __init__(self, module: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
        )

    def ask(self, place: Place, do: str, **more: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - plain JSON
        """Ask for one thing."""
        task = {
            "do": do,
            "location": place.location,
            "consensus": place.consensus,
            "options": place.options,
            **more,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        answers: list[dict[str, Any]] = json.loads(self._process.stdout.readline())
        assert not any("failed" in answer for answer in answers), "a child failed; see its traceback"
        return answers

    def close(self) -> None:
        """End."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def serve(
    calls: Mapping[str, Callable[[Task], dict[str, Any]]],
    endless: Mapping[str, Callable[[Task, Callable[[str], None]], None]],
) -> None:
    """Answer one line of JSON on standard input after the other.

    `calls` are what a child does and then answers, `endless` what it does until it is killed. Each child
    opens the store anew, as after a crash.
    """
    pa.array([0])  # which imports what it has put off until the first call
    for line in sys.stdin:
        task = json.loads(line)
        if task["do"] == "kill":
            answers = [_kill_one(task, endless[task.get("work", "commits")])]
        else:
            answers = _answer(task, calls[task["do"]])
        print(json.dumps(answers), flush=True)  # noqa: T201 - this is how it answers


def _answer(task: Task, call: Callable[[Task], dict[str, Any]]) -> list[dict[str, Any]]:
    """Do what a line asks for, in as many children as it says."""

    def start(seed: int) -> tuple[int, int]:
        return _in_a_child(lambda speak: os.write(speak, json.dumps(call({**task, "seed": seed})).encode()))

    answers = []
    for child, hear in [start(seed) for seed in range(task.get("children", 1))]:
        answers.append(json.loads(_hear_all(hear) or '{"failed": true}'))
        os.close(hear)
        os.waitpid(child, 0)
    return answers


def _kill_one(task: Task, work: Callable[[Task, Callable[[str], None]], None]) -> dict[str, Any]:
    """Let a child do a number of things, then a little more, and kill it wherever it is."""
    child, hear = _in_a_child(lambda speak: work(task, lambda text: _say(speak, text)))
    heard = b""
    while heard.count(b"\n") < task["after"] and (piece := os.read(hear, 65536)):
        heard += piece
    time.sleep(task["seconds"])
    os.kill(child, signal.SIGKILL)
    heard += _hear_all(hear)
    _, status = os.waitpid(child, 0)
    os.close(hear)
    said = [line.split(" ", 1) for line in heard.decode().splitlines()]
    return {"said": said, "killed": os.WIFSIGNALED(status)}


def _say(speak: int, text: str) -> None:
    os.write(speak, f"{text}\n".encode())


def _in_a_child(write: Callable[[int], object]) -> tuple[int, int]:
    """Fork; return the child's id and where it can be heard."""
    hear, speak = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(hear)
            write(speak)
            code = 0
        finally:
            os._exit(code)
    os.close(speak)
    return child, hear


def _hear_all(hear: int) -> bytes:
    """Listen until the other end is closed."""
    heard = b""
    while piece := os.read(hear, 65536):
        heard += piece
    return heard
