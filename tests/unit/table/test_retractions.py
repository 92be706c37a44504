"""Rows that are retracted by position: committed, rolled up, found again, and refused when they clash."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from pyroaring import BitMap

from instar.errors import ConflictError, CorruptTableError, NegativeCountError, PartsGoneError
from instar.state import Place
from instar.state.retractions import decode_bitmap, encode_bitmap, whole_part
from instar.table import begin_write, create_table
from instar.table.housekeeping.vacuum import vacuum_table
from instar.table.log.sheets import load_retractions
from instar.table.log.table_log import TableLog
from instar.table.write.append import Takes
from tests.tables import World, append_parts, small_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from instar.table import Committed, Services

NAME = "t"


@pytest.fixture
def world() -> Iterator[World]:
    """Return a place of its own for each test."""
    place = World()
    yield place
    place.close()


def retract(
    services: Services, log: TableLog, positions: Mapping[Place, BitMap], planned_at: int | None = None
) -> Committed:
    """Commit a batch that takes rows, as seen now or at an earlier seqno."""
    with begin_write(services, log) as writer:
        state = log.load()
        at = state.seqno if planned_at is None else planned_at
        return writer.append([], state.history.latest_id, takes=Takes(positions, at))


def found(services: Services, log: TableLog, as_of: int | None = None) -> dict[Place, set[int]]:
    """Return all that is retracted, by part."""
    retractions = load_retractions(services.chunks.sheets, log.load(), as_of=as_of)
    return {place: set(rows) for place, rows in retractions.positions(retractions.by_place).items()}


def scattered(random: Random, rows: int, share: float) -> BitMap:
    """Return some positions of a part."""
    return BitMap(at for at in range(rows) if random.random() < share)


def test_bitmaps_are_in_the_portable_format() -> None:
    """The first four bytes tell runs from none, as the specification of Roaring has it."""
    assert encode_bitmap(BitMap([1, 70_000]))[:4] == (12346).to_bytes(4, "little")
    assert encode_bitmap(whole_part(1_000_000))[:2] == (12347).to_bytes(2, "little")
    assert len(encode_bitmap(whole_part(1_000_000))) < 256
    assert decode_bitmap(encode_bitmap(whole_part(70_000)), 70_000, what="x") == BitMap(range(70_000))


def test_a_bitmap_has_as_many_positions_as_it_is_said_to_have() -> None:
    """So that what counts say and what readers leave out is the same."""
    with pytest.raises(CorruptTableError, match="a bitmap has 2 positions, and 3 were written"):
        decode_bitmap(encode_bitmap(BitMap([1, 5])), 3, what="x")
    with pytest.raises(CorruptTableError, match="does not decode"):
        decode_bitmap(b"no bitmap", 3, what="x")


@pytest.mark.parametrize("share", [0.0005, 0.3])
def test_retractions_are_found_by_part_and_time(world: World, share: float) -> None:
    """Whether they came in commits or in sheets, before rollups and after, by every handle."""
    random = Random(1)
    services = world.services()
    log = create_table(services, NAME, "a int")
    model: dict[int, dict[Place, set[int]]] = {}
    taken: dict[Place, set[int]] = {}
    with small_numbers():
        for _ in range(4):
            append_parts(services, log, 2)
        seqnos = [1, 2, 3, 4]
        for _ in range(11):
            places = [Place(random.choice(seqnos), random.randrange(2)) for _ in range(2)]
            positions = {
                place: scattered(random, 9_000, share) - BitMap(taken.get(place, set()))
                for place in dict.fromkeys(places)
            }
            committed = retract(services, log, positions)
            for place, rows in positions.items():
                taken[place] = taken.get(place, set()) | set(rows)
            model[committed.state.upper - 1] = {place: set(rows) for place, rows in taken.items() if rows}
            world.clock.now += 10
        log.settle()
        fresh = world.services()
        for handle, own in ((log, services), (TableLog(fresh, NAME), fresh)):
            for ts, expected in model.items():
                assert found(own, handle, ts) == expected
        state = log.load()
        assert state.folded > 0
        assert state.sheets
        assert len(state.sheets) < 5
        assert state.totals.retracted == sum(map(len, taken.values()))
        assert state.totals.rows == 80
        vacuum_table(services, NAME, grace_ms=0)
        assert found(fresh, TableLog(fresh, NAME)) == model[max(model)]


def test_retractions_of_the_same_part_clash(world: World) -> None:
    """Whoever looked at a part before another took rows of it looks again; other parts do not matter."""
    services = world.services()
    log = create_table(services, NAME, "a int")
    append_parts(services, log, 2)
    seen = log.load().seqno
    one, other = Place(1, 0), Place(1, 1)
    retract(services, log, {one: BitMap([1])}, seen)
    append_parts(services, log, 1)
    retract(services, log, {other: BitMap([1])}, seen)
    with pytest.raises(ConflictError, match="changed the same parts"):
        retract(services, log, {one: BitMap([2])}, seen)
    retract(services, log, {one: BitMap([2])})
    assert found(services, log) == {one: {1, 2}, other: {1}}


def test_a_compaction_does_not_forget_what_was_retracted_meanwhile(world: World) -> None:
    """Parts whose rows were retracted after a compaction was planned are not replaced by it."""
    services = world.services()
    log = create_table(services, NAME, "a int")
    append_parts(services, log, 2)
    seen = log.load().seqno
    retract(services, log, {Place(1, 0): BitMap([1])})
    with begin_write(services, log) as writer, pytest.raises(PartsGoneError, match="retracted"):
        writer.replace(seen, [Place(1, 0)], (10, 100), None)
    with begin_write(services, log) as writer:
        writer.replace(seen, [Place(1, 1)], (10, 100), None)
    with pytest.raises(ConflictError):
        retract(services, log, {Place(1, 1): BitMap([1])}, seen)


def test_a_position_is_retracted_once(world: World) -> None:
    """Twice is more often than it was added."""
    services = world.services()
    log = create_table(services, NAME, "a int")
    append_parts(services, log, 1)
    retract(services, log, {Place(1, 0): BitMap([3, 4])})
    retract(services, log, {Place(1, 0): BitMap([4, 5])})
    with pytest.raises(NegativeCountError, match="position 4 of part 0 of commit 1"):
        found(services, log)


def test_every_flipped_bit_of_a_sheet_is_noticed(world: World) -> None:
    """In bitmaps and in the directory; also if the sheet is gone."""
    random = Random(2)
    services = world.services()
    log = create_table(services, NAME, "a int")
    append_parts(services, log, 2)
    retract(services, log, {Place(1, at): scattered(random, 9_000, 0.4) for at in (0, 1)})
    ((ref,),) = (batch.sheets for batch in log.load().tail if batch.sheets)
    whole = world.blob.get(ref.key)
    for at in [*random.sample(range(len(whole)), 40), len(whole) - 1, 0]:
        flipped = bytearray(whole)
        flipped[at] ^= 1 << random.randrange(8)
        world.blob.put(ref.key, bytes(flipped))
        fresh = world.services()
        with pytest.raises(CorruptTableError, match="retraction sheet"):
            found(fresh, TableLog(fresh, NAME))
    world.blob.delete([ref.key])
    fresh = world.services()
    with pytest.raises(CorruptTableError, match="missing"):
        found(fresh, TableLog(fresh, NAME))
