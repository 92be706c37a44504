"""Tables that benchmarks start from, made once a run: large ones several at a time, in processes."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TYPE_CHECKING, Final

from bench.engines import load_engine
from bench.measure import steps

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["Seeds"]

_SMALL: Final = 1000
"""Up to so many parts, a table takes less time than a process."""


class Seeds:
    """Seeded tables below one directory, by engine and number of parts."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def location(self, engine: str, parts: int, label: str = "") -> str:
        """Return where a table is or will be; with a label it is another one of that size."""
        return str(self._directory / f"{engine}-{parts}{label}")

    def make(self, wanted: Iterable[tuple[str, int]]) -> None:
        """Make tables, the longest work first."""
        jobs = [(engine, self.location(engine, parts), parts) for engine, parts in wanted]
        for job in jobs:
            if job[2] <= _SMALL:
                _make(*job)
        large = sorted(
            (job for job in jobs if job[2] > _SMALL),
            key=lambda job: (job[0] == "pyiceberg", job[2]),
            reverse=True,
        )
        if large:
            cores = len(os.sched_getaffinity(0))
            with ProcessPoolExecutor(min(cores, len(large)), mp_context=get_context("spawn")) as pool:
                made = [pool.submit(_make, *job) for job in large]
                for done in steps(as_completed(made), "making tables", total=len(made)):
                    done.result()


def _make(engine: str, location: str, parts: int) -> None:
    load_engine(engine).seed(location, parts)
