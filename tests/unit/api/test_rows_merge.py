"""Updates and merges in process: in one commit, by position, and exactly what the clauses say."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import instar
from instar.errors import ColumnNotFoundError, DataMismatchError, UsageError
from instar.parts import PartLimits
from instar.schema import arrow_schema
from tests.merges import LAYOUT, draw_clauses, draw_rows, merged, with_clauses
from tests.tables import before_commit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from instar import Store, Table

Row = tuple[Any, ...]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Return a store in which parts are small."""
    with instar.open(tmp_path / "lake") as opened, pytest.MonkeyPatch.context() as patch:
        patch.setattr("instar.table.write.append.PartLimits", lambda: PartLimits(2048, 1024))
        yield opened


def rows_of(table: Table, as_of: int | None = None) -> list[Row]:
    """Return the rows, sorted."""
    return sorted((tuple(row.values()) for row in table.snapshot(as_of).to_arrow().to_pylist()), key=repr)


def given(table: Table, *rows: Row) -> pa.Table:
    """Lay rows out as the table does."""
    names = [field.name for field in table.schema.fields]
    return pa.Table.from_pylist(
        [dict(zip(names, row, strict=True)) for row in rows], schema=arrow_schema(table.schema)
    )


def accounts(store: Store) -> Table:
    """Return a table of some accounts."""
    table = store.create_table("accounts", "id int, name string, amount bigint, rate double, at date")
    table.append(given(table, *((n, f"n{n}", 10 * n - 50, n / 4, None) for n in range(10))))
    return table


def test_rows_get_other_values(store: Store) -> None:
    """Only those that the condition is true for, worked out from what they were; earlier times see that."""
    table = accounts(store)
    before, rows = table.upper - 1, rows_of(table)
    commit = table.update(set={"amount": "0"}, where="amount < 0")
    assert commit.rows == 10
    assert rows_of(table) == [(n, s, max(a, 0), r, d) for n, s, a, r, d in rows]
    assert rows_of(table, before) == rows
    table.update({"Amount": "amount + id", "name": "null", "at": "date '2026-11-15'"}, where="id % 2 = 0")
    assert [(row[1], row[2]) for row in rows_of(table)][:3] == [(None, 0), ("n1", 0), (None, 2)]
    assert rows_of(table)[0][4].isoformat() == "2026-11-15"
    table.update({"name": "case when amount > 20 then 'rich' else name end"})
    assert [row[1] for row in rows_of(table)] == [
        None,
        "n1",
        None,
        "n3",
        None,
        "n5",
        None,
        "n7",
        "rich",
        "rich",
    ]
    assert table.update({"id": "1"}, where="id > 100").rows == 0


def test_updates_that_cannot_be_meant_are_refused(store: Store) -> None:
    """In words, and nothing is changed."""
    table = accounts(store)
    seqno = table.state.seqno
    for values in ({}, {"id": 3}, {"id": "1", "ID": "2"}):
        with pytest.raises(UsageError):
            table.update(values)  # type: ignore[arg-type]
    with pytest.raises(ColumnNotFoundError):
        table.update({"nobody": "1"})
    with pytest.raises(DataMismatchError):
        table.update({"id": "name"})
    with pytest.raises(UsageError, match="without Spark"):
        table.update({"name": "reverse(sha2(name, 256))"})
    assert table.state.seqno == seqno


def test_a_merge_updates_inserts_and_deletes_in_one_commit(store: Store) -> None:
    """Each row by the first clause whose condition is true."""
    table = accounts(store)
    seqno = table.state.seqno
    data = given(
        table,
        (1, "x", 1, 0.0, None),
        (2, "gone", 2, 0.0, None),
        (20, "new", 5, 1.0, None),
        (21, "no", -5, 1.0, None),
    )
    commit = (
        table.merge(data, on=["id"])
        .when_matched_delete("source.name = 'gone'")
        .when_matched_update(set={"amount": "target.amount + source.amount"}, condition="target.id = 1")
        .when_not_matched_insert(condition="source.amount > 0")
        .when_not_matched_by_source_delete("target.amount >= 30")
        .execute()
    )
    assert table.state.seqno == seqno + 1 == commit.seqno
    assert [row[:3] for row in rows_of(table)] == [
        (0, "n0", -50),
        (1, "n1", -39),
        (20, "new", 5),
        *((n, f"n{n}", 10 * n - 50) for n in range(3, 8)),
    ]


@pytest.mark.parametrize("sweep", [False, True])
def test_a_row_that_came_meanwhile_is_merged_too(
    store: Store, monkeypatch: pytest.MonkeyPatch, *, sweep: bool
) -> None:
    """Whether the data has its key, or it has to go because the data lacks it."""
    table = store.create_table("t", "k int, v string")
    table.append([{"k": 1, "v": "old"}])
    merge = table.merge([{"k": 2, "v": "new"}], on=["k"]).when_matched_update().when_not_matched_insert()
    meddling = [{"k": 2, "v": "others"}]
    if sweep:
        merge, meddling = merge.when_not_matched_by_source_delete(), [{"k": 3, "v": "others"}]
    before_commit(monkeypatch, lambda: store.table("t").append(meddling))
    merge.execute()
    left = [] if sweep else [{"k": 1, "v": "old"}]
    assert sorted(table.to_arrow().to_pylist(), key=repr) == [*left, {"k": 2, "v": "new"}]


def test_rows_of_other_keys_do_not_disturb_a_merge(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is worked out once, whatever others append."""
    table = store.create_table("t", "k int, v string")
    table.append([{"k": 1, "v": "old"}])
    tries: list[int] = []

    def meddle() -> None:
        tries.append(len(tries))
        store.table("t").append([{"k": 9, "v": "others"}])

    before_commit(monkeypatch, meddle, times=3)
    table.merge([{"k": 1, "v": "new"}, {"k": 2}], on=["k"]).when_matched_update().execute()
    assert len(tries) == 1
    assert sorted(table.to_arrow()["v"].to_pylist()) == ["new", "others"]


def test_a_merge_by_name_takes_what_the_data_has(store: Store) -> None:
    """Columns that it has not keep their values in updates, and are null in inserts."""
    table = accounts(store)
    data = pa.table({"ID": [1, 30], "name": ["one", "thirty"]})
    table.merge(data, on=["id"]).when_matched_update().when_not_matched_insert().execute()
    assert [row for row in rows_of(table) if row[0] in {1, 30}] == [
        (1, "one", -40, 0.25, None),
        (30, "thirty", None, None, None),
    ]


def test_columns_may_have_dots_in_their_names(store: Store) -> None:
    """They are quoted wherever an expression or a name may be a path."""
    table = store.create_table("dots", "k int, `a.b` string")
    table.append(given(table, (1, "x"), (2, "y")))
    data = given(table, (2, "new"), (3, "z"))
    table.merge(data, on=["k"]).when_matched_update().when_not_matched_insert().execute()
    table.update({"`a.b`": "null"}, where="`a.b` = 'x'")
    assert rows_of(table) == [(1, None), (2, "new"), (3, "z")]


def test_merges_that_cannot_be_meant_are_refused(store: Store) -> None:
    """In words, and nothing is changed."""
    table = accounts(store)
    data = given(table, (1, "x", 1, 0.0, None), (1, "y", 1, 0.0, None))
    for wrong in (
        table.merge(data, on=["id"]),
        table.merge(data, on=[]).when_matched_delete(),
        table.merge(data.drop_columns(["id"]), on=["id"]).when_matched_delete(),
    ):
        with pytest.raises(UsageError):
            wrong.execute()
    with pytest.raises(UsageError):
        table.merge(data, on="id")
    with pytest.raises(UsageError, match="more than one row"):
        table.merge(data, on=["id"]).when_matched_update().execute()
    with pytest.raises((ColumnNotFoundError, UsageError)):
        table.merge(data.slice(1), on=["id"]).when_matched_delete("sauce.id = 1").execute()
    assert table.state.seqno == 1


def test_random_merges_end_where_a_model_does(store: Store) -> None:
    """Beside deletes, updates, and retractions by value of rows that are there twice."""
    random = Random(5)
    table = store.create_table("t", "k int, v bigint", key=["k"])
    model: list[Row] = [(n % 20, n) for n in range(40)]
    table.append(given(table, *model))
    seen = {}
    for step in range(25):
        data = {k: random.randrange(100) for k in random.sample(range(30), 6)}
        match random.randrange(4):
            case 0:
                twin = random.choice(model)
                layout = arrow_schema(table.schema).append(pa.field("_diff", pa.int64()))
                both = pa.Table.from_pylist([{"k": twin[0], "v": twin[1], "_diff": -1}], schema=layout)
                table.apply(both)
                model.remove(twin)
            case 1:
                table.update({"v": "v + 1"}, where=f"v % 3 = {step % 3}")
                model = [(k, v + (v % 3 == step % 3)) for k, v in model]
            case 2:
                table.delete(f"v = {model[0][1]}")
                model = [row for row in model if row[1] != model[0][1]]
            case _:
                doubled = {"k": "source.k", "v": "source.v * 2"}
                (
                    table.merge(given(table, *data.items()), on=["k"])
                    .when_matched_delete("source.v > 90")
                    .when_matched_update({"v": "source.v"}, condition="source.v > target.v")
                    .when_not_matched_insert(doubled, condition="source.v < 80")
                    .when_not_matched_by_source_delete("target.v > 95")
                    .execute()
                )
                here = {k for k, _ in model}
                model = [
                    (k, max(v, data.get(k, v))) for k, v in model if (data[k] <= 90 if k in data else v <= 95)
                ]
                model += [(k, 2 * v) for k, v in data.items() if k not in here and v < 80]
        seen[table.upper - 1] = sorted(model, key=repr)
        assert rows_of(table) == seen[table.upper - 1]
    for as_of, expected in seen.items():
        assert rows_of(table, as_of) == expected


@pytest.mark.parametrize("seed", range(15))
def test_a_merge_comes_to_what_its_clauses_say(store: Store, seed: int) -> None:
    """Whatever is null, there twice on either side, or gets another key; ambiguous ones change nothing."""
    random = Random(seed)
    table = store.create_table("t", "k bigint, j string, v bigint")
    model = draw_rows(random, 12)
    table.append(given(table, *model))
    for _ in range(3):
        data, clauses = draw_rows(random, 6), draw_clauses(random)
        on = random.choice([[0], [0, 1]])
        merge = table.merge(given(table, *data), on=[LAYOUT.names[at] for at in on])
        try:
            model = merged(model, data, on, clauses)
        except UsageError:
            with pytest.raises(UsageError, match="more than one row"):
                with_clauses(merge, clauses).execute()
        else:
            with_clauses(merge, clauses).execute()
        assert rows_of(table) == sorted(model, key=repr)


def test_a_condition_is_asked_only_of_rows_that_are_left(store: Store) -> None:
    """So a clause can keep a later one from rows that it would fail for."""
    table = accounts(store)
    merge = table.merge(pa.table({"id": [0, 1]}), on=["id"])
    fails = "10 / target.id > 1"
    with pytest.raises(UsageError):
        merge.when_matched_delete(fails).execute()
    merge.when_matched_update({"name": "'zero'"}, condition="target.id = 0").when_matched_delete(
        fails
    ).execute()
    assert [row[:2] for row in rows_of(table)][:2] == [(0, "zero"), (2, "n2")]


@pytest.mark.parametrize("by_value", [False, True])
def test_a_sweep_is_asked_only_of_rows_that_the_data_lacks(store: Store, *, by_value: bool) -> None:
    """Neither of those that have a partner, nor of those that a clause before it has taken."""
    table = store.create_table("t", "id int, amount int")
    table.append(given(table, *((n, n) for n in range(4))))
    if by_value:  # rows that are there twice by one update have no place of their own
        more = given(table, (9, 9), *((n, n) for n in range(4)))
        table.apply(more.append_column("_diff", pa.array([2, *[-1] * 4])))
        table.apply(given(table, *((n, n) for n in range(4))).append_column("_diff", pa.array([2] * 4)))
        table.apply(given(table, *((n, n) for n in range(4))).append_column("_diff", pa.array([-1] * 4)))
    fails = "10 / target.id > 4"
    with pytest.raises(UsageError):
        table.merge(pa.table({"id": [3]}), on=["id"]).when_not_matched_by_source_delete(fails).execute()
    table.merge(pa.table({"id": [0]}), on=["id"]).when_not_matched_by_source_delete(fails).execute()
    assert [row[0] for row in rows_of(table)] == [0, 3, *[9] * (2 * by_value)]
    merge = table.merge(pa.table({"id": [7]}), on=["id"])
    merge.when_not_matched_by_source_delete("target.id = 0").when_not_matched_by_source_delete(
        fails
    ).execute()
    assert [row[0] for row in rows_of(table)] == [3, *[9] * (2 * by_value)]


def test_a_merge_loses_no_values_under_names_of_before(store: Store) -> None:
    """By name it would leave them out, and insert nulls; where clauses say what they set, nothing is lost."""
    table = accounts(store)
    table.evolve().rename_column("amount", "cents").drop_column("rate").commit()
    before = rows_of(table)
    for column, fate in (("Amount", "is called `cents` since schema 1"), ("rate", "was dropped by schema 1")):
        merge = table.merge(pa.table({"id": [1, 50], column: [7, 7]}), on=["id"])
        for clause in (merge.when_matched_update(), merge.when_not_matched_insert()):
            with pytest.raises(DataMismatchError, match=fate):
                clause.execute()
        assert rows_of(table) == before
    merge = table.merge(pa.table({"id": [1], "amount": [7], "op": ["set"]}), on=["id"])
    merge.when_matched_update({"cents": "source.amount"}, condition="source.op = 'set'").execute()
    assert [row[2] for row in rows_of(table) if row[0] == 1] == [7]


@pytest.mark.parametrize(
    "values",
    [
        [None, None],
        pa.array([7, 8], pa.uint64()),
        pa.array([7, 8], pa.uint8()),
        [{"id": 1, "amount": 7}, {"id": 20, "amount": None}],
        [{"id": 1, "amount": 7.0}, {"id": 20, "amount": None}],
    ],
)
def test_a_merge_takes_what_an_append_takes(store: Store, values: Any) -> None:  # noqa: ANN401 -- any data
    """Columns of nulls, unsigned numbers, and numbers of Python that are whole."""
    table, other = accounts(store), store.create_table("other", "id int, amount bigint")
    dicts = isinstance(values, list) and isinstance(values[0], dict)
    data = values if dicts else pa.table({"id": [1, 20], "amount": values, "nobody": pa.nulls(2)})
    table.merge(data, on=["id"]).when_matched_update().when_not_matched_insert().execute()
    other.append(data if dicts else data.drop_columns(["nobody"]))
    assert [(row[0], row[2]) for row in rows_of(table) if row[0] in {1, 20}] == rows_of(other)
