"""Everything that happens to a stream, at once: writers, evolvers, jobs that copy and drop, vacuums, readers.

Each has a handle of its own, as another process would. Every row must be once in every kind of table, and a
reader sees a write in all its tables or in none.
"""

from __future__ import annotations

import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Final

import pyarrow as pa

import instar
from instar.errors import ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from instar import Store, Stream
    from soak.turns import Turn

__all__ = ["run_families"]

_WRITES: Final = 12
_DAYS: Final = 5
_MOST_VERSIONS: Final = 6
_GRACE_MS: Final = 60_000
_TODAY: Final = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
_COLUMNS: Final = "user string not null, at timestamp, billed timestamp"
_KINDS: Final = {"hourly": "6h", "regular": "1d", "repartitioned": "1d", "eod": "1d", "archive": "1y"}


def run_families(place: Path, turns: Iterable[Turn]) -> Counter[str]:
    """Let everybody work on a stream until two writers are done; compare what is left with the books."""
    done: Counter[str] = Counter()
    for name, random in turns:
        location = place / name.replace(":", "-")
        with instar.open(location) as store:
            store.create_stream("s", _schema(1), version="v0.0.1", time="at", kinds=_KINDS)
        crowd = _Crowd(location, random, done)
        crowd.work()
        assert not crowd.failures, f"turn {name}: {crowd.failures[0]!r}"
        _check(location, crowd.written, name)
        done["turns"] += 1
    return done


def _schema(version: int) -> str:
    number = "bigint" if version > 2 else "int"
    return f"{_COLUMNS}, n {number}" + "".join(f", c{each} string" for each in range(2, version + 1))


class _Crowd:
    """Threads on one stream, and the books of what was written."""

    def __init__(self, location: Path, random: Random, done: Counter[str]) -> None:
        self.location = location
        self.written: set[str] = set()
        self.failures: list[BaseException] = []
        self._versions = 1
        self._ready = threading.Event()
        self._random = random
        self._done = done

    def work(self) -> None:
        """Let everybody work until the writers are done."""
        writers = [self._thread(self._write_all, f"w{at}") for at in range(2)]
        others = [
            self._thread(self._until_ready, act)
            for act in (
                self._raise,
                self._evolve,
                self._evolve,
                self._copy,
                self._copy,
                self._tidy,
                self._read,
            )
        ]
        for thread in (*writers, *others):
            thread.start()
        for thread in writers:
            thread.join()
        self._ready.set()
        for thread in others:
            thread.join()

    def _thread(self, target: Callable[..., None], argument: object) -> threading.Thread:
        seed = self._random.randrange(2**32)

        def run() -> None:
            try:
                with instar.open(self.location) as store:
                    target(store, Random(seed), argument)
            except BaseException as error:  # noqa: BLE001 -- told by whoever joins
                self.failures.append(error)
                self._ready.set()

        return threading.Thread(target=run)

    def _write_all(self, store: Store, random: Random, name: str) -> None:
        stream = store.stream("s")
        for number in range(_WRITES):
            version = random.randint(1, self._versions)
            rows = _rows(random, version, f"{name}-{number}")
            token = f"{name}-{number}" if random.random() < 0.5 else None
            for _ in range(random.choice([1, 2]) if token else 1):
                stream.write(rows, version=f"v0.0.{version}", token=token)
            self.written.update(rows["user"].to_pylist())
            self._done["writes"] += 1

    def _until_ready(self, store: Store, random: Random, act: Callable[..., None]) -> None:
        stream = store.stream("s")
        while not self._ready.is_set():
            try:
                act(store, stream, random)
            except ConflictError:  # the same job ran elsewhere; the next look is as good
                self._done["conflicts"] += 1
            self._ready.wait(random.random() / 10)

    def _raise(self, _: Store, stream: Stream, random: Random) -> None:
        if self._versions < _MOST_VERSIONS and random.random() < 0.3:
            version = self._versions + 1
            stream.evolve(_schema(version), version=f"v0.0.{version}")
            self._versions = version

    def _evolve(self, store: Store, _: Stream, random: Random) -> None:
        report = store.evolver(always=random.choice([True, False])).run_once()
        self._done["stamped"] += report.stamped

    def _copy(self, _: Store, stream: Stream, random: Random) -> None:
        day = _TODAY - timedelta(days=random.randrange(_DAYS))
        match random.choice(["repartition", "close", "archive"]):
            case "repartition":
                copied = stream.repartition(by="billed")
            case "close":
                copied = stream.close_day(None, day)
            case _:
                copied = stream.archive(before=day, drop=True)
        self._done["copied"] += copied.rows

    def _tidy(self, store: Store, _: Stream, random: Random) -> None:
        if random.choice([True, False]):
            store.maintenance(grace_ms=_GRACE_MS).run_once()
        else:
            store.vacuum(grace_ms=_GRACE_MS)

    def _read(self, _: Store, stream: Stream, random: Random) -> None:
        kind = random.choice(list(_KINDS))
        found = _users(stream, kind)
        assert not found - Counter(set(found)), f"{kind}: rows are doubled"
        if kind == "hourly":  # which no job drops
            seen = Counter(user.rpartition("/")[0] for user in found)
            half = [write for write, count in seen.items() if count != int(write.rpartition("/")[2])]
            assert not half, f"half of a write is seen: {half}"
        self._done["reads"] += 1


def _rows(random: Random, version: int, name: str) -> pa.Table:
    days = random.sample(range(_DAYS), random.choice([1, 2, 3]))
    times = [_TODAY - timedelta(days=day) + timedelta(hours=random.randrange(24)) for day in days]
    moment, more = pa.timestamp("us", "UTC"), range(2, version + 1)
    return pa.table(
        {
            "user": [f"{name}/{len(days)}/{day}" for day in days],
            "at": pa.array(times, moment),
            "billed": pa.array([time + timedelta(days=1) for time in times], moment),
            "n": pa.array([version] * len(days), pa.int32()),
            **{f"c{each}": ["x"] * len(days) for each in more},
        }
    )


def _users(stream: Stream, kind: str) -> Counter[str]:
    with stream.snapshot(kind, columns=["user"]) as snapshot:
        return Counter(snapshot.to_arrow()["user"].to_pylist())


def _check(location: Path, written: set[str], name: str) -> None:
    """Let the jobs come to their end, and look for every row in every kind of table."""
    with instar.open(location) as store:
        stream = store.stream("s")
        stream.repartition(by="billed")
        for day in range(_DAYS):
            stream.close_day(None, _TODAY - timedelta(days=day))
        stream.archive(before=_TODAY + timedelta(days=1))
        for kind in ("hourly", "repartitioned", "eod", "archive"):
            found = _users(stream, kind)
            lost, doubled = Counter(written) - found, found - Counter(written)
            assert not lost, f"turn {name}: {kind} tables have lost {sorted(lost)[:3]}"
            assert not doubled, f"turn {name}: {kind} tables have doubled {sorted(doubled)[:3]}"
        store.evolver(always=True).run_once()
        behind = [
            table.name
            for table in stream.tables()
            if table.kind != "hourly" and table.version != stream.max_version
        ]
        assert not behind, f"turn {name}: {behind} did not converge"
