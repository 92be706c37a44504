"""What becomes of an entry of a journal when the store refuses, stays silent, or answers too late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from instar.errors import CommitOutcomeUnknownError, ConflictError, CorruptTableError, StorageError
from instar.storage.frame import encode_frame
from instar.stream.journal import WHOLE_EVERY, Codec, Journal
from tests.faults import Faults, Outcome, UnreliableConsensus
from tests.tables import StillTime, World

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = "@streams/numbers"
NUMBERS: Codec[tuple[int, ...], int] = Codec(
    "stream",
    int,
    tuple[int, ...],
    apply=lambda value, new: (*(value or ()), new),
    to_image=lambda value: value,
    from_image=lambda image: cast("tuple[int, ...]", image),
)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Return a place in memory, where waiting takes no time."""
    monkeypatch.setattr("instar.stream.journal.time", StillTime())
    world = World()
    yield world
    world.close()


def opened(world: World, *script: tuple[str, Outcome], **hooks: Any) -> Journal[tuple[int, ...], int]:  # noqa: ANN401 -- as Faults takes them
    """Open the journal through a consensus that fails by a script."""
    faults = Faults(script=script, **hooks)
    services = world.services(consensus=lambda logs: UnreliableConsensus(logs, faults))
    return Journal(services, KEY, NUMBERS)


def written(world: World) -> tuple[int, ...] | None:
    """Return what the journal really says."""
    return Journal(world.services(), KEY, NUMBERS).refresh()


def test_a_reply_that_was_lost_is_looked_up(world: World) -> None:
    """An entry that landed without an answer is found again, and is not written twice."""
    assert opened(world, ("append", Outcome.DONE_SILENT)).commit(lambda _: [1]) == (1,)
    assert written(world) == (1,)


def test_an_entry_that_did_not_land_is_written_again(world: World) -> None:
    """It is looked for first."""
    assert opened(world, ("append", Outcome.NOT_DONE_SILENT)).commit(lambda _: [1]) == (1,)
    assert written(world) == (1,)


def test_a_refusal_is_passed_on(world: World) -> None:
    """Nothing happened, so there is nothing to look for."""
    with pytest.raises(StorageError, match="was not done"):
        opened(world, ("append", Outcome.NOT_DONE)).commit(lambda _: [1])
    assert written(world) is None


def test_a_place_that_another_took_is_not_ones_own(world: World) -> None:
    """A silent attempt that lost its place is made again behind the entry that has it."""
    Journal(world.services(), KEY, NUMBERS).commit(lambda _: [0])
    once = iter([True])

    def interfere(operation: str, _: str) -> None:
        if operation == "append" and next(once, False):
            Journal(world.services(), KEY, NUMBERS).commit(lambda _: [7])

    mine = opened(world, ("append", Outcome.NOT_DONE_SILENT), before=interfere)
    assert mine.commit(lambda value: [len(value or ())]) == (0, 7, 2)
    assert written(world) == (0, 7, 2)


def test_an_outcome_that_cannot_be_found_out_is_unknown(world: World) -> None:
    """If nothing can be read within the patience, the caller is told to look before retrying."""
    Journal(world.services(), KEY, NUMBERS).commit(lambda _: [0])
    world.patience = 0.0
    script = [("append", Outcome.DONE_SILENT), ("scan", Outcome.NOT_DONE)]
    mine = opened(world, *script)
    mine.refresh()
    with pytest.raises(CommitOutcomeUnknownError, match="numbers"):
        mine.commit(lambda _: [1])
    assert written(world) == (0, 1)


def test_a_store_that_stays_silent_is_given_up(world: World) -> None:
    """Whether the last attempt lands is not known then."""
    world.patience = 0.0
    with pytest.raises(CommitOutcomeUnknownError, match="did not answer"):
        opened(world, ("append", Outcome.NOT_DONE_SILENT)).commit(lambda _: [1])


def test_a_writer_that_always_loses_gives_up_knowing_that_nothing_was_done(world: World) -> None:
    """Others were faster each time."""
    world.patience = 0.0

    def interfere(operation: str, _: str) -> None:
        if operation == "append":
            Journal(world.services(), KEY, NUMBERS).commit(lambda _: [7])

    with pytest.raises(ConflictError, match="others kept committing first"):
        opened(world, before=interfere).commit(lambda _: [1])
    assert written(world) == (7,)


def test_a_reader_that_was_away_starts_again_at_a_whole_value(world: World) -> None:
    """What it would have to replay was cut off, and an old handle has the same value as a new one."""
    early = Journal(world.services(), KEY, NUMBERS)
    early.commit(lambda _: [0])
    writer = Journal(world.services(), KEY, NUMBERS)
    for number in range(1, 2 * WHOLE_EVERY + 2):
        writer.commit(lambda _, number=number: [number])  # type: ignore[misc]
    assert early.refresh() == tuple(range(2 * WHOLE_EVERY + 2)) == written(world)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (("id", 0, "me", 0, msgspec.msgpack.encode(["no number"])), "does not hold the whole value"),
        (("id", 0, "me", 0, b"\xc1", msgspec.msgpack.encode([1])), "does not decode"),
        ("not an entry", "does not decode"),
    ],
)
def test_an_entry_that_makes_no_sense_is_corrupt(world: World, entry: object, why: str) -> None:
    """It is named, and nothing is guessed from it."""
    services = world.services()
    key = services.log_key(KEY)
    services.consensus.append(key, None, encode_frame("stream", f"{key}@0", msgspec.msgpack.encode(entry)))
    later = ("id2", 0, "me", 0, msgspec.msgpack.encode(["no number"]))
    services.consensus.append(key, 0, encode_frame("stream", f"{key}@1", msgspec.msgpack.encode(later)))
    with pytest.raises(CorruptTableError, match=f"`{KEY}`.*{why}"):
        Journal(services, KEY, NUMBERS).refresh()
