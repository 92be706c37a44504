"""Deleting in process: rows go by position, without a JVM, and reading hardly notices."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import instar
from instar.errors import CorruptTableError, UsageError
from instar.parts import PartLimits
from instar.table import load_parts
from instar.table.read import rows
from tests.tables import spoil_columns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from instar import Store, Table


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Return a store in which parts are small."""
    with instar.open(tmp_path / "lake") as opened, pytest.MonkeyPatch.context() as patch:
        patch.setattr("instar.table.write.append.PartLimits", lambda: PartLimits(8192, 4096))
        yield opened


def numbers(store: Store, count: int = 3000) -> Table:
    """Return a table of numbers in several parts, sorted."""
    table = store.create_table("numbers", "n bigint, s string, d double", order_by=["n"], key=["n"])
    ids = list(range(count))
    table.append(
        pa.table(
            {"n": ids, "s": [f"text {n % 7}" for n in ids], "d": [None if n % 5 == 0 else n / 3 for n in ids]}
        )
    )
    return table


def left(table: Table, as_of: int | None = None, where: str | None = None) -> list[int]:
    """Return the numbers that are there."""
    return sorted(table.snapshot(as_of).to_arrow(where, columns=["n"])["n"].to_pylist())


def test_rows_are_deleted_without_spark(store: Store) -> None:
    """By position: no part is added, and earlier times see the rows."""
    table = numbers(store)
    before = table.upper - 1
    parts = table.state.totals.parts
    assert parts > 3
    commit = table.delete("n % 10 = 3 or d is null")
    gone = {n for n in range(3000) if n % 10 == 3 or n % 5 == 0}
    assert commit.rows == len(gone)
    assert left(table) == [n for n in range(3000) if n not in gone]
    assert left(table, before) == list(range(3000))
    assert left(table, where="n between 100 and 130 and s = 'text 1'") == [
        n for n in range(100, 131) if n % 7 == 1 and n not in gone
    ]
    assert table.state.totals[:2] == (parts, 3000)
    assert table.state.totals.retracted == len(gone)
    assert table.delete("n = 13").rows == 0
    assert table.delete("n < 20").rows == len([n for n in range(20) if n not in gone])


def test_a_part_is_taken_whole_without_being_opened(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where statistics prove the condition for every row; and what is gone is not opened again."""
    table = numbers(store)
    opened: list[str] = []
    original = rows._open

    def watched(blob: Any, part: Any) -> object:  # noqa: ANN401 -- as the original
        opened.append(part.key)
        return original(blob, part)

    monkeypatch.setattr("instar.table.read.rows._open", watched)
    assert table.delete("n >= 0").rows == 3000
    assert left(table) == []
    assert opened == []
    assert table.explain("n > 5").total == 0


@pytest.mark.parametrize("skipping", ["off", "audit"])
def test_statistics_decide_nothing_where_they_are_not_believed(store: Store, skipping: str) -> None:
    """A part is opened before its rows go."""
    table = numbers(store, 100)
    table.configure(skipping=skipping)
    table._services.blob.delete(load_parts(table._services.chunks, table.state).keys)
    with pytest.raises(CorruptTableError, match="its file is missing"):
        table.delete("n >= 0")


def test_only_columns_of_the_condition_are_read(store: Store, tmp_path: Path) -> None:
    """And only of the parts that it may be true for: others may be damaged, or not there."""
    table = numbers(store)
    table.configure(skipping_sample=0)  # a check of a skipped part would open it
    spoil_columns(tmp_path, "f2", "f3")
    assert table.delete("n % 10 = 3").rows == 300
    assert table.delete("n between 1 and 3 or n is null").rows == 2
    for path in (tmp_path / "lake").glob("tables/*/parts/*.parquet"):
        if pq.read_table(path, columns=["f1"])["f1"][0].as_py() > 20:
            path.unlink()
    assert table.delete("n % 10 = 4 and n < 20").rows == 2
    with pytest.raises(CorruptTableError):
        table.delete("s = 'text 1' and n < 20")
    with pytest.raises(CorruptTableError, match="its file is missing"):
        table.delete("n % 10 = 4 and n < 2000")


def test_listeners_are_told_what_was_deleted(store: Store) -> None:
    """With all values, the time of the deletion and a diff of -1."""
    table = numbers(store, 50)
    since = table.upper - 1
    commit = table.delete("n in (7, 8)")
    (changes,) = table.listen(since, timeout=0)
    assert changes.rows.select(["n", "s", "_ts", "_diff"]).to_pylist() == [
        {"n": n, "s": f"text {n % 7}", "_ts": commit.ts, "_diff": -1} for n in (7, 8)
    ]
    (everything,) = table.listen(0, timeout=0)
    assert sum(everything.rows["_diff"].to_pylist()) == 48


def test_positions_and_values_add_up(store: Store) -> None:
    """Rows may be retracted by value before and after others are by position."""
    table = numbers(store, 100)
    layout = pa.schema([("n", pa.int64()), ("s", pa.string()), ("d", pa.float64()), ("_diff", pa.int64())])
    row = {"n": 1, "s": "text 1", "d": 1 / 3}
    table.apply(pa.Table.from_pylist([{**row, "_diff": 2}], schema=layout))
    table.apply(pa.Table.from_pylist([{**row, "_diff": -1}], schema=layout))
    assert left(table, where="n = 1") == [1, 1]
    assert table.delete("n <= 1").rows >= 2
    assert left(table, where="n < 3") == [2]
    table.apply(pa.Table.from_pylist([{**row, "_diff": 1}], schema=layout))
    assert left(table, where="n < 3") == [1, 2]
    assert table.upsert(pa.table({"n": [1, 2, 500], "s": ["a", "b", "c"]})).rows == 5
    assert table.snapshot().to_arrow("s in ('a', 'b', 'c')")["n"].to_pylist() == [1, 2, 500]
    assert len(left(table)) == 100


def test_a_condition_that_needs_spark_says_so(store: Store) -> None:
    """And nothing is deleted."""
    table = numbers(store, 10)
    with pytest.raises(UsageError, match="without Spark"):
        table.delete("reflect('java.lang.Math', 'abs', n) = 1")
    assert len(left(table)) == 10


def test_many_deletes_and_upserts_add_up(store: Store) -> None:
    """Over rollups, in every order, at every time."""
    random = Random(3)
    table = numbers(store, 400)
    model = {n: f"text {n % 7}" for n in range(400)}
    seen = {table.upper - 1: dict(model)}
    for step in range(40):
        chosen = random.sample(range(450), 5)
        if step % 2:
            table.delete(f"n in ({', '.join(map(str, chosen))})")
            model = {n: s for n, s in model.items() if n not in chosen}
        else:
            table.upsert(pa.table({"n": chosen, "s": [f"step {step}"] * 5}))
            model |= dict.fromkeys(chosen, f"step {step}")
        seen[table.upper - 1] = dict(model)
        if step == 25:
            table.vacuum(grace_ms=0)
    for as_of, expected in seen.items():
        rows = table.snapshot(as_of).to_arrow(columns=["n", "s"])
        assert dict(zip(rows["n"].to_pylist(), rows["s"].to_pylist(), strict=True)) == expected
        assert rows.num_rows == len(expected)


@pytest.mark.parametrize("name", ["_row", "_part", "_number", "target", "row"])
def test_columns_may_be_called_anything(store: Store, name: str) -> None:
    """Also as what instar itself might call a position: nothing of its own is ever among columns."""
    table = store.create_table("t", f"k int, {name} int", key=["k"])
    table.append([{"k": k, name: k + 4} for k in range(1, 5)])
    table.delete(f"{name} = 5")
    table.upsert([{"k": 2, name: 60}])
    table.update(set={name: "9"}, where=f"{name} = 60")
    merge = table.merge([{"k": 3, name: 70}], on=["k"]).when_matched_update()
    merge.when_not_matched_by_source_delete(f"target.{name} = 9").execute()
    table.apply(pa.table({"k": [3], name: [70], "_diff": [-1]}))
    assert table.to_arrow().to_pylist() == [{"k": 4, name: 8}]
    table.compact(full=True)
    assert table.to_arrow().to_pylist() == [{"k": 4, name: 8}]
