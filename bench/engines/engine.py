"""What an engine must be able to do to be measured, and how to get at one by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from bench.workload import Question

__all__ = ["ENGINES", "Engine", "Place", "installed", "load_engine"]

ENGINES: Final = {
    "instar": ("instar", "bench.engines.ours"),
    "delta-rs": ("deltalake", "bench.engines.delta"),
    "pyiceberg": ("pyiceberg", "bench.engines.iceberg"),
}
"""Each engine's name, the package that it needs, and the module that drives it."""


@dataclass(frozen=True)
class Place:
    """Where a table is, for any process to open."""

    location: str
    consensus: str | None = None
    options: dict[str, str] = field(default_factory=dict)


class Engine(Protocol):
    """One engine; every module of `ENGINES` is one."""

    def seed(self, location: str, parts: int) -> None:
        """Make a table in a new directory that believes to have the files of `workload`."""

    def plan(self, location: str, question: Question) -> int:
        """Open a table and return how many files its statistics leave for a question."""

    def create(self, place: Place) -> None:
        """Make an empty table."""

    def appending(self, place: Place) -> AbstractContextManager[Callable[[], object]]:
        """Open a table for appends of one tiny batch each, with its Parquet file."""

    def count(self, place: Place) -> int:
        """Return how many files a table has."""


def installed(name: str) -> bool:
    """Whether an engine can be used here; peers are only in the environment of `./dev bench`."""
    package, _ = ENGINES[name]
    return find_spec(package) is not None


def load_engine(name: str) -> Engine:
    """Import an engine."""
    _, module = ENGINES[name]
    return cast("Engine", import_module(module))
