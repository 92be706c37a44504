"""Processes that delete, replace and add rows of one table at once lose none, nor one that is killed."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from testbed.changing import GROUP, WRITERS, change_together

if TYPE_CHECKING:
    from testbed.nursery import Nursery, Place

STEPS = 4
KILLS = 8


def test_changes_of_many_processes_conserve_every_row(shared_place: Place, nursery: Nursery) -> None:
    """Deletes, upserts, updates, merges, appends, evolutions and compactions of the same parts, side by side.

    Nor is an update lost of rows that all of them change, or a row added twice that all of them may add.
    """
    done = change_together(nursery, shared_place, "0:0", STEPS, compact=1)
    assert done["delete"] + done["upsert"] > WRITERS


def test_a_process_killed_while_it_deletes_leaves_all_or_nothing(
    place: Place, nursery: Nursery, effort: int
) -> None:
    """A group of rows over several parts is gone or there as a whole, as it was acknowledged."""
    nursery.ask(place, "prepare", groups=True)
    chance = random.Random(11)
    told = 0
    for kill in range(KILLS * effort):
        after, seconds = chance.choice([0, 1, 1, 2]), chance.uniform(0.0, 0.05)
        [answer] = nursery.ask(place, "kill", work="changes", seed=kill, after=after, seconds=seconds)
        assert answer["killed"], "it ended by itself"
        told += len(answer["said"])
        [found] = nursery.ask(place, "look at changes")
        groups: dict[int, list[tuple[int, int]]] = {}
        for who, n, v in found["rows"]:
            groups.setdefault(who, []).append((n, v))
        for rows in groups.values():
            assert sorted(n for n, _ in rows) == list(range(GROUP)), "some of a group"
            assert len({v for _, v in rows}) == 1, "some rows are new and some are not"
        last = dict(reversed(pair) for pair in answer["said"])  # what was said last of each group
        for group, what in last.items():
            assert (int(group) in groups) == (what == "new") or int(group) == _next(answer["said"], kill)
    assert told > KILLS // 2, "they were killed before they had done anything"


def _next(said: list[list[str]], seed: int) -> int:
    """Return the group that a process was at when it was killed."""
    chance = random.Random(seed)
    return [chance.randrange(400) for _ in range(len(said) + 1)][-1]
