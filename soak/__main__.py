"""`./dev soak`: run soaks by name, for a while each, and say what they did. The first fault ends the run."""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from soak.changes import run_changes
from soak.clocks import run_clocks
from soak.families import run_families
from soak.histories import run_histories
from soak.jobs import run_jobs
from soak.keyed import run_keyed
from soak.kills import run_kills
from soak.names import run_names
from soak.races import run_races
from soak.sessions import open_spark
from soak.turns import turn, turns_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from soak.turns import Turn

    Run = Callable[[Path, Iterable[Turn]], Counter[str]]

_LAWS: Final = ("tests/properties", "tests/crash", "tests/spark/skipping/test_differential.py")
_KEPT_OF_OUTPUT: Final = 4000
_UNHURRIED: Final = ("laws", "s3a", "s3")
"""Soaks that take as long as they take, so they run only if they are named."""


class Soak(NamedTuple):
    """What is tried, in a few words, and how."""

    about: str
    run: Run


def _queries(place: Path, turns: Iterable[Turn]) -> Counter[str]:
    from soak.footprint import measure  # noqa: PLC0415 -- only who needs Spark loads it
    from soak.queries import KINDS, Session, open_store, run_queries  # noqa: PLC0415 -- as above

    with open_spark() as spark, open_store(place) as store:
        session = Session(spark, store)
        for kind in KINDS.values():
            kind(session)
        before = measure(spark, place)
        done = run_queries(session, turns)
        grown = measure(spark, place).grown_since(before)
    print(f"grown by {grown} since the first query of each kind")
    assert grown.get("threads", 0) < 16, grown
    assert grown.get("descriptors", 0) < 16, grown
    return done


def _settings(place: Path, turns: Iterable[Turn]) -> Counter[str]:
    from soak.queries import open_store  # noqa: PLC0415 -- only who needs Spark loads it
    from soak.settings import run_settings  # noqa: PLC0415 -- as above

    with open_spark() as spark, open_store(place) as store:
        return run_settings(spark, store, turns)


def _streams(place: Path, turns: Iterable[Turn]) -> Counter[str]:
    from soak.streams import run_streams  # noqa: PLC0415 -- only who needs Spark loads it

    with open_spark() as spark:
        return run_streams(spark, place, turns)


def _laws(_: Path, turns: Iterable[Turn]) -> Counter[str]:
    """Let Hypothesis search beyond the examples of the tests; one turn is all that it needs."""
    first = next(iter(turns))
    return _pytest(f"--hypothesis-seed={first.name}", *_LAWS, INSTAR_HYPOTHESIS="soak")


def _on_s3(place: str) -> Run:
    """Run the tests of Spark with their stores on S3, once."""
    return lambda _, __: _pytest("tests/spark", INSTAR_TEST_STORE=place)


def _pytest(*arguments: str, **environment: str) -> Counter[str]:
    command = [sys.executable, "-m", "pytest", "-q", "--timeout=0", *arguments]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-_KEPT_OF_OUTPUT:]
    return Counter(runs=1)


SOAKS: Final = {
    "histories": Soak("random histories of a table against a model that shares no code", run_histories),
    "keyed": Soak("every kind of write to tables with keys, orders and curves, against a model", run_keyed),
    "kills": Soak("writers killed in the middle of puts to S3", run_kills),
    "races": Soak("two compactions and two writers on one table at once", run_races),
    "changes": Soak("processes that delete, upsert and add rows of the same parts at once", run_changes),
    "names": Soak("tables renamed, cloned, dropped and vacuumed, each in the middle of another", run_names),
    "families": Soak("writers, evolvers, jobs, vacuums and readers of one stream at once", run_families),
    "jobs": Soak("jobs of a stream on Spark that are killed and started again", run_jobs),
    "clocks": Soak("machines with wrong clocks on one table", run_clocks),
    "queries": Soak("queries of every kind on one session, and what they leave behind", _queries),
    "settings": Soak("every setting of Spark, alone and together", _settings),
    "streams": Soak("schema changes under running streams", _streams),
    "laws": Soak("the properties of the tests, with 20,000 examples each; takes as long as it takes", _laws),
    "s3a": Soak("the tests of Spark with stores on S3; takes as long as it takes", _on_s3("s3a")),
    "s3": Soak("the same where Spark has no file system for S3", _on_s3("s3")),
}


def main() -> int:
    """Run the soaks that are named."""
    parser = argparse.ArgumentParser(prog="./dev soak", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help=", ".join(f"{name} ({s.about})" for name, s in SOAKS.items())
    )
    parser.add_argument("--minutes", type=float, default=10, help="how long each runs (default: 10)")
    parser.add_argument(
        "--seed", type=int, help="what random numbers begin with (default: another one each time)"
    )
    parser.add_argument("--turn", help="repeat one turn, as SEED:NUMBER, that found something")
    parser.add_argument("--json", action="store_true", help="print one line of JSON for each soak")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in SOAKS]
    if unknown:
        parser.error(f"there is no soak {unknown[0]!r}; there are {', '.join(SOAKS)}")
    seed = random.SystemRandom().randrange(2**32) if given.seed is None else given.seed
    for name in given.names or [name for name in SOAKS if name not in _UNHURRIED]:
        started = time.monotonic()
        turns = turns_for(given.minutes * 60, seed)
        if given.turn is not None:
            own, _, number = given.turn.partition(":")
            turns = iter([turn(int(own), int(number))])
        if not given.json:
            print(f"{name}: {SOAKS[name].about}, for {given.minutes:g} minutes from seed {seed}", flush=True)
        with tempfile.TemporaryDirectory(prefix="instar-soak-", ignore_cleanup_errors=True) as place:
            done = SOAKS[name].run(Path(place), turns)
        seconds = round(time.monotonic() - started)
        if given.json:
            print(json.dumps({"soak": name, "seed": seed, "seconds": seconds, "done": done}), flush=True)
        else:
            print(f"{name}: nothing found in {seconds} seconds: {dict(done)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
