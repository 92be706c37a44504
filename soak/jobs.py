"""Jobs of a stream on Spark that are killed at any moment and started again: no row is lost or doubled.

Rows of several days and versions are written here; processes of their own copy them to the repartitioned,
end-of-day and archive tables, and drop days (`soak.job_workers`). First the job is chosen that is to be hit,
then the moment, so that all of them are hit alike.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import pyarrow as pa

import instar
from soak.job_workers import COPYING, DROPPING, Kill, Order, Workers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from random import Random

    from instar import Store, Stream
    from soak.turns import Turn

__all__ = ["run_jobs"]

_KILLS: Final = 16
_DAYS: Final = 4
_VERSIONS: Final = 4
_FIRST: Final = datetime(2024, 1, 30, tzinfo=UTC)
_END: Final = _FIRST + timedelta(days=_DAYS)
_COLUMNS: Final = "user string not null, at timestamp, billed timestamp"
_KINDS: Final = {"hourly": "12h", "regular": "1d", "repartitioned": "1d", "eod": "1d", "archive": "1M"}
_JOBS: Final = ("repartition", "archive", "drop", "close_day")
_LONGEST: Final = {"begin": 1.0, "plan": 0.3, "tasks": 0.6}
"""How many seconds a kill may come after its moment, for those after which much happens."""
_SOON: Final = 0.005
"""The same for the others: most of their kills come at the moment itself."""
_WITH_JVM: Final = 0.15
"""How many of the kills also hit the JVM, which takes its time to begin again."""


def run_jobs(place: Path, turns: Iterable[Turn], kills: int = _KILLS) -> Counter[str]:
    """Kill the jobs of some streams, each so often, and return how often which was hit when."""
    done: Counter[str] = Counter()
    for at, turn in enumerate(turns):
        location = place / f"lake{at}"
        with instar.open(location) as store, Workers(location) as workers:
            stream = store.create_stream("s", _schema(1), version="v0.0.1", time="at", kinds=_KINDS)
            written: list[str] = []
            for job, moment in _victims(turn.random, kills):
                written += _write(store, stream, turn.random, f"{len(written)}")
                if job == "drop":  # nothing is dropped before the other jobs have seen it
                    _copy_to_others(stream)
                order = Order(_jobs(job, turn.random), _kill(moment, turn.random))
                done.update(_told(order, job) if workers.carry_out(order) else [f"{job}, missed"])
                if turn.random.random() < 0.5:  # otherwise the next process finds what this one left
                    _check_unfinished(stream, written, turn.name)
                if turn.random.random() < 0.5:
                    workers.carry_out(Order(order.jobs))
                    _check_unfinished(stream, written, turn.name)
            days = [("close_day", _FIRST + timedelta(days=day)) for day in range(_DAYS)]
            workers.carry_out(Order([("repartition", _FIRST), *days, ("drop", _END)]))
            _check(stream, written, turn.name)
            done["rows"] += len(written)
    return done


def _victims(random: Random, count: int) -> Iterator[tuple[str, str]]:
    """Yield jobs and moments in any order, each job as often as the others, and so its moments."""
    moments = {job: _dealt(random, list(DROPPING if job == "drop" else COPYING)) for job in _JOBS}
    for _, job in zip(range(count), _dealt(random, _JOBS), strict=False):
        yield job, next(moments[job])


def _dealt(random: Random, cards: Sequence[str]) -> Iterator[str]:
    while True:
        yield from random.sample(cards, len(cards))


def _jobs(job: str, random: Random) -> list[tuple[str, datetime]]:
    day = _FIRST + timedelta(days=random.randrange(_DAYS))
    return [(job, day if job == "close_day" else _END)]


def _kill(moment: str, random: Random) -> Kill:
    several = moment in {"tables", *DROPPING}
    at_once = random.random() < (0.3 if moment in _LONGEST else 0.75)
    seconds = 0.0 if at_once else random.uniform(0.0, _LONGEST.get(moment, _SOON))
    return Kill(moment, random.randint(1, 3) if several else 1, seconds, random.random() < _WITH_JVM)


def _told(order: Order, job: str) -> list[str]:
    """Return what is counted of a kill."""
    assert order.kill is not None
    return ["killed", job, f"{job}, {order.kill.moment}", *(["with the JVM"] if order.kill.with_jvm else [])]


def _copy_to_others(stream: Stream) -> None:
    stream.repartition(by="billed")
    for day in range(_DAYS):
        stream.close_day(None, _FIRST + timedelta(days=day))


def _schema(version: int) -> str:
    number = "bigint" if version > 2 else "int"
    return f"{_COLUMNS}, n {number}" + "".join(f", c{each} string" for each in range(2, version + 1))


def _write(store: Store, stream: Stream, random: Random, name: str) -> list[str]:
    """Write rows of any day and version, and sometimes merge the parts that are there; return their names."""
    users: list[str] = []
    moment = pa.timestamp("us", "UTC")
    for number in range(random.randint(2, 4)):
        version = random.randint(1, _VERSIONS)
        own = [f"{name}-{number}-{at}" for at in range(random.randint(5, 40))]
        times = [_FIRST + timedelta(hours=random.randrange(24 * _DAYS)) for _ in own]
        rows = {
            "user": pa.array(own),
            "at": pa.array(times, moment),
            "billed": pa.array([it + timedelta(days=random.randrange(3)) for it in times], moment),
            "n": pa.array([version] * len(own), pa.int64() if version > 2 else pa.int32()),
            **{f"c{each}": pa.array([f"{each}"] * len(own)) for each in range(2, version + 1)},
        }
        stream.write(pa.table(rows), version=f"v0.0.{version}")
        users += own
    if random.random() < 0.5:
        store.maintenance(grace_ms=3_600_000).run_once()
    return users


def _rows(stream: Stream, kind: str) -> pa.Table:
    with stream.snapshot(kind) as snapshot:
        return snapshot.to_arrow().sort_by("user")


def _check_unfinished(stream: Stream, written: list[str], name: str) -> None:
    """Look at a stream whose jobs were killed: every row is there, and none is twice in a kind of table."""
    seen = {kind: Counter(_rows(stream, kind)["user"].to_pylist()) for kind in _KINDS}
    for kind, found in seen.items():
        assert not found - Counter(written), f"turn {name}: {kind} tables have doubled rows"
    assert seen["hourly"] == Counter(written), f"turn {name}: hourly tables have lost rows"
    assert set(seen["regular"]) | set(seen["archive"]) == set(written), f"turn {name}: days have lost rows"


def _check(stream: Stream, written: list[str], name: str) -> None:
    """Look at a stream whose jobs are done: every kind of table has the same rows."""
    wanted = _rows(stream, "hourly")
    assert Counter(wanted["user"].to_pylist()) == Counter(written), f"turn {name}: writes were lost"
    for kind in ("repartitioned", "eod", "archive"):
        assert _rows(stream, kind).equals(wanted), f"turn {name}: {kind} tables have other rows"
