"""Counting rows: what metadata decides opens no part, and every count is that of the rows themselves."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import instar
from instar.errors import CorruptTableError

if TYPE_CHECKING:
    from pathlib import Path

CONDITIONS = (
    "id >= 0",
    "id < 30",
    "id between 15 and 34",
    "id % 2 = 0",
    "s = 'b'",
    "s is null",
    "s is not null or id > 3",
    "x > 0.5",
    "not (x > 0.5)",
    "x = x",
    "true",
    "false",
    "id > 20 and s = 'a'",
    "coalesce(s, 'a') = 'a'",
)


def fill(table: instar.Table, random: Random) -> None:
    """Append parts with nulls and NaN, some of them constant, and retract by position and by value."""
    for part in range(5):
        ids = range(part * 10, part * 10 + 10)
        constant = part % 2
        texts = [("a" if constant else random.choice(["a", "b", None])) for _ in ids]
        reals = [random.choice([0.0, 1.0, float("nan"), None]) for _ in ids]
        table.append(
            pa.table({"id": ids, "s": pa.array(texts, pa.string()), "x": pa.array(reals, pa.float64())})
        )
    table.delete("id = 13")
    table.evolve().rename_column("s", "t").commit()
    table.evolve().rename_column("t", "s").add_column("n", "int").commit()


@pytest.mark.parametrize("seed", range(3))
def test_a_count_is_that_of_the_rows(tmp_path: Path, seed: int) -> None:
    """Whatever part of it comes from metadata, now and in the past, with and without skipping."""
    with instar.open(tmp_path / "lake") as store:
        table = store.create_table("t", "id bigint, s string, x double", order_by=["id"])
        fill(table, Random(seed))
        table.apply(pa.table({"id": [22], "s": ["z"], "x": [0.25], "_diff": [1]}))
        table.apply(pa.table({"id": [22], "s": ["z"], "x": [0.25], "_diff": [-1]}))
        for snapshot in (table.snapshot(), table.snapshot(version=3), table.snapshot(skipping="off")):
            for condition in CONDITIONS:
                assert snapshot.count(condition) == snapshot.to_arrow(where=condition).num_rows, condition
            assert snapshot.count() == snapshot.to_arrow().num_rows


def test_what_metadata_decides_opens_no_part(tmp_path: Path) -> None:
    """The files are gone, and the counts are still there; a condition that needs the rows fails."""
    with instar.open(tmp_path / "lake") as store:
        table = store.create_table("t", "id bigint, s string, x double", order_by=["id"])
        table.configure(skipping_sample=0)  # a check of a skipped part would open it
        fill(table, Random(0))
        expected = {condition: table.count(condition) for condition in ("id >= 0", "id < 30", "id >= 20")}
        for path in tmp_path.rglob("*.parquet"):
            path.unlink()
        assert {condition: table.count(condition) for condition in expected} == expected
        assert table.count() == expected["id >= 0"]
        assert table.count("id is null") == 0
        with pytest.raises(CorruptTableError):
            table.count("id % 2 = 0")
