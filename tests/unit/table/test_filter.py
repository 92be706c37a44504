"""Filters in process: the right rows, from the parts that may have them, or a refusal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import instar
from instar.errors import ReaderFencedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = [
    {
        "id": part * 10 + row,
        "s": f"k{part * 10 + row:05d}",
        "f": math.nan if row == 3 else float(row),
        "st": {"x": part} if row % 2 else None,
    }
    for part in range(20)
    for row in range(10)
]

CASES: list[tuple[str, Callable[[dict[str, Any]], bool]]] = [
    ("id >= 190", lambda row: row["id"] >= 190),
    ("s like 'k0001%'", lambda row: row["s"].startswith("k0001")),
    ("f > 8", lambda row: math.isnan(row["f"]) or row["f"] > 8),
    ("st.x = 3", lambda row: row["st"] is not None and row["st"]["x"] == 3),
    ("st.x is null and id < 20", lambda row: row["st"] is None and row["id"] < 20),
    ("id % 7 = 0 and id < 30", lambda row: row["id"] % 7 == 0 and row["id"] < 30),
    ("abs(id - 100) < 3", lambda row: abs(row["id"] - 100) < 3),
    ("coalesce(st.x, -1) = -1", lambda row: row["st"] is None),
    ("case when id < 5 then 'a' else 'b' end = 'a'", lambda row: row["id"] < 5),
    ("not (id >= 3)", lambda row: row["id"] < 3),
    ("id > 199", lambda _: False),
]


@pytest.fixture(scope="module")
def table() -> instar.Table:
    """Return a table of twenty parts."""
    store = instar.open("memory://filters")
    made = store.create_table("t", "id bigint, s string, f double, st struct<x: bigint>", order_by=["id"])
    for start in range(0, len(ROWS), 10):
        made.append(pa.Table.from_pylist(ROWS[start : start + 10]))
    return made


@pytest.mark.parametrize(("where", "wanted"), CASES, ids=[text for text, _ in CASES])
def test_the_rows_are_those_that_the_condition_is_true_for(
    table: instar.Table, where: str, wanted: Callable[[dict[str, Any]], bool]
) -> None:
    """A condition may look at columns that are not shown, NaN is greatest, and null is not true."""
    found = table.snapshot(columns=["id"]).to_arrow(where=where)
    assert found.column_names == ["id"]
    assert sorted(found.column("id").to_pylist()) == [row["id"] for row in ROWS if wanted(row)]


def test_what_cannot_be_told_is_refused(table: instar.Table) -> None:
    """A function that is not known exactly is no reason to guess, and the way out is named."""
    with pytest.raises(UsageError, match="without Spark"):
        table.snapshot().to_arrow(where="soundex(s) = 'K000'")


def test_a_condition_on_a_column_that_is_gone_is_fenced() -> None:
    """What a condition looks at is read, and so it can fence."""
    table = instar.open("memory://gone").create_table("t", "a int, b int")
    table.append(pa.table({"a": pa.array([1], pa.int32()), "b": pa.array([2], pa.int32())}))
    table.evolve().drop_column("b").commit()
    old = table.snapshot(schema=0, columns=["a"])
    assert old.to_arrow().num_rows == 1
    with pytest.raises(ReaderFencedError):
        old.to_arrow(where="b = 2")


@pytest.mark.parametrize("text", ["id", "id + 1", "s", "st", "sum(id) > 3", "exists (select 1)", "'true'"])
def test_what_is_true_or_false_for_no_row_is_refused(table: instar.Table, text: str) -> None:
    """A value, an aggregate or a subquery is not taken for a condition that needs everything."""
    with pytest.raises(UsageError, match="not a condition"):
        table.explain(text)
    with pytest.raises(UsageError, match="not a condition"):
        table.snapshot().to_arrow(where=text)
    assert table.explain("unheard_of(s)").read == 20


@pytest.mark.parametrize(
    "mention",
    ["s is not null", "S.p = 1", "size(l) > 1", "l is null", "m['a'] = 1", "b | 1 = 1", "s <=> s", "`b` > 0"],
)
def test_naming_a_column_that_is_gone_is_enough_to_be_fenced(mention: str) -> None:
    """However a condition names a column, and whether or not it needs it, the column is read."""
    table = instar.open("memory://").create_table(
        "t", "id int, b int, s struct<p: int>, l array<int>, m map<string, int>, kept struct<p: int>"
    )
    table.append(pa.table({"id": pa.array([1], pa.int32())}))
    update = table.evolve()
    for name in ("b", "s", "l", "m"):
        update = update.drop_column(name)
    update.commit()
    old = table.snapshot(schema=0, columns=["id"])
    assert old.to_arrow(where="id = 1 or kept.p = 1").num_rows == 1
    with pytest.raises(ReaderFencedError):
        old.to_arrow(where=f"id = 1 or {mention}")
