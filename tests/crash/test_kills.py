"""Processes and servers that are killed at any moment lose nothing that was acknowledged."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING

import pytest

import instar
from instar.errors import CommitOutcomeUnknownError, ConflictError, StorageError
from testbed.nursery import Place
from tests.crash.children import TABLE, append_one, look

if TYPE_CHECKING:
    from pathlib import Path

    from testbed.nursery import Nursery
    from testbed.servers import PostgresServer

KILLS = 48


def test_a_process_killed_at_any_moment_loses_nothing(place: Place, nursery: Nursery, effort: int) -> None:
    """After each kill the next process opens the store; every acknowledged commit is there exactly once.

    What was acknowledged is remembered here, so that a look after every fourth kill sees it all. A killed
    process leaves at most one commit that it did not live to tell of.
    """
    chance = random.Random(7)
    parts: set[str] = set()
    columns: set[str] = set()
    untold = 0
    for kill in range(KILLS * effort):
        after, seconds = chance.choice([0, 1, 1, 2, 3]), chance.uniform(0.0, 0.03)
        [told] = nursery.ask(place, "kill", seed=kill, after=after, seconds=seconds)
        assert told["killed"], "it ended by itself"
        parts |= {name for what, name in told["said"] if what == "part"}
        columns |= {name for what, name in told["said"] if what == "column"}
        if kill % 4 and kill != KILLS * effort - 1:
            continue  # the next child opens what this one has left, and often nobody looks in between
        [found] = nursery.ask(place, "look")
        assert found["missing"] == []
        assert set(found["names"].values()) <= {1}, "doubled"
        assert parts <= set(found["names"]), "lost"
        assert columns <= set(found["columns"]), "lost"
        untold = len(found["names"]) - len(parts) + len(found["columns"]) - 1 - len(columns)
        assert untold <= kill + 1
    print(f"{place.kind}: {len(parts)} appends, {len(columns)} evolutions, {untold} untold")  # noqa: T201 - for who looks
    assert len(parts) + len(columns) > KILLS, "they were killed before they had done anything"


@pytest.mark.parametrize("kills", [24])
def test_a_compaction_killed_at_any_moment_loses_nothing(
    tmp_path: Path, nursery: Nursery, kills: int, effort: int
) -> None:
    """Rows that were appended are there once, and rows that were deleted are gone, whenever it was killed."""
    place = Place("directory", str(tmp_path / "store"), None)
    chance = random.Random(11)
    said: dict[str, set[int]] = {"row": set(), "going": set(), "gone": set()}
    for kill in range(kills * effort):
        after, seconds = chance.choice([0, 1, 2, 4]), chance.uniform(0.0, 0.06)
        [told] = nursery.ask(place, "kill", work="compaction", seed=kill, after=after, seconds=seconds)
        assert told["killed"], "it ended by itself"
        for what, name in told["said"]:
            said[what].add(int(name))
        if kill % 6 == 5:
            [found] = nursery.ask(place, "rows")
            rows = {int(name): count for name, count in found["rows"].items()}
            assert set(rows.values()) <= {1}, "doubled"
            assert said["row"] - said["going"] <= set(rows), "lost"
            assert said["gone"].isdisjoint(rows), "come back"
            assert found["same"]
    assert len(said["row"]) > kills, "they were killed before they had done anything"


@pytest.mark.parametrize("crashes", [3])
def test_a_server_that_crashes_loses_nothing(
    postgres: PostgresServer, tmp_path: Path, crashes: int, effort: int
) -> None:
    """PostgreSQL is stopped at once and started again, while a writer goes on: each commit is there once."""
    place = Place("postgres", str(tmp_path / "store"), postgres.url())
    with instar.open(place.location, consensus=place.consensus) as store:
        table = store.create_table(TABLE, "n int")
        told: set[str] = set()
        unknown: set[str] = set()
        progress = threading.Condition()
        end = threading.Event()

        def write() -> None:
            for number in range(1_000_000):
                if end.is_set():
                    return
                name = f"0-{number}"
                try:
                    append_one(table, name)
                except CommitOutcomeUnknownError:
                    unknown.add(name)
                except (StorageError, ConflictError):
                    continue
                with progress:
                    told.add(name)
                    progress.notify_all()

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(crashes * effort):
                with progress:
                    goal = len(told) + 10
                    while len(told) < goal:
                        assert progress.wait(120), "it does not go on"
                postgres.crash()
                postgres.start()
        finally:
            end.set()
            writer.join()
    found = look({"location": place.location, "consensus": place.consensus, "options": None})
    assert found["missing"] == []
    assert set(found["names"].values()) == {1}
    assert told - unknown <= set(found["names"]) <= told | unknown


def test_eight_processes_commit_to_one_table(shared_place: Place, nursery: Nursery, effort: int) -> None:
    """All of their commits are there, each once, and back-off keeps them from trying in vain forever."""
    writers, count = 8, min(100, 15 * effort)
    nursery.ask(shared_place, "look")  # creates the table
    answers = nursery.ask(shared_place, "commit", children=writers, count=count)
    [found] = nursery.ask(shared_place, "look")
    assert found["missing"] == []
    assert found["names"] == {f"{writer}-{n}": 1 for writer in range(writers) for n in range(count)}
    attempts = sum(answer["attempts"] for answer in answers) / (writers * count)
    print(f"{shared_place.kind}: {attempts:.2f} attempts for each commit")  # noqa: T201 - for who looks
    assert attempts < writers
