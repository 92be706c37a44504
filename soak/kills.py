"""Writers that are killed in the middle of their puts to S3: what was acknowledged is there, once.

A child appends rows with tokens and prints each as soon as it is acknowledged; it is killed after a random
time, again and again, while another one may be at work. Rows that were not acknowledged are there or not, but
never twice, and after a vacuum everything can still be read.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

import instar
from instar.errors import NotFoundError
from testbed.servers import S3Server

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from soak.turns import Turn

__all__ = ["run_kills"]

_CHILD: Final = """
import json, sys, pyarrow as pa, instar
url, options, name = json.loads(sys.argv[1])
store = instar.open(url, options=options)
try:
    table = store.table("t")
except instar.errors.NotFoundError:
    try:
        table = store.create_table("t", "who string, n bigint, pad string")
    except instar.errors.TableExistsError:  # another one was faster
        table = store.table("t")
for n in range(10_000):
    rows = pa.table({"who": [name] * 3, "n": [n] * 3, "pad": ["x" * 200_000] * 3})
    table.append(rows, token=f"{name}-{n}")
    print(n, flush=True)
    if n % 5 == 4:
        while True:
            try:
                table.evolve().add_column(f"c_{name}_{n}", "int").commit()
                break
            except instar.errors.SchemaMismatchError:
                pass  # another one evolved it meanwhile
"""


def run_kills(place: Path, turns: Iterable[Turn]) -> Counter[str]:
    """Kill writers, and return how many were killed and how many rows they had been promised."""
    server = S3Server()
    done: Counter[str] = Counter()
    try:
        for turn in turns:
            done.update(_kill_some(place, server, turn))
    finally:
        server.stop()
    return done


def _kill_some(place: Path, server: S3Server, turn: Turn) -> Counter[str]:
    url = server.url()
    done: Counter[str] = Counter()
    promised: dict[str, int] = {}
    for at in range(turn.random.randint(2, 4)):
        names = [f"w{at}a", f"w{at}b"][: turn.random.randint(1, 2)]
        children = [_Writer(place, url, server.options, name) for name in names]
        for child in children:
            if turn.random.random() < 0.8:  # the others may be killed while they create the table
                child.wait_for_a_promise()
        for name, child in zip(names, children, strict=True):
            time.sleep(turn.random.uniform(0.0, 2.0))
            promised[name] = child.kill()
            done["killed"] += 1
    done["promised"] += 3 * sum(promised.values())
    try:
        table = instar.open(url, options=server.options).table("t")
    except NotFoundError:
        assert not any(promised.values()), f"turn {turn.name}: the table is gone"
        return done
    for look in ("before a vacuum", "after it"):
        rows = table.snapshot(columns=["who", "n"]).to_arrow().to_pylist()
        found = Counter((row["who"], row["n"]) for row in rows)
        assert set(found.values()) <= {3}, f"turn {turn.name}, {look}: {found}"
        for name, count in promised.items():
            there = sum(who == name for who, _ in found)
            assert count <= there <= count + 1, (
                f"turn {turn.name}, {look}: {name} was promised {count}: {there}"
            )
        table.vacuum(grace_ms=0)
    return done


class _Writer:
    """A process that writes, and what it says."""

    def __init__(self, place: Path, url: str, options: dict[str, str], name: str) -> None:
        self._said, self._errors = place / f"{name}.out", place / f"{name}.err"
        command = [sys.executable, "-c", _CHILD, json.dumps([url, options, name])]
        with self._said.open("w") as out, self._errors.open("w") as err:
            self._process = subprocess.Popen(command, stdout=out, stderr=err)

    def wait_for_a_promise(self) -> None:
        """Wait until a first append has been acknowledged."""
        while not self._said.read_text() and self._process.poll() is None:
            time.sleep(0.05)

    def kill(self) -> int:
        """End it at once, and return how many appends had been acknowledged."""
        self._process.kill()
        assert self._process.wait() == -signal.SIGKILL, self._errors.read_text()
        return len(self._said.read_text().splitlines())
