"""Rows for pandas, Polars, DuckDB and everything that reads Arrow, and what a notebook shows."""

from __future__ import annotations

import warnings
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from instar.api.dataset import sql_of_text
from instar.api.lazy import sql_of
from instar.api.snapshot import Snapshot
from instar.errors import TableNotFoundError, UsageError
from instar.schema import Primitive

if TYPE_CHECKING:
    from pathlib import Path

    from instar.api.store import Store
    from instar.api.table import Table
    from instar.schema import Type


class Opened:
    """Which parts queries opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, table: Table) -> None:
        self.keys: list[str] = []
        blob = table._services.blob
        whole = type(blob).get_ranges

        def spy(blob: Any, key: str, ranges: Any) -> Any:  # noqa: ANN401
            self.keys.append(key)
            return whole(blob, key, ranges)

        monkeypatch.setattr(type(blob), "get_ranges", spy)

    def count(self) -> int:
        """Return how many parts were opened since the last call."""
        found = len({key for key in self.keys if "/parts/" in key})
        self.keys.clear()
        return found


@pytest.fixture
def events(store: Store) -> Table:
    """Return a table of four parts, ten rows each."""
    table = store.create_table("events", "id bigint, name string, at timestamp, day date, price decimal(9,2)")
    for part in range(4):
        ids = range(part * 10, part * 10 + 10)
        table.append(
            pa.table(
                {
                    "id": ids,
                    "name": [f"k{at:03}" for at in ids],
                    "at": pa.array([datetime(2026, 1, 1 + part, 0, at % 60, tzinfo=UTC) for at in ids]),
                    "day": [date(2026, 1, 1 + part)] * 10,
                    "price": pa.array([Decimal(at) for at in ids], pa.decimal128(9, 2)),
                }
            )
        )
    return table


def test_a_few_rows_open_a_few_parts(events: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """`head` stops reading when it has enough, and an empty table has a head too."""
    assert events.head(3).num_rows == 3
    assert events.head().num_rows == 10
    assert events.head(25).num_rows == 25
    assert events.head(1000).num_rows == 40
    assert events.head(2, ["name"]).column_names == ["name"]
    assert events.head(2, ["id"], where="id >= 39").to_pylist() == [{"id": 39}]
    opened = Opened(monkeypatch, events)
    events.head(3)
    assert opened.count() == 1


def test_batches_of_a_table_are_those_of_a_snapshot(events: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are of one moment, whatever is deleted meanwhile, and the snapshot is closed after the last."""
    closed: list[Snapshot] = []
    monkeypatch.setattr(Snapshot, "close", lambda snapshot: closed.extend([snapshot]))
    batches = events.to_batches("id >= 15", ["id"])
    first = next(batches)
    events.delete("true")
    events.compact()
    events.vacuum(grace_ms=0)
    closed.clear()
    assert sum(batch.num_rows for batch in (first, *batches)) == 25
    assert len(closed) == 1
    with pytest.raises(UsageError):
        events.to_batches("id >=")


def test_rows_are_counted(events: Table) -> None:
    """All of them, or those that a condition is true for; retracted ones are not."""
    assert events.count() == 40
    assert events.count("id >= 35") == 5
    events.apply(pa.table({"id": [100, 100], "_diff": [2, -1]}))
    assert events.count() == 41


def test_pandas_polars_and_duckdb_get_the_same_rows(events: Table) -> None:
    """With a condition and columns, as Arrow does."""
    expected = [{"name": f"k{at:03}"} for at in range(35, 40)]
    assert events.to_pandas("id >= 35", ["name"]).to_dict("records") == expected
    assert events.to_polars("id >= 35", ["name"]).to_dicts() == expected
    assert events.to_duckdb(where="id >= 35", columns=["name"]).fetchall() == [
        (row["name"],) for row in expected
    ]
    with duckdb.connect() as connection:
        assert events.to_duckdb(connection).aggregate("count(*)").fetchall() == [(40,)]


def test_whatever_reads_arrow_streams_reads_a_snapshot(events: Table) -> None:
    """Without a copy in between, also with a schema that it asks for; of a table, the rows of now."""
    assert pa.table(events.snapshot()).num_rows == 40
    assert pl.DataFrame(events.snapshot()).height == 40
    assert pl.DataFrame(events).height == 40
    assert duckdb.execute("select count(*) from events").fetchall() == [(40,)]


def test_a_lazy_frame_is_appended_as_what_its_query_finds(events: Table) -> None:
    """It is collected, and Polars has nothing to warn of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert events.append(events.scan().filter(pl.col("id") < 5)).rows == 5
        wider = events.scan().filter(pl.col("id") == 7).with_columns(extra=pl.lit(1.5))
        assert events.append(wider, evolve=True).rows == 1
    assert events.count() == 46
    assert events.count("extra = 1.5") == 1


CONDITIONS: list[tuple[Any, int]] = [
    (pl.col("id") == 15, 1),
    (pl.col("id") > 15, 3),
    (pl.col("id") < 15, 2),
    (pl.col("id").is_between(12, 18), 1),
    (pl.col("id").is_in([1, 35]), 2),
    (pl.col("name") == "k012", 1),
    (pl.col("name").is_in(["k012", "k013"]), 1),
    ((pl.col("id") < 5) | (pl.col("id") > 35), 2),
    ((pl.col("id") < 5) & (pl.col("name").str.len_chars() == 4), 1),
    (pl.col("name").is_null(), 0),
    (pl.col("day") == date(2026, 1, 2), 1),
    (pl.col("at") >= datetime(2026, 1, 3, tzinfo=UTC), 2),
    (pl.col("price") < Decimal("3.5"), 1),
    (pl.col("id").hash() > 0, 4),
]


@pytest.mark.parametrize("at", range(len(CONDITIONS)))
def test_a_lazy_frame_opens_only_what_its_query_needs(
    events: Table, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Filters of Polars skip parts as ours do; what is not understood reads everything, and loses nothing."""
    condition, parts = CONDITIONS[at]
    expected = events.to_polars().filter(condition)
    opened = Opened(monkeypatch, events)
    assert events.scan().filter(condition).collect().equals(expected)
    assert opened.count() == parts


def test_a_lazy_frame_reads_the_columns_and_rows_that_are_asked_for(events: Table) -> None:
    """Columns that only the filter looks at are not shown; a limit ends the reading."""
    assert events.scan().filter(pl.col("id") == 7).select("name").collect().to_dicts() == [{"name": "k007"}]
    assert events.scan().head(3).collect().height == 3
    assert events.scan().select(pl.len()).collect().item() == 40
    assert events.scan().collect_schema()["price"] == pl.Decimal(9, 2)


def test_what_sql_cannot_say_is_left_to_polars() -> None:
    """Of conditions joined by AND the others remain; under OR none does."""
    odd = pl.col("a").hash() > 1
    assert sql_of((pl.col("a") > 1) & odd) == sql_of(pl.col("a") > 1) == "(a > cast('1' as bigint))"
    assert sql_of((pl.col("a") > 1) | odd) is None
    assert sql_of(pl.col("s") == "it's \\ so") == "(s = 'it\\'s \\\\ so')"


QUERIES = [
    ("id = 15", 1),
    ("id > 15 and name <> 'k039'", 3),
    ("id between 12 and 18", 1),
    ("id in (1, 35)", 2),
    ("name in ('k012', 'k013')", 1),
    ("name = 'k012' or name = 'k033'", 2),
    ("day = date '2026-01-02'", 1),
    ("\"at\" >= timestamptz '2026-01-03 00:00:00Z'", 2),
    ("name is null", 0),
    ("name is not null and id < 5", 1),
    ("name like 'k01%' and price < 15", 2),
    ("price < 3.5", 1),
    ("length(name) = 4", 4),
    ("id + 1 > 35", 1),
    ("name = 'a\") or (id == \"1'", 0),
]


def asked(relation: duckdb.DuckDBPyRelation, query: str) -> list[Any]:
    """Return what a query of the relation `r` finds."""
    found = relation.query("r", query)
    assert found is not None
    return found.fetchall()


@pytest.mark.parametrize(("condition", "parts"), QUERIES)
def test_a_query_of_duckdb_opens_only_what_it_needs(
    events: Table, monkeypatch: pytest.MonkeyPatch, condition: str, parts: int
) -> None:
    """What DuckDB pushes down skips parts as our conditions do; others read more and lose nothing."""
    with duckdb.connect() as connection:
        rows = events.to_arrow()
        query = "select name, price from {} where " + condition + " order by name"
        expected = connection.sql(query.format("rows")).fetchall()
        assert rows.num_rows == 40
        relation = events.to_duckdb(connection)
        opened = Opened(monkeypatch, events)
        assert asked(relation, query.format("r")) == expected
        assert opened.count() == parts
        assert asked(relation, query.format("r")) == expected


def test_a_relation_of_duckdb_reads_its_own_columns(events: Table) -> None:
    """Columns that a query does not name are not read, and a count needs one."""
    read: list[Any] = []
    snapshot = events.snapshot()
    plain = snapshot.to_batches
    snapshot.to_batches = lambda where=None, columns=None: read.append(columns) or plain(where, columns)  # type: ignore[method-assign, func-returns-value]
    with duckdb.connect() as connection:
        relation = snapshot.to_duckdb(connection)
        assert asked(relation, "select price from r where id = 3") == [(Decimal("3.00"),)]
        assert asked(relation, "select count(*) from r") == [(40,)]
    assert read[0] == ["id", "price"]
    assert len(read[1]) == 1


def test_a_text_that_may_mean_two_things_is_no_filter() -> None:
    """Expressions of Arrow are read as text: what is odd in it, or in the names of columns, is left alone."""
    types: dict[str, Type] = {"s": Primitive("string"), "n": Primitive("int"), "d": Primitive("double")}
    quoted = sql_of_text(str(pc.field("s") == "a\"b\\'c"), types)
    assert quoted == ("(s = 'a\"b\\\\\\'c')", {"s"})
    for odd in (
        pc.field("s") == "a\nb",
        pc.field("d") > 0.1234567890123,
        pc.field("n") > 1.5,
        pc.field("n") + 1 > 2,
        ~(pc.field("n") > 2),
        pc.field("n").isin(list(range(100))),
        pc.field("other") == 1,
    ):
        assert sql_of_text(str(odd), types) == (None, set())
    assert sql_of_text("(n > 1)", types | {"n > 1) or (n": Primitive("int")}) == (None, set())
    assert sql_of_text("(n > 1", types) == (None, set())
    assert sql_of_text("(n > 1) (n > 2)", types) == (None, set())


def test_a_store_is_a_collection_of_tables(store: Store, events: Table) -> None:
    """By name; an empty store is still a store."""
    assert list(store) == ["events"]
    assert len(store) == 1
    assert "events" in store
    assert "nothing" not in store
    assert 7 not in store
    assert "//" not in store
    assert store["events"].count() == events.count()
    with pytest.raises(TableNotFoundError):
        store["nothing"]
    assert bool(store)


def test_a_notebook_shows_stores_and_tables(store: Store, events: Table, tmp_path: Path) -> None:
    """As small tables, and markup in names does nothing."""
    store.create_table("<script>", "`<b>` int not null, s struct<x: int>")
    assert "&lt;script&gt;" in store._repr_html_()
    assert "<script>" not in store._repr_html_()
    shown = store["<script>"]._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "not null" in shown
    assert "4 parts" in events._repr_html_()
