"""Which parts a filter needs, by chunks first: the same as deciding part by part, whatever was removed."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from msgspec.structs import replace

from instar.api import Table
from instar.schema import Primitive, Schema
from instar.skipping import decide, parse_filter
from instar.stats import FieldStats
from instar.table import begin_write, create_table
from instar.table.log.manifest import ChunkReader
from instar.table.read.pruning import Condition, needed_parts, part_bounds
from tests.tables import all_rows, append_parts, small_numbers

if TYPE_CHECKING:
    from instar.state import TableState
    from instar.table import Services, TableLog
    from tests.tables import World

FILTERS = (
    "i = 55",
    "i between 20 and 31",
    "i is null",
    "i > 90 or i < 3",
    "i + 1 = 11",
    "i < 0",
    "true",
    "false",
)


def check(services: Services, state: TableState) -> int:
    """Compare with a decision for every part by itself; return how many chunks were left out."""
    skipped = 0
    younger = ("s = 'x'", "s is not null and i < 40") if len(state.history.latest.fields) > 1 else ()
    for text in (*FILTERS, *younger):
        expression = parse_filter(text, state.history.latest)
        needed = needed_parts(services.chunks, state, Condition(expression))
        known = part_bounds(services.chunks, state, expression)
        assert known.mask.all()
        assert needed.read.tolist() == decide(expression, known.bounds, known.rows).read.tolist(), text
        assert len(needed.read) == state.totals.parts == len(all_rows(services, state))
        skipped += needed.chunks_skipped if text not in ("true", "false") else 0
    return skipped


def remove_some(services: Services, log: TableLog, random: Random) -> None:
    """Take a few parts away, as a compaction does."""
    state = log.load()
    rows = all_rows(services, state)
    gone = random.sample(sorted(rows), k=min(len(rows), 3))
    size = (sum(rows[place]["rows"] for place in gone), sum(rows[place]["size"] for place in gone))
    with begin_write(services, log) as writer:
        writer.replace(state.seqno, gone, size, None)


@pytest.mark.parametrize("seed", range(2))
def test_chunks_never_hide_a_part(world: World, seed: int) -> None:
    """Appends, removals, evolutions and rollups in any order: both levels say what one level says."""
    random = Random(seed)
    services = world.services()
    log = create_table(services, "t", "i int")
    skipped = 0

    def stats(_: int) -> dict[int, FieldStats]:
        low = base + random.randint(0, 5)
        return {
            1: random.choice([FieldStats(0, 0, low, low + 3), FieldStats(2, 0, low, low), FieldStats(10, 0)]),
            2: FieldStats(0, 0, "x", "y"),
        }

    with small_numbers():
        for turn in range(22):
            base = turn * 3
            append_parts(services, log, random.choice((1, 2, 3, 9)), stats)
            if random.random() < 0.3:
                remove_some(services, log, random)
            if turn == 10:
                Table(services, log).evolve().add_column("s", "string").commit()
            if turn == 20:
                Table(services, log).evolve().widen_column("i", "bigint").commit()
            skipped += check(services, log.load())
    assert skipped > 20


def test_what_is_left_out_is_not_loaded(world: World) -> None:
    """A filter that one chunk in ten can match loads the statistics of that one, of one column."""
    services = world.services()
    log = create_table(services, "t", "i int, " + ", ".join(f"c{number} string" for number in range(20)))
    with small_numbers(chunk_parts=800, inline_parts=0):
        for turn in range(10):

            def stats(number: int, base: int = turn * 1000) -> dict[int, FieldStats]:
                texts = {field: FieldStats(0, 0, "a" * 40, "b" * 40) for field in range(2, 22)}
                return {1: FieldStats(0, 0, base + number, base + number)} | texts

            append_parts(services, log, 800, stats)
    state = log.load()
    condition = Condition(parse_filter("i = 5007", state.history.latest))
    cold = ChunkReader(services.blob)
    needed = needed_parts(cold, state, condition)
    assert (int(needed.read.sum()), needed.chunks_skipped) == (1, needed.chunks - 1)
    everything = ChunkReader(services.blob)
    part_bounds(everything, state, condition.expression)
    assert cold.bytes_read < everything.bytes_read / 2


def test_bounds_come_in_the_types_that_a_filter_asks_for(world: World) -> None:
    """A reader of a wider type than the table's has its filter decided by bounds of that type."""
    services = world.services()
    log = create_table(services, "t", "i int")
    append_parts(services, log, 3, lambda number: {1: FieldStats(0, 0, number, number)})
    state = log.load()
    (field,) = state.history.latest.fields
    schema = Schema((replace(field, type=Primitive("bigint")),))
    wider = parse_filter("i = 1", schema)
    assert needed_parts(services.chunks, state, Condition(wider)).read.tolist() == [False, True, False]
    known = part_bounds(services.chunks, state, wider)
    assert known.rows.equals(pa.array([10, 10, 10], pa.int64()))
    assert known.bounds[1].column("min").type == pa.int64()
