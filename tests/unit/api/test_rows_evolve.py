"""Rows that bring a schema with them: what is added and widened, and what may be meant by an old name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from instar.errors import DataMismatchError, FormerNameError, UsageError
from instar.parts import DIFF

if TYPE_CHECKING:
    from instar.api.store import Store


def ints(**columns: list[int | None]) -> pa.Table:
    """Return a table of 32-bit integers."""
    return pa.table({name: pa.array(values, pa.int32()) for name, values in columns.items()})


def test_a_former_name_is_not_taken_for_a_new_column(store: Store) -> None:
    """A column that was renamed does not come back unless the caller says so; the error knows the way."""
    table = store.create_table("t", "user string, n int")
    table.evolve().rename_column("user", "user_id").drop_column("n").commit()
    with pytest.raises(FormerNameError, match=r"`user_id` now, by schema 1.*schema=0") as renamed:
        table.append(pa.table({"user": ["ada"]}), evolve=True)
    assert (renamed.value.schema_id, renamed.value.now) == (0, "user_id")
    with pytest.raises(FormerNameError, match="was dropped, by schema 1"):
        table.append(ints(n=[1]), evolve=True)
    with pytest.raises(FormerNameError, match=r"add column `user`.*The same applies to `n`\.$"):
        table.append(pa.table({"user": ["ada"], "n": [1]}), evolve=True)
    assert str(table.schema) == "user_id string"
    table.append(pa.table({"user": ["ada"]}), schema=0)
    table.append(pa.table({"user": ["bob"]}), evolve=True, former_names=True)
    assert table.to_pandas().to_dict("list") == {"user_id": ["ada", None], "user": [None, "bob"]}


def test_former_names_are_found_inside_structs(store: Store) -> None:
    """The name of a member is looked up where the member was, whatever its struct is called now."""
    table = store.create_table("t", "a struct<x: int, y: int>, b struct<z: int>")
    table.evolve().rename_column("a.x", "w").rename_column("a", "c").commit()
    with pytest.raises(FormerNameError, match=r"c\.w"):
        table.append(pa.table({"c": [{"x": 1}]}), evolve=True)
    table.append(pa.table({"b": [{"x": 1}]}), evolve=True)
    assert str(table.schema) == "c struct<w: int, y: int>, b struct<z: int, x: bigint>"
    with pytest.raises(UsageError, match="give both"):
        table.append(ints(q=[1]), former_names=True)


def test_what_is_too_narrow_is_widened(store: Store) -> None:
    """Numbers that need it make their column wider in the same commit; those that do not leave it alone."""
    table = store.create_table("t", "n int, f float, d decimal(5,2), l array<int>")
    table.append(pd.DataFrame({"n": [1]}), evolve=True)
    table.append(pl.DataFrame({"n": [1]}), evolve=True)
    assert len(table.schemas) == 1
    large = pa.table({"n": [2**40], "f": [0.1]})
    with pytest.raises(DataMismatchError):
        table.append(large)
    commit = table.append(large, evolve=True)
    assert commit.schema_id == 1
    assert str(table.schema) == "n bigint, f double, d decimal(5,2), l array<int>"
    table.append(pa.table({"d": pa.array([None], pa.decimal128(9, 3)), "l": [[2**40]]}), evolve=True)
    assert str(table.schema) == "n bigint, f double, d decimal(9,3), l array<bigint>"
    assert table.to_pandas()["n"].dropna().tolist() == [1, 1, 2**40]


def test_whole_numbers_do_not_become_floats(store: Store) -> None:
    """A number that is missing makes floats of a column in pandas, which is no reason to change a table."""
    table = store.create_table("t", "n int")
    table.append(pd.DataFrame({"n": [1, None]}), evolve=True)
    with pytest.raises(DataMismatchError, match="this value of double is not exactly a int"):
        table.append(pd.DataFrame({"n": [1, 1.5]}), evolve=True)
    assert str(table.schema) == "n int"
    assert table.head().to_pylist() == [{"n": 1}, {"n": None}]


def test_changes_may_bring_columns(store: Store) -> None:
    """`_diff` is no column to add, and what is new beside it is."""
    table = store.create_table("t", "n int")
    table.apply(ints(n=[1, 2], m=[3, 4]).append_column(DIFF, pa.array([1, 1])), evolve=True)
    table.apply(ints(n=[1], m=[3]).append_column(DIFF, pa.array([-1])), evolve=True)
    assert str(table.schema) == "n int, m int"
    assert table.to_pandas().to_dict("list") == {"n": [2], "m": [4]}


def test_upserts_may_bring_columns(store: Store) -> None:
    """The rows that are replaced go, also where others were retracted by value; the key stays as it is."""
    table = store.create_table("t", "k int, v int", key=["k"])
    table.append(ints(k=[1, 2, 3], v=[1, 2, 3]))
    table.apply(ints(k=[3], v=[3]).append_column(DIFF, pa.array([-1])))
    table.upsert(ints(k=[2], v=[20], w=[5]), evolve=True)
    assert str(table.schema) == "k int, v int, w int"
    table.upsert(pa.table({"k": pa.array([1], pa.int32()), "v": [2**40]}), evolve=True)
    assert str(table.schema) == "k int, v bigint, w int"
    assert sorted(map(tuple, table.to_pandas().fillna(0).itertuples(index=False))) == [
        (1, 2**40, 0),
        (2, 20, 5),
    ]
    with pytest.raises(DataMismatchError):
        table.upsert(pa.table({"k": [2**40]}), evolve=True)
