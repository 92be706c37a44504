"""What was retracted by value is settled when compaction reads the row and its retraction together."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import instar
from instar.table.log.manifest import load_parts

if TYPE_CHECKING:
    from pathlib import Path

    from instar import Table


def _rows(table: Table, as_of: int) -> list[tuple[object, ...]]:
    with table.snapshot(as_of=as_of) as snapshot:
        return sorted(tuple(row.values()) for row in snapshot.to_arrow().to_pylist())


def _apply(table: Table, *changes: tuple[int, int]) -> int:
    keys, diffs = zip(*changes, strict=True)
    return table.apply(pa.table({"k": keys, "s": [str(key) for key in keys], "_diff": diffs})).ts


@pytest.mark.parametrize("order_by", [(), ("k",)])
def test_retractions_by_value_become_positions(tmp_path: Path, order_by: tuple[str, ...]) -> None:
    """Nothing is left to add up, every time is read as before, and what nobody can read is not written."""
    with instar.open(tmp_path) as store:
        table = store.create_table("t", "k bigint, s string", order_by=order_by)
        times = [
            _apply(table, *((key, 1) for key in range(50))),
            _apply(table, (3, 1), (4, -1)),
            _apply(table, (3, -1), (3, -1), (5, -1)),
            _apply(table, (4, 1)),
        ]
        before = [_rows(table, time) for time in times]
        table.compact(full=True)
        assert [_rows(table, time) for time in times] == before
        found = load_parts(store.table("t")._services.chunks, table.state)
        assert found.times.plain.all()
        updates = [
            (row["k"], row["_ts"], row["_diff"])
            for change in table.listen(since=times[0], timeout=0)
            for row in change.rows.to_pylist()
        ]
        assert sorted(updates) == sorted(
            [
                *((3, times[1], 1), (4, times[1], -1), (4, times[3], 1)),
                *((3, times[2], -1), (3, times[2], -1), (5, times[2], -1)),
            ]
        )
        assert table.state.totals.rows == 52


@pytest.mark.parametrize("seed", range(6))
def test_any_history_is_the_same_after_settling(tmp_path: Path, seed: int) -> None:
    """Rows that come and go any number of times, several at once, compacted in pieces and as a whole."""
    random = Random(seed)
    with instar.open(tmp_path) as store:
        table = store.create_table("t", "k bigint, s string", order_by=random.choice([(), ("s",)]))
        counts: dict[int, int] = {}
        times: list[int] = []
        expected: list[list[tuple[object, ...]]] = []
        for step in range(14):
            changes: dict[int, int] = {}
            for _ in range(random.randrange(1, 6)):
                key = random.randrange(5)
                diff = random.choice([1, 1, -1, 2, -2]) if seed % 2 else random.choice([1, -1])
                if counts.get(key, 0) + changes.get(key, 0) + diff >= 0:
                    changes[key] = changes.get(key, 0) + diff
            changes = {key: diff for key, diff in changes.items() if diff}
            if changes:
                spread = [
                    (key, 1 if diff > 0 else -1) for key, diff in changes.items() for _ in range(abs(diff))
                ]
                times.append(_apply(table, *(spread if seed % 3 else changes.items())))
                counts = {key: counts.get(key, 0) + changes.get(key, 0) for key in {*counts, *changes}}
                rows = [(key, str(key)) for key, count in counts.items() for _ in range(count)]
                expected.append(sorted(rows))
            if step % 4 == 3:
                table.compact(full=random.random() < 0.5)
        table.compact(full=True)
        assert [_rows(table, time) for time in times] == expected
