"""Machines whose clocks are wrong, by up to days: no row is lost, and none comes twice.

All of them write to one table, read it, listen to it and vacuum it. A vacuum may be refused because of the
clock; nothing else may.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

import instar
from instar.api.table import Table
from instar.errors import UsageError
from instar.table import TableLog, wall_clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from soak.turns import Turn

__all__ = ["run_clocks"]

_DAY: Final = 24 * 60 * 60 * 1000
_STEPS: Final = 30


def run_clocks(place: Path, turns: Iterable[Turn]) -> Counter[str]:
    """Let machines with wrong clocks share tables, and return what they did how often."""
    done: Counter[str] = Counter()
    for at, turn in enumerate(turns):
        done.update(_share(f"{place}/lake{at}", turn))
    return done


def _skewed(table: Table, clock: Callable[[], int]) -> Table:
    """Return a handle of a machine with another clock."""
    services = replace(table._services, clock=clock)
    return Table(services, TableLog(services, table.name))


def _share(location: str, turn: Turn) -> Counter[str]:
    draw = turn.random
    first = instar.open(location).create_table("t", "n bigint")
    skews = [0, *(draw.randint(-3 * _DAY, 3 * _DAY) for _ in range(3))]
    machines = [_skewed(first, lambda skew=skew: wall_clock() + skew) for skew in skews]  # type: ignore[misc]
    wanted: Counter[int] = Counter()
    heard: Counter[int] = Counter()
    told = 0
    done: Counter[str] = Counter()
    held: list[tuple[Any, int]] = []
    for number in range(_STEPS):
        table = draw.choice(machines)
        match draw.choice(["append", "append", "append", "read", "hold", "listen", "vacuum"]):
            case "append":
                table.append(pa.table({"n": [number] * 2}))
                wanted[number] += 2
                done["append"] += 1
            case "read":
                assert Counter(table.snapshot().to_arrow()["n"].to_pylist()) == wanted, turn.name
                done["read"] += 1
            case "hold":
                held.append((table.snapshot(), wanted.total()))
                done["hold"] += 1
            case "listen":
                for changes in table.listen(since=told - 1, timeout=0):
                    heard.update(changes.rows["n"].to_pylist())
                    told = changes.upper
                    break
                done["listen"] += 1
            case "vacuum":
                try:
                    table.vacuum(grace_ms=0)
                    done["vacuum"] += 1
                except UsageError:
                    done["vacuum refused"] += 1
    for snapshot, rows in held:
        assert snapshot.to_arrow().num_rows == rows, f"turn {turn.name}: a snapshot that was held has changed"
    for changes in first.listen(since=told - 1, timeout=0):
        heard.update(changes.rows["n"].to_pylist())
        break
    assert heard == wanted, f"turn {turn.name}: {heard} was told, and there is {wanted}"
    return done
