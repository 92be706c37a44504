"""Writes in process: who is fenced, what is refused, what one commit does, and what a token is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pytest

from instar.errors import (
    ConflictError,
    DataMismatchError,
    SchemaMismatchError,
    SchemaNotFoundError,
    UpperMismatchError,
    UsageError,
    WriterFencedError,
)
from instar.table import begin_write

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from instar.api.store import Store
    from instar.api.table import Table
    from instar.state import TableState
    from instar.table import Services, TableLog
    from instar.table.write.append import PartWriter


def ints(**columns: list[int | None]) -> pa.Table:
    """Return a table of 32-bit integers."""
    return pa.table({name: pa.array(values, pa.int32()) for name, values in columns.items()})


def rows_of(table: Table) -> list[dict[str, Any]]:
    """Return the rows of a table as of now."""
    found: list[dict[str, Any]] = table.snapshot().to_arrow().to_pylist()
    return sorted(found, key=repr)


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Let somebody else do something after the next write has looked at the table and before it commits."""

    def arm(meddle: Callable[[], object]) -> None:
        waiting = [meddle]

        def meddling(
            services: Services, log: TableLog, state: TableState
        ) -> AbstractContextManager[PartWriter]:
            if waiting:
                waiting.pop()()
            return begin_write(services, log, state)

        monkeypatch.setattr("instar.table.write.rows.begin_write", meddling)

    return arm


# --- stale writers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "drop", "value", "named"),
    [
        ("a int, b int", "b", 1, "b"),
        ("a int, b struct<c: int, d: int>", "b.d", {"c": 1, "d": 2}, "b.d"),
        ("a int, b array<struct<c: int, d: int>>", "b.element.d", [{"c": 1, "d": 2}], "b.element.d"),
        (
            "a int, b map<string, struct<c: int, d: int>>",
            "b.value.d",
            [("x", {"c": 1, "d": 2})],
            "b.value.d",
        ),
        (
            "a int, b array<array<struct<c: int, d: struct<e: int>>>>",
            "b.element.element.d",
            [[{"c": 1, "d": {"e": 1}}]],
            "b.element.element.d",
        ),
        ("a int, b struct<c: int, d: int>", "b", {"c": None, "d": None}, "b"),
        ("a int, b array<int>", "b", [], "b"),
    ],
)
def test_values_that_nobody_could_read_fence_a_writer(
    store: Store, columns: str, drop: str, value: object, named: str
) -> None:
    """At every level: values in a field that was dropped are refused, and nothing is committed."""
    table = store.create_table("t", columns)
    layout = table.snapshot().to_arrow().schema
    table.evolve().drop_column(drop).commit()
    table.evolve().add_column("later", "int").commit()
    seqno = table.state.seqno
    data = pa.table({"a": [1], "b": [value]}, schema=layout)
    with pytest.raises(WriterFencedError) as caught:
        table.append(data, schema=0)
    assert named in caught.value.columns
    assert "(dropped by schema 1)" in str(caught.value)
    assert table.state.seqno == seqno
    assert rows_of(table) == []
    assert table.append(data, schema=0, dropped="discard").rows == 1
    assert [row["a"] for row in rows_of(table)] == [1]


@pytest.mark.parametrize(
    ("columns", "drop", "value"),
    [
        ("a int, b int", "b", None),
        ("a int, b struct<c: int, d: int>", "b.d", {"c": 1, "d": None}),
        ("a int, b struct<c: int, d: int>", "b.d", None),
        ("a int, b array<struct<c: int, d: int>>", "b.element.d", [{"c": 1, "d": None}, None]),
        ("a int, b array<struct<c: int, d: int>>", "b.element.d", []),
    ],
)
def test_a_stale_writer_without_such_values_goes_on(
    store: Store, columns: str, drop: str, value: object
) -> None:
    """Nothing would be lost, so the batch is kept under the writer's own schema."""
    table = store.create_table("t", columns)
    layout = table.snapshot().to_arrow().schema
    table.evolve().drop_column(drop).commit()
    commit = table.append(pa.table({"a": [1], "b": [value]}, schema=layout), schema=0)
    assert (commit.schema_id, commit.rows) == (0, 1)
    assert [row["a"] for row in rows_of(table)] == [1]


def test_a_writer_is_checked_when_it_commits(
    store: Store, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    """A column that is dropped while a batch is being stored fences it all the same."""
    table = store.create_table("t", "a int, b int")
    meanwhile(lambda: store.table("t").evolve().drop_column("b").commit())
    with pytest.raises(WriterFencedError):
        table.append(ints(a=[1], b=[1]))
    assert rows_of(table) == []


def test_a_stale_writer_uses_its_own_names(store: Store) -> None:
    """A column that was renamed is found by the name of the schema that is written under."""
    table = store.create_table("t", "a int, b int")
    table.evolve().rename_column("a", "c").rename_column("b", "a").commit()
    table.append(ints(a=[1], b=[2]), schema=0)
    table.append(ints(a=[3], c=[4]))
    assert rows_of(table) == [{"c": 1, "a": 2}, {"c": 4, "a": 3}]


def test_there_is_no_writing_under_a_schema_that_never_was(store: Store) -> None:
    """The error says which schemas there are."""
    table = store.create_table("t", "a int")
    for schema in (1, -1):
        with pytest.raises(SchemaNotFoundError):
            table.append(ints(a=[1]), schema=schema)


def test_dropped_is_refuse_or_discard(store: Store) -> None:
    """Anything else is a mistake."""
    with pytest.raises(UsageError, match="'refuse' or 'discard'"):
        store.create_table("t", "a int").append(ints(a=[1]), dropped="ignore")


# --- what does not fit ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "column"),
    [
        (ints(a=[1], z=[1]), "z"),
        (ints(b=[1]), "a"),
        (ints(a=[1, None]), "a"),
        (pa.table({"a": ["x"]}), "a"),
        (pa.table({"a": [1.0]}), "a"),
        (pd.DataFrame({"a": ["x"]}), "a"),
    ],
)
def test_what_does_not_fit_is_refused_whole(store: Store, data: object, column: str) -> None:
    """The column is named, and neither a commit nor a part is left behind."""
    table = store.create_table("t", "a int not null, b int")
    seqno = table.state.seqno
    with pytest.raises(DataMismatchError) as caught:
        table.append(data)
    assert caught.value.column == column
    assert table.state.seqno == seqno


def test_a_row_that_does_not_fit_is_shown(store: Store) -> None:
    """The error has the number of the row in all the data, and the row itself."""
    table = store.create_table("t", "a int not null, b int")
    data = pa.concat_tables([ints(a=[1, 2], b=[1, 2]), ints(a=[3, None], b=[3, 4])])
    with pytest.raises(DataMismatchError) as caught:
        table.append(data)
    assert (caught.value.row, caught.value.sample) == (3, "a=None, b=4")


# --- evolving with a write ------------------------------------------------------------------------


def test_new_columns_come_with_the_rows_in_one_commit(store: Store) -> None:
    """One seqno has both: nobody sees the columns without the rows, or the rows without the columns."""
    table = store.create_table("t", "a int, s struct<b: int>")
    before = table.state.seqno
    data = pa.table({"a": [1], "s": [{"b": 1, "c": "x"}], "d": [True]}, schema=_wider())
    commit = table.append(data, evolve=True)
    assert commit.seqno == before + 1 == table.state.seqno
    assert commit.schema_id == 1
    assert rows_of(table) == [{"a": 1, "s": {"b": 1, "c": "x"}, "d": True}]
    assert table.history()[0].what == "evolved to schema 1; appended 1 row at " + str(commit.ts)


def _wider() -> pa.Schema:
    members = pa.struct([("b", pa.int32()), ("c", pa.string())])
    return pa.schema([("a", pa.int32()), ("s", members), ("d", pa.bool_())])


def test_without_new_columns_evolve_changes_nothing(store: Store) -> None:
    """The schema stays, and the rows are appended."""
    table = store.create_table("t", "a int")
    assert table.append(ints(a=[1]), evolve=True).schema_id == 0
    assert len(table.schemas) == 1


def test_a_concurrent_evolution_is_a_conflict(
    store: Store, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    """Another change of schema came first: neither the columns nor the rows are there, and a retry works."""
    table = store.create_table("t", "a int")
    meanwhile(lambda: store.table("t").evolve().add_column("z", "int").commit())
    with pytest.raises(SchemaMismatchError):
        table.append(ints(a=[1], b=[2]), evolve=True)
    assert table.schema.names == ("a", "z")
    assert rows_of(table) == []
    table.append(ints(a=[1], b=[2]), evolve=True)
    assert rows_of(table) == [{"a": 1, "z": None, "b": 2}]


def test_two_writers_that_add_the_same_column(
    store: Store, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    """Both ask for the very same schema: the second finds it there, and its rows are kept."""
    table = store.create_table("t", "a int")
    meanwhile(lambda: store.table("t").append(ints(a=[1], b=[2]), evolve=True))
    table.append(ints(a=[3], b=[4]), evolve=True)
    assert len(table.schemas) == 2
    assert rows_of(table) == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]


# --- tokens ---------------------------------------------------------------------------------------


def test_a_token_makes_a_retry_do_nothing(store: Store) -> None:
    """The second call answers what the first one did, and adds neither a row nor a commit."""
    table = store.create_table("t", "a int")
    first = table.append(ints(a=[1, 2]), token="once")
    table.append(ints(a=[3]))
    seqno = table.state.seqno
    assert table.append(ints(a=[1, 2]), token="once") == first
    assert table.state.seqno == seqno
    assert [row["a"] for row in rows_of(table)] == [1, 2, 3]


def test_a_retry_does_nothing_even_if_its_data_no_longer_fits(store: Store) -> None:
    """What was written was written: that its column is gone by now is no reason to fail."""
    table = store.create_table("t", "a int, b int")
    first = table.append(ints(a=[1], b=[2]), token="once")
    table.evolve().drop_column("b").commit()
    assert table.append(ints(a=[1], b=[2]), token="once") == first
    assert table.apply(ints(a=[1]), token="once") == first


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("", "this one has 0"),
        ("é" * 129, "1 to 256 bytes, and this one has 258"),
        ("\ud800", "not text that UTF-8 can hold"),
    ],
)
def test_a_token_is_a_short_text(store: Store, token: str, why: str) -> None:
    """What cannot be remembered is refused before anything is stored."""
    table = store.create_table("t", "a int")
    for write in (table.append, table.apply):
        with pytest.raises(UsageError, match=why):
            write(ints(a=[1]), token=token)
    assert table.append(ints(a=[1]), token="é" * 128).rows == 1
    assert len(rows_of(table)) == 1


# --- times of one's own ---------------------------------------------------------------------------


def updates(table: Table, *rows: tuple[int, int, int]) -> pa.Table:
    """Return rows with times and diffs."""
    a, ts, diff = zip(*rows, strict=True)
    return pa.table({"a": pa.array(a, pa.int32()), "_ts": pa.array(ts), "_diff": pa.array(diff)})


def test_changes_may_say_when_they_happen(store: Store) -> None:
    """Each counts from its own time on, and the table is complete up to after the last."""
    table = store.create_table("t", "a int")
    table.apply(updates(table, (1, 10, 1), (2, 20, 1), (1, 30, -1)))
    assert table.upper == 31
    seen = {at: [row["a"] for row in table.snapshot(at).to_arrow().to_pylist()] for at in (9, 10, 20, 30)}
    assert seen == {9: [], 10: [1], 20: [1, 2], 30: [2]}


def test_times_that_are_complete_take_no_more_changes(store: Store) -> None:
    """A change before upper would alter what somebody may have read."""
    table = store.create_table("t", "a int")
    table.apply(updates(table, (1, 10, 1)))
    with pytest.raises(UsageError, match="complete up to 11"):
        table.apply(updates(table, (2, 10, 1), (3, 50, 1)))
    assert table.upper == 11


def test_times_leave_room_for_those_to_come(store: Store) -> None:
    """After the last time that is taken the table can still be written to; a later one is refused."""
    table = store.create_table("t", "a int")
    for ts in (2**62 + 1, 2**63 - 2, 2**63 - 1):
        with pytest.raises(UsageError, match=f"at time {ts}: times end at {2**62}"):
            table.apply(updates(table, (1, 10, 1), (2, ts, 1)))
    table.apply(updates(table, (1, 2**62, 1)))
    assert table.append(ints(a=[2])).ts == 2**62 + 1
    assert [row["a"] for row in rows_of(table)] == [1, 2]


def test_times_that_became_complete_meanwhile_are_a_conflict(
    store: Store, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    """Somebody else reached past a change while it was stored: what they completed stays as it was."""
    table = store.create_table("t", "a int")
    meanwhile(lambda: store.table("t").apply(updates(table, (1, 15, 1))))
    with pytest.raises(ConflictError):
        table.apply(updates(table, (2, 10, 1), (3, 50, 1)))
    assert [row["a"] for row in rows_of(table)] == [1]
    meanwhile(lambda: store.table("t").apply(updates(table, (4, 20, 1))))
    table.apply(updates(table, (2, 30, 1), (3, 50, 1)))
    assert [row["a"] for row in rows_of(table)] == [1, 2, 3, 4]


def test_an_append_may_expect_an_upper(store: Store) -> None:
    """Whoever built rows on what the table said can make sure that it still says that."""
    table = store.create_table("t", "a int")
    upper = table.upper
    table.append(ints(a=[1]), expected_upper=upper)
    with pytest.raises(UpperMismatchError, match="Read the upper again and build a new batch"):
        table.append(ints(a=[2]), expected_upper=upper)
    retract = ints(a=[1]).append_column("_diff", pa.array([-1]))
    with pytest.raises(UpperMismatchError):
        table.apply(retract, expected_upper=upper)
    table.apply(retract, expected_upper=table.upper)
    assert rows_of(table) == []
