"""Who plays in the league: what a contender must be able to do, and which of them can be here."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from bench.ducklake import find_ducklake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from bench.skipping.filters import Filter

__all__ = ["Contender", "Field", "Found", "NotExpressibleError", "enter"]


class NotExpressibleError(Exception):
    """A contender has no way to ask for this."""


class Found(NamedTuple):
    """The ids of the rows that a contender returned, and what it says of its own way to them."""

    ids: set[int]
    row_groups: int | None = None
    """How many row groups it read after it had opened files to decide."""


class Contender(Protocol):
    """A table with the league's rows, in one file a part."""

    name: str
    data: Path
    """Where the files are."""
    nan_is_greatest: bool

    def find(self, condition: Filter) -> Found:
        """Return the rows that a filter is true for; what it opens is counted meanwhile."""


class Field(NamedTuple):
    """What all contenders are made from: a directory, the league's rows as plain files in it, and Spark."""

    directory: Path
    parquet: Path
    spark: SparkSession | None


_ENTRIES: Final = (
    ("instar", "bench.skipping.ours", "Ours"),
    ("instar", "bench.skipping.ours", "OursOnSpark"),
    ("deltalake", "bench.skipping.peers", "DeltaRs"),
    ("pyiceberg", "bench.skipping.peers", "PyIceberg"),
    ("polars deltalake", "bench.skipping.peers", "PolarsOnDelta"),
    ("polars pyiceberg", "bench.skipping.peers", "PolarsOnIceberg"),
    ("duckdb", "bench.skipping.peers", "DuckDb"),
    ("", "bench.skipping.peers", "DuckLake"),
    ("pyspark", "bench.skipping.ours", "PlainSpark"),
)
"""The packages that each needs, and where it is; who reads another's table comes after it."""


def enter(field: Field, left_out: Callable[[str], None]) -> Iterator[Contender]:
    """Make the table of each contender in turn; say of each that cannot play why not."""
    for packages, module, name in _ENTRIES:
        missing = [package for package in packages.split() if find_spec(package) is None]
        if missing:
            left_out(f"{name} in the league: {', '.join(missing)} is not installed here")
            continue
        if name == "DuckLake" and find_ducklake() is None:
            left_out("DuckLake in the league: only `./dev bench` installs it")
            continue
        kind = getattr(import_module(module), name)
        if kind.needs_spark and field.spark is None:
            left_out(f"{kind.name} in the league: a quick run starts no Spark")
            continue
        yield kind(field)
