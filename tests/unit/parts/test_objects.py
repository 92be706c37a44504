"""Dicts of Python are structs, or maps where a table has maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import instar
from instar.errors import DataMismatchError

if TYPE_CHECKING:
    from pathlib import Path

    from instar import Table

COLUMNS = (
    "id bigint, m map<string, int>, n struct<a: map<string, struct<x: int>>>, "
    "l array<map<string, int>>, k map<int, string>"
)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Return a table with maps at every level."""
    return instar.open(tmp_path).create_table("maps", COLUMNS, key=["id"])


def rows(table: Table) -> list[dict[str, Any]]:
    """Return rows without nulls at the top."""
    found = table.to_arrow().sort_by("id").to_pylist(maps_as_pydicts="strict")
    return [{name: value for name, value in row.items() if value is not None} for row in found]


@pytest.mark.parametrize(
    "row",
    [
        {"m": {"a": 1, "b": None}},
        {"m": {}},
        {"n": {"a": {"p": {"x": None}, "q": {"x": 3}}}},
        {"n": {"a": {}}},
        {"l": [{"z": 1}, {"y": 2}, None]},
        {"k": {1: "one", -2: "two"}},
    ],
    ids=str,
)
def test_dicts_are_maps_where_the_table_has_maps(table: Table, row: dict[str, Any]) -> None:
    """A key is there only in the rows that have it, also inside of structs and lists."""
    given = [{"id": 1, **row}, {"id": 2, "m": {"other": 5}}, {"id": 3}]
    table.append(given)
    assert rows(table) == given


def test_pairs_are_maps_too(table: Table) -> None:
    """As Arrow hands them out."""
    table.append([{"id": 1, "m": [("a", 1)]}])
    assert rows(table) == [{"id": 1, "m": {"a": 1}}]


def test_every_way_of_writing_knows_the_maps(table: Table) -> None:
    """Columns are found whatever the case of their names."""
    table.append([{"id": 1, "M": {"a": 1}}])
    table.upsert([{"id": 1, "m": {"b": 2}}])
    table.merge([{"id": 2, "m": {"c": 3}}], on=["id"]).when_not_matched_insert().execute()
    table.overwrite([{"id": 3, "m": {"d": 4}}], where="id = 2")
    assert rows(table) == [{"id": 1, "m": {"b": 2}}, {"id": 3, "m": {"d": 4}}]


def test_tables_that_begin_with_dicts(tmp_path: Path) -> None:
    """And streams, whose schema is known too."""
    store = instar.open(tmp_path)
    assert rows(store.create_table("new", "id int, m map<string, int>", data=[{"id": 1, "m": {"a": 1}}]))
    columns = "at timestamp, m map<string, int>"
    stream = store.create_stream("days", columns, version="v0.0.1", time="at", kinds={"regular": "1d"})
    stream.write([{"at": pd.Timestamp("2026-11-15", tz="UTC"), "m": {"a": 1}}])
    assert store.table("days/1d/2026-11-15").to_arrow().column("m").to_pylist() == [[("a", 1)]]


def test_frames_of_pandas_hold_dicts(table: Table) -> None:
    """Whatever pandas takes for a missing value is null."""
    missing = float("nan")
    table.append(pd.DataFrame({"m": [{"a": 1}, {}, missing], "id": [1, 2, 3], "k": [None, {1: "x"}, pd.NA]}))
    table.append(pd.DataFrame({"m": [{"b": 2}]}))
    found = rows(table)
    assert len(found) == 4
    for row in ({"m": {"b": 2}}, {"id": 1, "m": {"a": 1}}, {"id": 2, "m": {}, "k": {1: "x"}}, {"id": 3}):
        assert row in found


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"m": {"a": 1.5}}, r"column `m\.value` .* int cannot hold every double"),
        ({"m": {1: 1}}, r"column `m\.key` .* it is int64, which is not string"),
        ({"m": {"a": 1, "b": "x"}}, "column `m` .* its values are not of one type"),
        ({"m": 7}, "column `m` .* it is int64"),
        ({"n": {"a": {"k": {"x": 1, "y": 2}}}}, r"column `n\.a\.value\.y` .* the table has no such column"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_named(table: Table, row: dict[str, Any], message: str) -> None:
    """No value is cut, and no member of a struct gets lost."""
    with pytest.raises(DataMismatchError, match=message):
        table.append([{"id": 1, **row}])
    assert not table.count()


def test_members_inside_of_maps_are_added(table: Table) -> None:
    """By data that may evolve the table."""
    table.append([{"id": 1, "n": {"a": {"k": {"x": 1, "y": 2}, "j": {"z": "u"}}}}], evolve=True)
    found = {"k": {"x": 1, "y": 2, "z": None}, "j": {"x": None, "y": None, "z": "u"}}
    assert rows(table) == [{"id": 1, "n": {"a": found}}]
