"""Compaction goes unnoticed: every read, as of every time and under every schema, gives the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from instar.api.store import Store
from instar.parts import PartLimits
from instar.state import Place
from instar.table import load_parts
from instar.table.housekeeping import rewrite
from instar.table.housekeeping.compaction import compact_table
from instar.table.housekeeping.plan import Goals
from instar.table.log.sheets import load_retractions
from instar.table.read.order import arrange_parts
from instar.table.read.rows import read_written
from instar.table.write.append import Takes, begin_write, move_since
from tests.properties.tables.stored import check_runs, sorted_by
from tests.tables import World

if TYPE_CHECKING:
    from random import Random

    from instar.api.table import Table

TINY = PartLimits(file_bytes=2000, buffer_bytes=4000)


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a handful of rows be many: parts, pieces that are sorted and runs that are merged."""
    monkeypatch.setattr("instar.table.write.append.PartLimits", lambda: TINY)
    monkeypatch.setattr(rewrite, "SORTED_BYTES", 1500)
    monkeypatch.setattr(rewrite, "STREAMED_BYTES", 3000)


def everything(table: Table, times: set[int]) -> dict[int, list[str]]:
    """Return the rows as of some times, in no order."""
    return {at: sorted(map(str, table.snapshot(as_of=at).to_arrow().to_pylist())) for at in times}


def take_some(table: Table, random: Random) -> None:
    """Retract some rows by position."""
    state = table.state
    live = load_parts(table._services.chunks, state)
    known = load_retractions(table._services.chunks.sheets, state)
    taken = {}
    for place, rows in zip(live.columns["places"].to_pylist(), live.rows.to_pylist(), strict=True):
        at = Place(place["batch"], place["ordinal"])
        left = set(range(rows)) - set(known.positions([at]).get(at, BitMap()))
        taken[at] = BitMap(random.sample(sorted(left), k=min(len(left), random.randint(0, 2))))
    with begin_write(table._services, table._log) as writer:
        writer.append((), state.history.latest_id, takes=Takes(taken, state.seqno))


def act(table: Table, random: Random, times: set[int]) -> None:
    """Append, evolve, retract by value or by position, or move since."""
    state = table.state
    match random.randint(0, 9):
        case 0 if "b" in state.history.latest.names:
            table.evolve().drop_column("b").commit()
        case 1:
            table.evolve().add_column(f"c{state.seqno}", "string").commit()
        case 2 if times:
            move_since(table._log, random.choice(sorted(times)))
        case 3 | 4:
            take_some(table, random)
        case _:
            size = random.choice((1, 3, 60))
            columns = {"id": pa.array([random.randint(0, 50) for _ in range(size)], pa.int64())}
            if "b" in state.history.latest.names:
                columns["b"] = pa.array([f"b{random.randint(0, 5)}" for _ in range(size)])
            table.append(pa.table(columns))


def check_order(table: Table) -> None:
    """Compare what parts say of their order, and what the table says, with the bytes."""
    state, blob = table.state, table._services.blob
    live = load_parts(table._services.chunks, state)
    latest = state.history.latest
    migrated = [
        pa.Table.from_batches(read_written(blob, written, latest)) for written in live.written(state.history)
    ]
    check_runs(table)
    for names in [["id"], ["b"], ["b", "id"], ["id", "b"], [latest.names[-1]]]:
        if not set(names) <= set(latest.names):
            continue
        fields = [latest.load_column(name) for name in names]
        arranged = arrange_parts(table._services.chunks, state, fields)
        assert table.is_ordered(names) == (arranged is not None)
        if arranged:
            ids = tuple(field.id for field in fields)
            pass_ = pa.concat_tables([migrated[at] for at in arranged]).select(names).combine_chunks()
            assert sorted_by([pass_], latest.select(names), ids), names


@pytest.mark.parametrize("order_by", [(), ("id",), ("b", "id")])
@settings(max_examples=12)
@given(random=st.randoms(use_true_random=False))
def test_no_reader_notices_a_compaction(order_by: tuple[str, ...], random: Random) -> None:
    """Whatever was appended, retracted and evolved before."""
    world = World()
    store = Store("memory", world.services())
    table = store.create_table("t", "b string, id bigint", order_by=order_by)
    times: set[int] = set()
    for _ in range(random.randint(1, 12)):
        act(table, random, times)
        check_order(table)
        times.add(table.upper - 1)
        world.clock.now += 1
    since = table.since
    times = {time for time in times if since <= time < table.upper}
    before = everything(table, times)
    full = random.random() < 0.5
    sorted_ = bool(order_by)

    def goals(state: object) -> Goals:
        del state
        latest = table.state.history.latest_id
        return Goals(latest, sorted=sorted_, target_bytes=2000, retracted_share=0.01, full=full)

    compact_table(table._services, table._log, rewrite.rewrite_parts, goals=goals)
    assert everything(table, times) == before
    assert table.since == since
    check_order(table)
    still = [name for name in order_by if name in table.schema.names]
    if full and still:
        assert table.is_ordered(still)
    assert everything(Store("memory", world.services()).table("t"), times) == before
    world.close()
