"""What a compaction would rewrite, and that no row is rewritten too often."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.state import Place
from instar.table.housekeeping.plan import Candidate, CompactionReason, Goals, plan_compaction

if TYPE_CHECKING:
    from random import Random

MIB = 1024 * 1024
SORTED = Goals(schema_id=0, sorted=True)
AS_THEY_COME = Goals(schema_id=0, sorted=False)


def part(
    batch: int,
    first: int,
    last: int,
    rows: int = 100,
    size: int = MIB,
    *,
    ordinal: int = 0,
    ordered: bool = True,
    retracted: int = 0,
) -> Candidate:
    """Return a part with rows from one number to another, of the run of its batch."""
    place, bounds = Place(batch, ordinal), (((1, first),), ((1, last),))
    return Candidate(place, rows, size, (batch, 0), 0, ordered, *bounds, retracted)


def test_a_table_as_it_should_be_is_left_alone() -> None:
    """Parts of the right size that lie apart, and a single small one, give nothing to do."""
    good = [part(0, at, at + 9, size=128 * MIB, ordinal=at) for at in range(0, 100, 10)]
    assert plan_compaction([*good, part(1, 200, 201)], SORTED) == []


def test_small_parts_that_follow_each_other_become_one() -> None:
    """Between large ones, too, but not across them, where they would overlap."""
    large = part(0, 50, 60, size=128 * MIB)
    small = [part(at, at * 10, at * 10 + 5) for at in (1, 2, 3, 7, 8)]
    jobs = plan_compaction([large, *small], SORTED)
    assert [(job.reason, [part.place.batch for part in job.parts]) for job in jobs] == [
        (CompactionReason.SMALL, [1, 2, 3]),
        (CompactionReason.SMALL, [7, 8]),
    ]


def test_a_large_part_is_not_rewritten_for_a_small_one() -> None:
    """What is gained must be worth what is written: rows go into parts of twice their number."""
    parts = [part(1, 0, 9, rows=1000), part(2, 10, 19, rows=10), part(3, 20, 29, rows=10)]
    (job,) = plan_compaction(parts, SORTED)
    assert [part.place.batch for part in job.parts] == [2, 3]
    (job,) = plan_compaction(parts, SORTED._replace(full=True))
    assert [part.place.batch for part in job.parts] == [1, 2, 3]


def test_overlapping_runs_are_merged_level_by_level() -> None:
    """Small runs together, and with a large one only when they have become as large."""
    level = [part(at, 0, 100, rows=100) for at in range(1, 5)]
    large = [part(9, at, at + 9, rows=5000, size=128 * MIB, ordinal=at) for at in range(0, 100, 10)]
    (job,) = plan_compaction([*level, *large], SORTED)
    assert job.reason is CompactionReason.OVERLAP
    assert {part.place.batch for part in job.parts} == {1, 2, 3, 4}
    (job,) = plan_compaction([*level, *large], SORTED._replace(full=True))
    assert len(job.parts) == 14


def test_broken_order_comes_first_and_old_schemas_last() -> None:
    """Each part is rewritten once, for the most urgent reason that it has."""
    large = 128 * MIB
    parts = [
        part(1, 0, 9, size=large),
        part(2, 10, 19, size=large, retracted=50),
        part(3, 20, 29, size=large, ordered=False),
        part(4, 30, 39, size=large, ordered=False, retracted=100),
    ]
    jobs = plan_compaction(parts, SORTED._replace(schema_id=1))
    found = [(job.reason, [part.place.batch for part in job.parts]) for job in jobs]
    assert found == [
        (CompactionReason.ORDER, [3, 4]),
        (CompactionReason.RETRACTIONS, [2]),
        (CompactionReason.SCHEMA, [1]),
    ]


def test_rows_without_an_order_stay_in_the_order_they_came() -> None:
    """Parts of such a table never overlap; small neighbours in time are merged."""
    parts = [part(at, 0, 100) for at in (3, 1, 2)]
    (job,) = plan_compaction(parts, AS_THEY_COME)
    assert job.reason is CompactionReason.SMALL
    assert [part.place.batch for part in job.parts] == [1, 2, 3]


def test_a_job_is_not_larger_than_it_may_be() -> None:
    """However many parts there are to rewrite."""
    parts = [part(at, at, at) for at in range(100)]
    jobs = plan_compaction(parts, SORTED._replace(job_bytes=10 * MIB))
    assert [len(job.parts) for job in jobs] == [10] * 10
    assert jobs[0].rows == 1000
    assert jobs[0].size == 10 * MIB


@pytest.mark.parametrize("sorted_", [False, True])
@pytest.mark.parametrize("fan_in", [2, 8])
@settings(max_examples=10)
@given(seed=st.randoms(use_true_random=False))
def test_a_row_is_rewritten_logarithmically_often(fan_in: int, sorted_: bool, seed: Random) -> None:
    """Appending and compacting by turns writes each row about log2(n) times, and leaves few parts."""
    goals = Goals(schema_id=0, sorted=sorted_, fan_in=fan_in)
    live: list[Candidate] = []
    written = 0
    total = 0
    for batch in range(0, 300, 2):
        rows = seed.randint(1, 20)
        total += rows
        first = seed.randint(0, 1000)
        live.append(part(batch, first, first + seed.randint(0, 50), rows=rows, size=1000))
        for job in plan_compaction(live, goals):
            places = {part.place for part in job.parts}
            live = [part for part in live if part.place not in places]
            first_row = min(part.first for part in job.parts if part.first)
            last_row = max(part.last for part in job.parts if part.last)
            merged = Candidate(Place(batch + 1, len(live)), job.rows, 1000, (batch + 1, len(live)), 0)
            live.append(merged._replace(first=first_row, last=last_row))
            written += job.rows
    assert written <= total * log2(total)
    assert len(live) <= fan_in * log2(total) * (8 if sorted_ else 1)
