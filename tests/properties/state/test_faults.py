"""Thousands of commits through services that fail in every way, and what must be true of them in the end.

Every call may be done or not, answered or not, and what was not answered may still be done later. From a
seed, so that what failed once fails again.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import settings
from msgspec.structs import replace

from instar.api import Table
from instar.errors import (
    CommitOutcomeUnknownError,
    ConflictError,
    InstarError,
    StorageError,
    UpperMismatchError,
)
from instar.storage import BlobConsensus, MemoryConsensus
from instar.table import TableLog, begin_write, create_table, vacuum_table
from tests.faults import Faults, Outcome, UnreliableBlob, UnreliableConsensus
from tests.tables import World, all_rows, find_missing, make_parts, small_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from instar.table import Services

NAME = "events"
SEEDS = range(4 * (settings.default.max_examples // 100 if settings.default else 1))
OPERATIONS = 350

FAILURES = (StorageError, CommitOutcomeUnknownError, ConflictError)
"""What a caller may be told when services fail."""

_Answer = TypeVar("_Answer")


class LateFaults(Faults):
    """Faults where what was not done, and not answered, may be done at any time after that."""

    def __init__(self, seed: int, rate: float) -> None:
        super().__init__(seed, rate)
        self._late: list[Callable[[], object]] = []
        self._chance = random.Random(seed + 1)
        self.injected: Counter[Outcome] = Counter()

    def call(self, operation: str, key: str, do: Callable[[], _Answer]) -> _Answer:
        """Do something, or not, or later."""
        while self._late and self._chance.random() < 0.3:
            with suppress(InstarError):  # reads that come late may find nothing, and nobody listens
                self._late.pop(self._chance.randrange(len(self._late)))()
        outcome = self._choose(operation)
        self.injected[outcome] += 1
        if outcome is Outcome.NOT_DONE_SILENT and self._chance.random() < 0.5:
            self._late.append(do)
        self._script = [(operation, outcome)]
        return super().call(operation, key, do)


# The names of the methods say what they do.
# ruff: noqa: D102


class Trial:
    """Some handles that use one table through faulty services, and what each of them was told."""

    def __init__(self, seed: int, *, logs_in_blobs: bool, rate: float, patience: float) -> None:
        self.chance = random.Random(seed)
        self.world = World(consensus=None if logs_in_blobs else MemoryConsensus(), patience=patience)
        self.faults = LateFaults(seed, 0.0)
        self.rate = rate
        self.logs_in_blobs = logs_in_blobs
        self.handles = [self.open() for _ in range(3)]
        self.rival = self.world.services()
        create_table(self.rival, NAME, "n int")
        self.rival_log = TableLog(self.rival, NAME)
        self.faults.rate = rate
        self.faults.after = self.interfere
        self.acknowledged: set[str] = set()
        self.refused: set[str] = set()
        self.unknown: set[str] = set()
        self.evolved: dict[str, int] = {}
        self.not_evolved: set[str] = set()
        self.seen: dict[int, tuple[int, int]] = {}
        self.count = 0

    def open(self) -> tuple[Services, TableLog]:
        services = self.world.services(
            blob=lambda blob: UnreliableBlob(blob, self.faults),
            consensus=lambda logs: UnreliableConsensus(logs, self.faults),
        )
        if self.logs_in_blobs:
            object.__setattr__(services, "consensus", BlobConsensus(services.blob))
        return services, TableLog(services, NAME)

    def interfere(self, operation: str, _key: str) -> None:
        """Now and then somebody else commits between a request and its answer."""
        if operation in {"append", "put_if_absent"} and self.chance.random() < 0.1:
            after, self.faults.after = self.faults.after, None
            name = self.new_name()
            with suppress(UpperMismatchError):
                self.append(self.rival, self.rival_log, name)
                self.acknowledged.add(name)
            self.faults.after = after

    def append(self, services: Services, log: TableLog, name: str, token: str | None = None) -> None:
        """Append some parts, the last of them with a name of its own."""
        state = log.load()
        with begin_write(services, log) as writer:
            parts = make_parts(state.table_id, writer.write_id, self.chance.choice([1, 1, 1, 4]))
            parts[-1] = replace(parts[-1], last_row=name.encode())
            for part in parts:
                services.blob.put(part.key, b"")
            expected = state.upper if self.chance.random() < 0.1 else None
            writer.append(parts, state.history.latest_id, token=token, expected_upper=expected)

    def new_name(self) -> str:
        self.count += 1
        return f"n{self.count}"

    def step(self) -> None:
        services, log = self.handles[number := self.chance.randrange(len(self.handles))]
        kinds = {"append": 8, "token": 3, "evolve": 2, "vacuum": 1, "look": 3, "reopen": 1}
        match self.chance.choices([*kinds], [*kinds.values()])[0]:
            case "append":
                self.try_to_append(services, log)
            case "token":
                self.append_until_it_is_there()
            case "evolve":
                self.try_to_evolve(services, log)
            case "vacuum":
                with suppress(*FAILURES):
                    vacuum_table(services, NAME, grace_ms=0)
            case "look":
                self.look(number)
            case "reopen":
                services.close()
                self.handles[number] = self.open()
                self.seen.pop(number, None)

    def try_to_append(self, services: Services, log: TableLog) -> None:
        name = self.new_name()
        try:
            self.append(services, log, name)
        except CommitOutcomeUnknownError:
            self.unknown.add(name)
        except (StorageError, ConflictError):
            self.refused.add(name)
        else:
            self.acknowledged.add(name)

    def append_until_it_is_there(self) -> None:
        """Do what a caller does who has a token: repeat the call, whatever the answer was."""
        name = self.new_name()
        while name not in self.acknowledged:
            services, log = self.chance.choice(self.handles)
            with suppress(*FAILURES):
                self.append(services, log, name, token=name)
                self.acknowledged.add(name)

    def try_to_evolve(self, services: Services, log: TableLog) -> None:
        column = self.new_name()
        try:
            schema_id = Table(services, log).evolve().add_column(column, "int").commit()
        except CommitOutcomeUnknownError:
            pass
        except (StorageError, ConflictError):
            self.not_evolved.add(column)
        else:
            self.evolved[column] = schema_id

    def look(self, number: int) -> None:
        """Refresh a handle: what it sees never goes back."""
        _, log = self.handles[number]
        try:
            state = log.load()
        except StorageError:
            return
        before = self.seen.get(number, (0, 0))
        assert (state.seqno, state.upper) >= before
        assert state.upper >= before[1]
        self.seen[number] = (state.seqno, state.upper)

    def check(self) -> None:
        """Look through services that work, at what is there."""
        self.faults.rate = 0.0
        services = self.world.services()
        log = TableLog(services, NAME)
        with log.pinned() as state:
            assert find_missing(services, state) == []
            rows = all_rows(services, state)
            schemas = state.history.schemas
        found = Counter(row["last_row"].decode() for row in rows.values() if row["last_row"] is not None)
        assert {name: count for name, count in found.items() if count > 1} == {}, "doubled"
        assert self.acknowledged - set(found) == set(), "lost"
        assert self.refused & set(found) == set(), "said not to have happened, and did"
        assert set(found) <= self.acknowledged | self.unknown
        for column, schema_id in self.evolved.items():
            assert column in schemas[schema_id].names
            assert column not in schemas[schema_id - 1].names
        assert not self.not_evolved.intersection(schemas[-1].names)
        for number in range(len(self.handles)):
            self.look(number)


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    with small_numbers():
        yield


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("logs_in_blobs", [False, True], ids=["consensus", "blobs"])
@pytest.mark.parametrize(("rate", "patience"), [(0.15, 1000.0), (0.4, 0.01)], ids=["patient", "impatient"])
def test_nothing_is_lost_doubled_or_denied(
    seed: int, logs_in_blobs: bool, rate: float, patience: float
) -> None:
    """Acknowledged commits are there once, refused ones are not, unknown ones are there once or not at all.

    Whoever is patient always finds out.
    """
    trial = Trial(seed, logs_in_blobs=logs_in_blobs, rate=rate, patience=patience)
    for _ in range(OPERATIONS):
        trial.step()
    trial.check()
    assert set(trial.faults.injected) == set(Outcome)
    assert len(trial.acknowledged) > OPERATIONS / 10
    if patience > 1:
        assert trial.unknown == set()
    trial.world.close()
