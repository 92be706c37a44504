"""What is stored does not depend on how events arrive: shuffled, repeated, or from many clients at once."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from instar.lineage import Database, decode_event, ingest_event, open_database
from testbed.lineage import dataset, run_event
from tests.lineage import dump, random_events, recorded_events, send

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Events = list[dict[str, Any]]


def in_order(events: Events) -> Events:
    """Return each event once, by its time."""
    unique = {repr(event): event for event in events}
    return sorted(unique.values(), key=lambda event: str(event["eventTime"]))


@pytest.fixture
def expected(tmp_path: Path) -> Callable[[Events], dict[str, list[Any]]]:
    """Return what a database has to hold after these events."""

    def store(events: Events) -> dict[str, list[Any]]:
        with open_database(f"sqlite:///{tmp_path}/expected.db") as database:
            send(database, *in_order(events))
            return dump(database)

    return store


@pytest.mark.parametrize(("seed", "count"), [(0, 30), (1, 30), (2, 30), (3, 30), (103, 14)])
def test_shuffled_and_repeated_events_give_the_same_database(tmp_path: Path, seed: int, count: int) -> None:
    """Any order of the same events, some of them twice, ends in the same rows."""
    events = random_events(seed, count)
    found = []
    for attempt in range(3):
        arrival = in_order(events)
        if attempt:
            arrival = arrival + random.Random(seed).sample(arrival, 5)
            random.Random(attempt).shuffle(arrival)
        with open_database(f"sqlite:///{tmp_path}/{attempt}.db") as database:
            send(database, *arrival)
            found.append(dump(database))
    assert found[0] == found[1] == found[2]


def test_a_run_that_reads_what_it_wrote_finds_what_others_wrote(tmp_path: Path) -> None:
    """Whether there was something to read does not depend on which event came first."""
    events = [
        run_event("COMPLETE", 1, 1, outputs=[dataset("x", "a int")]),
        run_event("COMPLETE", 2, 2, outputs=[dataset("x", "a int")]),
        run_event("COMPLETE", 3, 3, outputs=[dataset("x", "a int")]),
        run_event("RUNNING", 4, 1, inputs=[dataset("x")]),
    ]
    found = []
    for number, arrival in enumerate([events, events[::-1]]):
        with open_database(f"sqlite:///{tmp_path}/{number}.db") as database:
            send(database, *arrival)
            found.append(dump(database))
    assert found[0] == found[1]
    assert len(found[0]["dataset_versions"]) == 3


def test_an_event_that_comes_again_is_known(database: Database) -> None:
    """A retry is found to be one before anything else is done, and is counted as such."""
    event = decode_event(run_event("COMPLETE", 1, outputs=[dataset("x", "a int")]))
    assert [ingest_event(database, event, received_at=now) for now in range(3)] == [True, False, False]


@pytest.mark.parametrize("events", [recorded_events(), random_events(1, 60)], ids=["recorded", "random"])
def test_eight_clients_at_once_give_the_same_database(
    database: Database, expected: Callable[[Events], dict[str, list[Any]]], events: Events
) -> None:
    """Events of many clients, in any order and with retries, end in the rows that one client makes."""
    arrival = events * 2
    random.Random(3).shuffle(arrival)
    with ThreadPoolExecutor(8) as clients:
        list(clients.map(lambda event: send(database, event), arrival))
    assert dump(database) == expected(events)
