"""Rows for pandas, Polars, DuckDB and everything that reads Arrow, and what a notebook shows."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from instar.api.lazy import sql_of
from instar.errors import TableNotFoundError

if TYPE_CHECKING:
    from pathlib import Path

    from instar.api.store import Store
    from instar.api.table import Table


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
    assert events.snapshot().head(2, ["name"]).column_names == ["name"]
    opened = Opened(monkeypatch, events)
    events.head(3)
    assert opened.count() == 1


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
    """Without a copy in between, also with a schema that it asks for."""
    assert pa.table(events.snapshot()).num_rows == 40
    assert pl.DataFrame(events.snapshot()).height == 40


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
