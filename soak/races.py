"""Two compactions and two writers on one table at once, with vacuums: nothing is lost or doubled."""

from __future__ import annotations

import threading
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Final

import pyarrow as pa

import instar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from soak.turns import Turn

__all__ = ["run_races"]

_STEPS: Final = 12


def run_races(place: Path, turns: Iterable[Turn]) -> Counter[str]:
    """Let four threads, each with its own handle, work on a table; compare what is left with the books."""
    done: Counter[str] = Counter()
    for name, random in turns:
        location = place / name.replace(":", "-")
        with instar.open(location) as store:
            store.create_table("t", "n bigint, w int", order_by=random.choice([(), ("n",)]))
        books: list[Counter[int]] = [Counter(), Counter()]
        seeds = [random.randrange(2**32) for _ in range(4)]
        failures: list[BaseException] = []
        writing = threading.Event()
        threads = [
            threading.Thread(
                target=_guarded(_write, failures), args=(location, at, Random(seeds[at]), books[at])
            )
            for at in range(2)
        ]
        keepers = [
            threading.Thread(
                target=_guarded(_compact, failures), args=(location, Random(seed), writing, done)
            )
            for seed in seeds[2:]
        ]
        for thread in (*threads, *keepers):
            thread.start()
        for thread in threads:
            thread.join()
        writing.set()
        for thread in keepers:
            thread.join()
        assert not failures, f"turn {name}: {failures[0]!r}"
        with instar.open(location) as store:
            table = store.table("t")
            left = Counter(table.snapshot().to_arrow()["n"].to_pylist())
            assert left == books[0] + books[1], f"turn {name}: rows were lost or doubled"
            table.compact(full=True)
            table.vacuum(grace_ms=0)
            assert Counter(table.snapshot().to_arrow()["n"].to_pylist()) == left, (
                f"turn {name}: after the race"
            )
        done["turns"] += 1
    return done


def _guarded(work: Callable[..., None], failures: list[BaseException]) -> Callable[..., None]:
    def run(*arguments: object) -> None:
        try:
            work(*arguments)
        except BaseException as error:  # noqa: BLE001 -- whatever it is, the turn has found it
            failures.append(error)

    return run


def _write(location: Path, writer: int, random: Random, book: Counter[int]) -> None:
    """Append rows of one's own, delete some, retract some by value, and add columns."""
    with instar.open(location) as store:
        table = store.table("t")
        for step in range(_STEPS):
            mine = sorted(book.elements())
            match random.choice(("append", "append", "delete", "apply", "evolve")):
                case "delete" if mine:
                    gone = random.choice(mine)
                    table.delete(f"n = {gone} and w = {writer}")
                    del book[gone]
                case "apply" if mine:
                    gone = random.choice(mine)
                    kept = set(table.schema.names) - {"n", "w"}
                    row = {"n": [gone], "w": pa.array([writer], pa.int32()), "_diff": [-1]}
                    table.apply(pa.table(row | {name: pa.nulls(1, pa.string()) for name in kept}))
                    book[gone] -= 1
                case "evolve" if writer == 0 and len(table.schema.names) < 5:
                    table.append(pa.table({f"c{writer}{step}": pa.nulls(0, pa.string())}), evolve=True)
                case _:
                    new = [writer * 10**6 + step * 10 + number for number in range(random.randint(1, 4))]
                    table.append(pa.table({"n": new, "w": pa.array([writer] * len(new), pa.int32())}))
                    book.update(new)


def _compact(location: Path, random: Random, end: threading.Event, done: Counter[str]) -> None:
    """Compact, and vacuum now and then, until the writers have ended."""
    with instar.open(location) as store:
        table = store.table("t")
        while True:
            ended = end.is_set()
            report = table.compact(full=random.random() < 0.5)
            done["jobs"] += report.jobs
            done["overtaken"] += report.overtaken
            if random.random() < 0.3:
                table.vacuum(grace_ms=0)
            if ended:
                return
