"""How many commits fit into a second, from one writer and from many, on each backend?"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.engines import Place
from bench.measure import Ratio, interleave
from bench.report import Column, Section
from bench.writers import Crew, Job

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from testbed.servers import PostgresServer, S3Server

__all__ = ["Servers", "measure_rates"]

_COLUMNS: Final = {
    "engine": Column("engine"),
    "where": Column("where"),
    "writers": Column("writers", "d"),
    "peer_ratio": Column("rate / delta-rs"),
    "writers_ratio": Column("rate / one writer"),
    "rate": Column("commits per s", ".1f"),
}
_NOTES: Final = (
    "Each commit appends a tiny batch: ten rows of 20 columns in a Parquet file, and their statistics.",
    "delta-rs does not bring its files to disk: “no fsync” is instar doing as little.",
    "PostgreSQL has the logs and a directory the files; it is compared with delta-rs on a directory.",
    "S3 is a server in Python on loopback that answers one request at a time: rates tell the requests.",
    "After each run, every commit that was acknowledged was found in the table.",
)


class Servers(NamedTuple):
    """Real servers for the backends that need one."""

    postgres: PostgresServer
    s3: S3Server


@dataclass(frozen=True)
class _Setting:
    """An engine on a backend, and the delta-rs to compare it with."""

    engine: str
    where: str
    peer: str
    place: Callable[[], Place]
    durable: bool = True


def measure_rates(
    directory: Path,
    servers: Servers,
    engines: Sequence[str],
    writers: Sequence[int],
    seconds: float,
    rounds: int,
) -> Section:
    """Let few and many writers append to new tables for some time, all settings by turns."""
    settings = [setting for setting in _settings(directory, servers) if setting.engine in engines]
    with Crew(max(writers)) as crew:

        def run(setting: _Setting, count: int) -> float:
            return crew.run(Job(setting.engine, setting.place(), seconds, setting.durable), count)

        cases = {
            (setting.engine, setting.where, count): partial(run, setting, count)
            for setting in settings
            for count in writers
        }
        rates = interleave("writers", cases, rounds)
    rows = [_row(setting, count, rates, writers[0]) for setting in settings for count in writers]
    return Section("Commits per second", _COLUMNS, rows, _NOTES)


def _settings(directory: Path, servers: Servers) -> list[_Setting]:
    def here() -> Place:
        return Place(str(directory / uuid.uuid4().hex))

    def postgres() -> Place:
        return Place(here().location, servers.postgres.url())

    def s3() -> Place:
        return Place(servers.s3.url(), options=servers.s3.options)

    return [
        _Setting("instar", "directory", "directory", here),
        _Setting("instar", "directory, no fsync", "directory", here, durable=False),
        _Setting("instar", "PostgreSQL", "directory", postgres),
        _Setting("instar", "S3", "S3", s3),
        _Setting("delta-rs", "directory", "directory", here),
        _Setting("delta-rs", "S3", "S3", s3),
    ]


def _row(
    setting: _Setting, count: int, rates: dict[tuple[str, str, int], list[float]], fewest: int
) -> dict[str, Any]:
    rate = rates[setting.engine, setting.where, count]
    peer = rates.get(("delta-rs", setting.peer, count))
    return {
        "engine": setting.engine,
        "where": setting.where,
        "writers": count,
        "peer_ratio": None if peer is None else Ratio.of(rate, peer),
        "writers_ratio": Ratio.of(rate, rates[setting.engine, setting.where, fewest]),
        "rate": median(rate),
    }
