"""Writers in processes of their own that append to one table at the same time."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TYPE_CHECKING, Self
from unittest.mock import patch

from bench.engines import Place, load_engine

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from types import TracebackType

__all__ = ["Crew", "Job"]

_HEAD_START = 0.05


@dataclass(frozen=True)
class Job:
    """What a writer does: append to a table for some time, and leave out fsync if it need not be durable."""

    engine: str
    place: Place
    seconds: float
    durable: bool = True


class Crew:
    """Processes that wait for jobs. They start once, so that no run pays for imports."""

    def __init__(self, size: int) -> None:
        context = get_context("spawn")
        pairs = [context.Pipe() for _ in range(size)]
        self._pipes = [mine for mine, _ in pairs]
        self._processes = [context.Process(target=_work, args=(theirs,), daemon=True) for _, theirs in pairs]

    def __enter__(self) -> Self:
        for process in self._processes:
            process.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            pipe.send(None)
            process.join()

    def run(self, job: Job, writers: int) -> float:
        """Let some writers do a job on a new table, and return how many commits they made in a second."""
        engine = load_engine(job.engine)
        engine.create(job.place)
        pipes = self._pipes[:writers]
        for pipe in pipes:
            pipe.send(job)
        for pipe in pipes:
            _receive(pipe)
        start = time.monotonic() + _HEAD_START
        for pipe in pipes:
            pipe.send(start)
        reports = [_receive(pipe) for pipe in pipes]
        commits = sum(commits for commits, _ in reports)
        there = engine.count(job.place)
        assert there == commits + writers, f"{there} of {commits + writers} appends are in the table"
        return commits / (max(end for _, end in reports) - start)


def _receive(pipe: Connection) -> tuple[int, float]:
    answer: tuple[int, float] | BaseException = pipe.recv()
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _work(pipe: Connection) -> None:
    while (job := pipe.recv()) is not None:
        try:
            _do(job, pipe)
        except Exception as error:  # noqa: BLE001 -- whoever gave the job raises it
            pipe.send(RuntimeError(f"a writer of {job.engine} failed: {error!r}"))


def _do(job: Job, pipe: Connection) -> None:
    with ExitStack() as stack:
        if not job.durable:
            stack.enter_context(patch("os.fsync"))
        append = stack.enter_context(load_engine(job.engine).appending(job.place))
        append()  # the first one is never like the others
        pipe.send((0, 0.0))
        start: float = pipe.recv()
        time.sleep(max(0.0, start - time.monotonic()))
        commits = 0
        while time.monotonic() < start + job.seconds:
            append()
            commits += 1
        pipe.send((commits, time.monotonic()))
