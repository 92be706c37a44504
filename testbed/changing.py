"""Processes that change the rows of one table side by side, and ones that are killed while they do.

Every process has rows of its own, which no other one touches, so it knows what must become of them. But parts
hold rows of all: each change meets those of others. Other rows are counters, which all of them advance.
"""

from __future__ import annotations

import random
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

import instar
from instar.errors import ConflictError
from testbed.nursery import serve

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from instar.api import Table
    from testbed.nursery import Nursery, Place, Task

__all__ = [
    "GROUP",
    "WRITERS",
    "change_for_ever",
    "change_many",
    "change_together",
    "look_at_changes",
    "prepare_changes",
]

CHANGED = "changed"
GROUP = 12
"""How many rows a group has, over all parts."""
_PARTS = 3
_GROUPS = 400
_ROWS_EACH = 20
_COUNTERS = 4
_NOBODY = -1
"""Whose rows the counters are. Half of them are there from the start; whoever comes first adds the others."""

T = TypeVar("T")

WRITERS = 3
"""How many processes change rows together."""


def open_changed(task: Task) -> Table:
    """Open the table."""
    store = instar.open(task["location"], consensus=task["consensus"], options=task["options"])
    return store.table(CHANGED)


def rows_of(who: int, values: Mapping[int, int]) -> pa.Table:
    """Lay out rows of one process."""
    return pa.table(
        {
            "who": pa.array([who] * len(values), pa.int32()),
            "n": pa.array(list(values), pa.int32()),
            "v": pa.array(list(values.values()), pa.int32()),
        }
    )


def prepare_changes(task: Task) -> dict[str, Any]:
    """Create the table; its parts hold rows of every process, or of every group."""
    store = instar.open(task["location"], consensus=task["consensus"], options=task["options"])
    table = store.create_table(CHANGED, "who int, n int, v int", key=["who", "n"])
    for part in range(_PARTS):
        if task["groups"]:
            each = GROUP // _PARTS
            values = {part * each + at: 0 for at in range(each)}
            table.append(pa.concat_tables([rows_of(group, values) for group in range(_GROUPS)]))
        else:
            own = {n: 0 for n in range(_ROWS_EACH) if n % _PARTS == part}
            every = [rows_of(who, own) for who in range(task["writers"])]
            counters = rows_of(_NOBODY, {} if part else dict.fromkeys(range(_COUNTERS // 2), 0))
            table.append(pa.concat_tables([*every, counters]))
    store.close()
    return {}


def change_many(task: Task) -> dict[str, Any]:
    """Change rows of one's own, beside others, and say what must be left of them."""
    who = task["seed"]
    chance = random.Random(f"{task['turn']}/{who}")
    table = open_changed(task)
    rows = dict.fromkeys(range(_ROWS_EACH), 0)
    last = _ROWS_EACH
    columns = []
    done: dict[str, int] = {}
    counted = [0] * _COUNTERS
    for step in range(1, task["count"] + 1):
        counter = chance.randrange(_COUNTERS)
        counted[counter] += _count(table, counter, merge=chance.random() < 0.5)
        some = chance.sample(sorted(rows), min(len(rows), chance.randint(1, 6)))
        mine = f"who = {who} and n in ({', '.join(map(str, [-1, *some]))})"
        what = chance.choices(
            ["append", "delete", "upsert", "update", "evolve", "compact"], [4, 4, 4, 3, 1, task["compact"]]
        )[0]
        done[what] = done.get(what, 0) + 1
        new = {last + at: step for at in range(chance.randint(1, 3))}
        match what:
            case "append":
                _insist(partial(table.append, rows_of(who, new)))
                rows |= new
            case "delete":
                _insist(partial(table.delete, mine))
                rows = {n: v for n, v in rows.items() if n not in some}
            case "upsert":
                both = new | dict.fromkeys(some, step)
                _insist(partial(table.upsert, rows_of(who, both)))
                rows |= both
            case "update":
                _insist(partial(table.update, {"v": "v + 1"}, mine))
                rows |= {n: rows[n] + 1 for n in some}
            case "evolve":
                columns.append(f"c{who}_{step}")
                _insist(lambda: table.evolve().add_column(columns[-1], "int").commit())
            case "compact":
                _insist(table.compact)
        last += len(new)
    table._services.close()
    return {"who": who, "rows": sorted(rows.items()), "columns": columns, "done": done, "counted": counted}


def _count(table: Table, counter: int, *, merge: bool) -> int:
    """Advance a counter by one, and return how far it went: an update finds only one that is there."""
    if not merge:
        one = f"who = {_NOBODY} and n = {counter}"
        return _insist(partial(table.update, {"v": "v + 1"}, one)).rows // 2
    advance = (
        table.merge(rows_of(_NOBODY, {counter: 1}), on=["who", "n"])
        .when_matched_update({"v": "target.v + source.v"})
        .when_not_matched_insert()
    )
    _insist(advance.execute)
    return 1


def _insist(do: Callable[[], T]) -> T:
    """Do something until nobody else was faster."""
    while True:
        with suppress(ConflictError):
            return do()


def change_for_ever(task: Task, say: Callable[[str], None]) -> None:
    """Delete groups and give others new values, each in one commit, and say of each that it is done."""
    table = open_changed(task)
    chance = random.Random(task["seed"])
    for number in range(1_000_000):
        group = chance.randrange(_GROUPS)
        if number % 2:
            table.delete(f"who = {group}")
            say(f"gone {group}")
        else:
            table.upsert(rows_of(group, dict.fromkeys(range(GROUP), task["seed"] + 1)))
            say(f"new {group}")


def look_at_changes(task: Task) -> dict[str, Any]:
    """Return all rows, and the columns."""
    table = open_changed(task)
    found = table.snapshot(columns=["who", "n", "v"]).to_arrow().to_pydict()
    return {"rows": sorted(zip(*found.values(), strict=True)), "columns": table.schema.names}


def change_together(nursery: Nursery, place: Place, turn: str, count: int, *, compact: int) -> dict[str, int]:
    """Let processes change rows of their own in the same parts; each row must be what its owner made it."""
    nursery.ask(place, "prepare", writers=WRITERS, groups=False)
    answers = nursery.ask(place, "change", children=WRITERS, count=count, turn=turn, compact=compact)
    [found] = nursery.ask(place, "look at changes")
    counted = [sum(each) for each in zip(*(answer["counted"] for answer in answers), strict=True)]
    counters = [[_NOBODY, n, times] for n, times in enumerate(counted) if times or n < _COUNTERS // 2]
    expected = sorted([*counters, *([answer["who"], *row] for answer in answers for row in answer["rows"])])
    assert found["rows"] == expected, f"turn {turn}"
    added = {name for answer in answers for name in answer["columns"]}
    assert set(found["columns"]) == {"who", "n", "v", *added}, f"turn {turn}"
    done: dict[str, int] = {}
    for answer in answers:
        for what, times in answer["done"].items():
            done[what] = done.get(what, 0) + times
    return done


if __name__ == "__main__":
    serve(
        {"prepare": prepare_changes, "change": change_many, "look at changes": look_at_changes},
        {"changes": change_for_ever},
    )
