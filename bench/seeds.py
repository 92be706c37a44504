"""Tables that benchmarks start from, made once a run: several at a time, each in a process of its own."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TYPE_CHECKING

from bench.engines import load_engine
from bench.measure import steps

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["Seeds"]


class Seeds:
    """Seeded tables below one directory, by engine and number of parts."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def location(self, engine: str, parts: int, label: str = "") -> str:
        """Return where a table is or will be; with a label it is another one of that size."""
        return str(self._directory / f"{engine}-{parts}{label}")

    def make(self, wanted: Iterable[tuple[str, int]]) -> None:
        """Make tables, the longest work first."""
        ordered = sorted(wanted, key=lambda seed: (seed[0] == "pyiceberg", seed[1]), reverse=True)
        cores = len(os.sched_getaffinity(0))
        with ProcessPoolExecutor(min(cores, len(ordered)), mp_context=get_context("spawn")) as pool:
            made = [
                pool.submit(_make, engine, self.location(engine, parts), parts) for engine, parts in ordered
            ]
            for done in steps(as_completed(made), "making tables", total=len(made)):
                done.result()


def _make(engine: str, location: str, parts: int) -> None:
    load_engine(engine).seed(location, parts)
