"""Upserts in process: what a key is, what is replaced, and what happens if others are faster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import instar
from instar.errors import ConflictError, CorruptTableError, DataMismatchError, UsageError
from tests.tables import before_commit, small_numbers, spoil_columns

if TYPE_CHECKING:
    from pathlib import Path

    from instar.api.store import Store
    from instar.api.table import Table

NAN = float("nan")


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    """Return the rows of a table, in an order that does not depend on it."""
    return sorted((tuple(row.values()) for row in table.snapshot().to_arrow().to_pylist()), key=repr)


@pytest.mark.parametrize(
    ("key_type", "key", "twin", "other"),
    [
        ("int", 1, 1, 2),
        ("string", "a", "a", "b"),
        ("int", None, None, 0),
        ("double", NAN, NAN, 0.0),
        ("double", 0.0, -0.0, 1.0),
        ("struct<a: int, b: string>", {"a": 1, "b": None}, {"a": 1, "b": None}, {"a": 1, "b": ""}),
        ("struct<a: int>", None, None, {"a": None}),
        ("array<int>", [1, None], [1, None], [1]),
    ],
)
def test_a_row_replaces_the_rows_of_the_same_key(
    store: Store, key_type: str, key: object, twin: object, other: object
) -> None:
    """Keys are equal as rows are: null is null, NaN is NaN, zeros have no sign, members count one by one."""
    table = store.create_table("t", f"k {key_type}, v int", key=["k"])
    type_ = pa.schema([("k", _arrow(table, "k")), ("v", pa.int32())])
    table.append(pa.table({"k": [key, other], "v": [1, 1]}, schema=type_))
    commit = table.upsert(pa.table({"k": [twin], "v": [2]}, schema=type_))
    assert commit.rows == 2
    found = table.snapshot().to_arrow()
    assert sorted(found.column("v").to_pylist()) == [1, 2]
    kept = found.filter(pa.array([value == 1 for value in found.column("v").to_pylist()]))
    assert repr(kept.column("k").to_pylist()) == repr([other])


def _arrow(table: Table, column: str) -> pa.DataType:
    return table.snapshot().to_arrow().schema.field(column).type


def test_a_member_of_a_struct_can_be_the_key(store: Store) -> None:
    """Only the member counts; what else is in its struct is replaced with the row."""
    table = store.create_table("t", "s struct<id: int, x: int>, v int", key=["s.id"])
    table.append(pa.table({"s": [{"id": 1, "x": 1}, {"id": 2, "x": 1}], "v": [1, 1]}, schema=_layout(table)))
    table.upsert(pa.table({"s": [{"id": 1, "x": 9}], "v": [2]}, schema=_layout(table)))
    assert rows_of(table) == [({"id": 1, "x": 9}, 2), ({"id": 2, "x": 1}, 1)]


def _layout(table: Table) -> pa.Schema:
    return table.snapshot().to_arrow().schema


@pytest.mark.parametrize("keys", [[1, 1], [None, None]])
def test_data_with_a_key_twice_is_refused(store: Store, keys: list[int | None]) -> None:
    """Nobody knows which of the rows shall stay, so none is written."""
    table = store.create_table("t", "k int, v int", key=["k"])
    seqno = table.state.seqno
    with pytest.raises(UsageError, match=r"the same key \(k\) more than once"):
        table.upsert(pa.table({"k": pa.array(keys, pa.int32()), "v": pa.array([1, 2], pa.int32())}))
    assert table.state.seqno == seqno


def test_a_table_without_a_key_takes_no_upserts(store: Store) -> None:
    """It says so, and how to make one that does."""
    table = store.create_table("t", "k int")
    with pytest.raises(UsageError, match="has no key"):
        table.upsert(pa.table({"k": pa.array([1], pa.int32())}))


def test_data_must_have_a_key_that_is_not_null(store: Store) -> None:
    """A key column that may not be null is neither left out nor null."""
    table = store.create_table("t", "k int not null, v int", key=["k"])
    for data in ({"v": pa.array([1], pa.int32())}, {"k": pa.array([None], pa.int32())}):
        with pytest.raises(DataMismatchError):
            table.upsert(pa.table(data))
    assert rows_of(table) == []


def test_a_row_that_came_meanwhile_is_replaced_too(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """An append between reading and committing makes the upsert start over, even with data read once."""
    table = store.create_table("t", "k int, v int", key=["k"])

    def insert(value: int) -> pa.Table:
        return pa.table({"k": pa.array([1], pa.int32()), "v": pa.array([value], pa.int32())})

    before_commit(monkeypatch, lambda: store.table("t").append(insert(5)), times=2)
    table.upsert(insert(7).to_reader())
    assert rows_of(table) == [(1, 7)]


def test_a_column_that_came_meanwhile_is_null(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """An evolution and an append between reading and committing: the data is brought to the new schema."""
    table = store.create_table("t", "k int, v int", key=["k"])
    table.append(pa.table({"k": pa.array([1, 2], pa.int32()), "v": pa.array([1, 1], pa.int32())}))

    def meddle() -> None:
        other = store.table("t")
        other.evolve().add_column("w", "int", first=True).commit()
        other.append(pa.table({"k": pa.array([1], pa.int32()), "w": pa.array([3], pa.int32())}))

    before_commit(monkeypatch, meddle)
    table.upsert(pa.table({"k": pa.array([1], pa.int32()), "v": pa.array([7], pa.int32())}).to_reader())
    assert rows_of(table) == [(None, 1, 7), (None, 2, 1)]


@pytest.mark.parametrize("by_value", [False, True])
def test_a_column_that_went_meanwhile_does_not_fence(
    store: Store, monkeypatch: pytest.MonkeyPatch, *, by_value: bool
) -> None:
    """Rows to retract have values in a column dropped between: the upsert starts over without it."""
    table = store.create_table("t", "k int, v int, w int", key=["k"])
    table.append(
        pa.table({"k": pa.array([1, 2], pa.int32()), "w": pa.array([1, 1], pa.int32())}),
    )
    if by_value:  # then this says how many rows there are that equal the one to replace
        table.apply([{"k": 1, "w": 1, "_diff": 1}, {"k": 2, "w": 1, "_diff": -1}])
    before_commit(monkeypatch, lambda: store.table("t").evolve().drop_column("w").commit())
    table.upsert(pa.table({"k": pa.array([1], pa.int32()), "v": pa.array([7], pa.int32())}))
    assert rows_of(table) == ([(1, 7)] if by_value else [(1, 7), (2, None)])


def test_an_upsert_that_never_comes_first_gives_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """If others write each time, it is a conflict, and nothing of the upsert is there."""
    table = store.create_table("t", "k int", key=["k"])
    one = pa.table({"k": pa.array([1], pa.int32())})
    before_commit(monkeypatch, lambda: store.table("t").append(one), times=100)
    table._services.__dict__["patience"] = 0.0
    with pytest.raises(
        ConflictError, match="cannot upsert into `t`: others changed it during all 5 attempts"
    ):
        table.upsert(one)
    assert rows_of(table) == [(1,)] * 5


def test_appends_of_other_keys_do_not_disturb(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upsert is not worked out again for rows that cannot have its keys, nor a delete for any."""
    table = store.create_table("t", "k int", key=["k"])
    table.append(pa.table({"k": pa.array([1, 2], pa.int32())}))
    meddled: list[object] = []
    two = pa.table({"k": pa.array([2], pa.int32())})
    before_commit(monkeypatch, lambda: meddled.append(store.table("t").append(two)), times=100)
    table.upsert(pa.table({"k": pa.array([1], pa.int32())}))
    assert len(meddled) == 1
    table.delete("k = 2")
    assert len(meddled) == 2
    assert rows_of(table) == [(1,), (2,)]  # what was added after the delete had looked


@pytest.mark.parametrize("own", [True, False])
def test_many_appends_and_rollups_do_not_disturb(
    store: Store, monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    """What came meanwhile is told from what was there, also where a rollup has put both into chunks."""
    table = store.create_table("t", "k int, v int", key=["k"])
    table.append(pa.table({"k": pa.array([1, 2], pa.int32())}))
    tries: list[int] = []

    def meddle() -> None:
        other = table if own else store.table("t")
        tries.append(len(tries))
        for at in range(20):
            other.append(pa.table({"k": pa.array([1000 * len(tries) + at], pa.int32())}))

    before_commit(monkeypatch, meddle, times=100)
    with small_numbers():
        table.upsert(pa.table({"k": pa.array([1], pa.int32()), "v": pa.array([7], pa.int32())}))
        assert len(tries) == 1
        table.delete("k < 3000")
        assert len(tries) == 2
    assert len(rows_of(table)) == 20


@pytest.mark.parametrize("what", ["key", "value"])
def test_what_a_rollup_has_folded_is_looked_at(
    store: Store, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """The same key, and a retraction by value, are noticed behind a rollup too."""
    table = store.create_table("t", "k int", key=["k"])
    table.append(pa.table({"k": pa.array([1, 2], pa.int32())}))
    one = pa.table({"k": pa.array([1], pa.int32())})
    tries: list[int] = []

    def meddle() -> None:
        tries.append(len(tries))
        if what == "key":
            table.append(one)
        else:
            table.apply(one.append_column("_diff", [[-1]]))
        table._log.checkpoint()

    before_commit(monkeypatch, meddle)
    if what == "key":
        table.upsert(one)
        assert rows_of(table) == [(1,), (2,)]
    else:
        assert table.delete("k = 1").rows == 0
        assert rows_of(table) == [(2,)]
    assert len(tries) == 1


def test_deletes_of_one_part_at_once_take_each_row_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who comes second looks again."""
    table = store.create_table("t", "k int", key=["k"])
    table.append(pa.table({"k": pa.array(range(10), pa.int32())}))
    before_commit(monkeypatch, lambda: store.table("t").delete("k < 6"))
    assert table.delete("k > 3").rows == 4
    assert rows_of(table) == []


def test_a_delete_looks_again_after_a_retraction_by_value(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For it may be of the very row."""
    table = store.create_table("t", "k int")
    table.append(pa.table({"k": pa.array([1, 2], pa.int32())}))
    gone = pa.table({"k": pa.array([1], pa.int32()), "_diff": [-1]})
    before_commit(monkeypatch, lambda: store.table("t").apply(gone))
    assert table.delete("k = 1").rows == 0
    assert rows_of(table) == [(2,)]


def test_rows_that_are_known_by_value_are_taken_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two deletes of them at once would take more rows than there are: who comes second looks again."""
    table = store.create_table("t", "k int")
    table.append([{"k": 1}, {"k": 2}])
    table.apply([{"k": 1, "_diff": 1}, {"k": 2, "_diff": -1}])
    before_commit(monkeypatch, lambda: store.table("t").delete("k = 1"))
    assert table.delete("k = 1").rows == 0
    assert rows_of(table) == []


def test_only_row_groups_that_may_have_a_key_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part is sorted, and the others may be damaged."""
    monkeypatch.setattr("instar.parts.write.ROW_GROUP_ROWS", 100)
    table = instar.open(tmp_path / "lake").create_table("t", "k bigint", key=["k"], order_by=["k"])
    table.append(pa.table({"k": list(range(1000))}))
    spoil_columns(tmp_path, "f1", groups=range(3, 10))
    assert table.upsert(pa.table({"k": [5, 250]})).rows == 4
    with pytest.raises(CorruptTableError):
        table.upsert(pa.table({"k": [5, 350]}))


def test_only_parts_that_may_have_a_key_are_read(tmp_path: Path) -> None:
    """The time and memory of an upsert depend on the parts that it touches, and not on the table."""
    table = instar.open(tmp_path / "lake").create_table(
        "t", "k bigint, s struct<t: string>, v int", key=["k"]
    )
    schema = table.snapshot().to_arrow().schema

    def rows(*keys: int | None, v: int) -> pa.Table:
        return pa.table({"k": keys, "s": [{"t": "x"}] * len(keys), "v": [v] * len(keys)}, schema=schema)

    for start in (0, 10, 20):
        table.append(rows(*range(start, start + 10), v=1))
    table.append(rows(None, 100, v=1))
    [gone] = (
        path
        for path in (tmp_path / "lake").glob("tables/*/parts/*")
        if 10 in pq.read_table(path)["f1"].to_pylist()
    )
    whole = gone.read_bytes()
    gone.unlink()
    assert table.upsert(rows(3, 5, v=2)).rows == 4
    assert table.upsert(rows(25, 28, None, v=2)).rows == 6
    with pytest.raises(CorruptTableError, match="its file is missing"):
        table.upsert(rows(12, v=2))
    gone.write_bytes(whole)
    assert table.upsert(rows(12, v=2)).rows == 2
    found = {row["k"]: row["v"] for row in table.snapshot().to_arrow().to_pylist()}
    assert found == dict.fromkeys([*range(30), 100], 1) | dict.fromkeys([3, 5, 25, 28, 12, None], 2)


def test_only_columns_of_the_key_are_read(tmp_path: Path) -> None:
    """Of the rows that are replaced, nobody needs to know the others."""
    ddl = "k bigint, v string, s struct<a: int, b: int>"
    table = instar.open(tmp_path / "lake").create_table("t", ddl, key=["k", "s.a"])
    rows = [{"k": k, "v": f"{k}", "s": {"a": 1, "b": k}} for k in range(50)]
    table.append(rows)
    spoil_columns(tmp_path, "f2")
    assert table.upsert([{**rows[4], "v": "new"}, {**rows[5], "s": {"a": 2, "b": 0}}]).rows == 3
    with pytest.raises(CorruptTableError):
        table.to_arrow()
    assert table.count() == 51


def test_an_upsert_says_what_became_of_a_name(store: Store) -> None:
    """Data with a column under its name of before is refused, with the name that it has now."""
    table = store.create_table("t", "k int, v int", key=["k"])
    table.append([{"k": 1, "v": 1}])
    table.evolve().rename_column("v", "w").commit()
    with pytest.raises(DataMismatchError, match="`v` is called `w` since schema 1"):
        table.upsert([{"k": 1, "v": 2}])
    assert table.to_arrow().to_pylist() == [{"k": 1, "w": 1}]
