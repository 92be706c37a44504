"""How benchmarks measure: everything that is compared runs by turns, and what is told is a ratio.

One run on one machine compares like with like, and turns spread what disturbs the machine over all. An
absolute time is only as good as the machine and the moment; it stands beside the ratio, not in its place.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from statistics import median
from typing import TYPE_CHECKING, Final, TypeVar

from rich.console import Console
from rich.progress import track

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

__all__ = ["Ratio", "interleave", "machine", "say", "seconds", "steps", "timing", "warmed"]

K = TypeVar("K")
T = TypeVar("T")

_BLOCKS: Final = 5
_PACKAGES: Final = ("instar", "deltalake", "pyiceberg", "pyarrow")


@dataclass(frozen=True)
class Ratio:
    """How many times one thing is another, and between which values that moved during the run."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, samples: Sequence[float], base: Sequence[float]) -> Ratio:
        """Compare samples that were taken by turns: in a few stretches of the run, each by its median."""
        blocks = min(_BLOCKS, len(samples), len(base))
        ratios = [
            median(_block(samples, at, blocks)) / median(_block(base, at, blocks)) for at in range(blocks)
        ]
        return cls(median(ratios), min(ratios), max(ratios))

    def __str__(self) -> str:
        spread = f" ({_brief(self.low)}…{_brief(self.high)})" if self.low != self.high else ""
        return f"{_brief(self.median)}{spread}"


def interleave(title: str, cases: Mapping[K, Callable[[], T]], rounds: int) -> dict[K, list[T]]:
    """Run every case once a round, forwards and backwards by turns, and return what each answered."""
    answers: dict[K, list[T]] = {name: [] for name in cases}
    there = list(cases)
    for turn in steps(range(rounds), title):
        for name in there if turn % 2 == 0 else reversed(there):
            answers[name].append(cases[name]())
    return answers


def warmed(title: str, cases: Mapping[K, Callable[[], T]], rounds: int) -> dict[K, list[T]]:
    """Interleave as well, after a first round that does not count: a JVM compiles what it runs."""
    answers = interleave(title, cases, rounds + 1)
    return {name: given[1:] for name, given in answers.items()}


def seconds(do: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    do()
    return time.perf_counter() - start


def timing(do: Callable[..., object], *args: object) -> Callable[[], float]:
    """Return a call that does something and tells how long it took."""
    return lambda: seconds(lambda: do(*args))


def steps(work: Iterable[T], title: str, total: int | None = None) -> Iterator[T]:
    """Go through some work, with a bar on a terminal and without a word elsewhere."""
    quiet = not sys.stderr.isatty()
    yield from track(work, title, total=total, console=_stderr(), disable=quiet, transient=True)


def say(text: str) -> None:
    """Tell whoever is watching what happens, apart from the results."""
    _stderr().print(text, highlight=False)


def machine() -> dict[str, str]:
    """Describe what the figures depend on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    facts = {
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "load": f"{os.getloadavg()[0]:.1f}",
        "python": platform.python_version(),
    }
    return facts | {package: found for package in _PACKAGES if (found := _version(package))}


def _block(samples: Sequence[float], at: int, blocks: int) -> Sequence[float]:
    return samples[len(samples) * at // blocks : len(samples) * (at + 1) // blocks]


def _brief(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"  # noqa: PLR2004 -- three digits are enough


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _stderr() -> Console:
    return Console(stderr=True)
