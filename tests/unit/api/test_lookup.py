"""Rows are looked up by their key: few parts are opened, and little of each is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from instar.errors import ColumnNotFoundError, ReaderFencedError, UsageError
from instar.parts import write
from instar.table.read.rows import read_written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.api.store import Store
    from instar.api.table import Table
    from instar.table.log.part_set import WrittenPart


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list of the rows that are read of each part that a lookup opens."""
    seen: list[int] = []

    def counted(
        blob: object, written: WrittenPart, *rest: object, **also: object
    ) -> Iterator[pa.RecordBatch]:
        seen.append(0)
        for batch in read_written(blob, written, *rest, **also):  # type: ignore[arg-type]
            seen[-1] += batch.num_rows
            yield batch

    monkeypatch.setattr("instar.table.read.lookup.read_written", counted)
    return seen


def make(store: Store, parts: int = 20) -> Table:
    """Make a table of sorted parts that do not overlap."""
    table = store.create_table(
        "t", "country string, id int not null, v string", order_by=["country", "id"], key=["country", "id"]
    )
    for part in range(parts):
        ids = list(range(part * 10, part * 10 + 10))
        table.append(
            pa.table({"country": ["at" if part < 9 else "de"] * 10, "id": ids, "v": [f"v{i}" for i in ids]})
        )
    return table


def test_one_part_is_opened_for_a_key(store: Store, opened: list[int]) -> None:
    """By its value, by some of its columns or by any column; of a key that is nowhere, none."""
    table = make(store)
    assert table.lookup(("de", 125)).to_pylist() == [{"country": "de", "id": 125, "v": "v125"}]
    assert table.lookup({"id": 7}, columns=["v"]).to_pylist() == [{"v": "v7"}]
    assert len(opened) == 2
    assert table.lookup(("at", 125)).num_rows == 0
    assert table.lookup({"id": 1000}).num_rows == 0
    assert len(opened) == 2
    assert table.lookup({"v": "v33"}).to_pylist() == [{"country": "at", "id": 33, "v": "v33"}]


def test_first_and_last_rows_tell_more_than_bounds(store: Store, opened: list[int]) -> None:
    """A part that ends one country and begins the next has wide bounds, and few rows of either."""
    table = make(store)
    table.append(pa.table({"country": ["at", "de"], "id": [900, 1], "v": ["x", "y"]}))
    assert table.lookup(("de", 125)).num_rows == 1
    assert len(opened) == 1


def test_only_row_groups_are_read_that_may_have_the_key(
    store: Store, opened: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of a large part says what is in each of its row groups."""
    monkeypatch.setattr(write, "ROW_GROUP_ROWS", 10)
    table = make(store)
    table.compact(full=True)
    assert table.lookup(("de", 125)).num_rows == 1
    assert opened == [10]


def test_an_upsert_reads_only_what_may_have_its_keys(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its keys lie far apart, and the parts between them are not opened."""
    table = make(store)
    seen: list[str] = []

    def counted(
        blob: object, written: WrittenPart, *rest: object, **also: object
    ) -> Iterator[pa.RecordBatch]:
        seen.append(written.part.key)
        return read_written(blob, written, *rest, **also)  # type: ignore[arg-type]

    monkeypatch.setattr("instar.table.read.locate_keys.read_written", counted)
    table.upsert(pa.table({"country": ["at", "de"], "id": [1, 198], "v": ["new", "new"]}))
    assert len(seen) == 2
    assert table.lookup(("at", 1))["v"].to_pylist() == ["new"]
    assert table.count() == 200


def test_a_lookup_knows_what_was_retracted_and_when(store: Store, world: object) -> None:
    """Rows that were deleted are found as of earlier times, and not as of now."""
    table = make(store, 2)
    before = table.upper - 1
    table.delete("id = 7")
    table.apply(pa.table({"country": ["at"], "id": pa.array([8], pa.int32()), "v": ["v8"], "_diff": [-1]}))
    assert table.lookup({"id": 7}).num_rows == 0
    assert table.lookup({"id": 8}).num_rows == 0
    assert table.lookup({"id": 9}).num_rows == 1
    with table.snapshot(as_of=before) as snapshot:
        assert snapshot.lookup({"id": 7}).num_rows == snapshot.lookup({"id": 8}).num_rows == 1


def test_a_key_may_be_renamed_and_widened(store: Store) -> None:
    """Old parts are found by the new name and the new type; an old reader of the column is fenced."""
    table = make(store, 2)
    table.evolve().rename_column("id", "number").widen_column("number", "bigint").commit()
    table.append(pa.table({"country": ["at"], "number": [2**40], "v": ["far"]}))
    assert table.lookup(("at", 7))["v"].to_pylist() == ["v7"]
    assert table.lookup({"number": 2**40})["v"].to_pylist() == ["far"]
    with table.snapshot(schema=0, columns=["v"]) as old:
        assert old.lookup({"country": "at"}).num_rows == 21
        with pytest.raises(ReaderFencedError):
            old.lookup({"id": 7})


def test_what_cannot_be_looked_up_is_refused(store: Store) -> None:
    """With what to do instead."""
    table = make(store, 1)
    keyless = store.create_table("keyless", "a int, m map<string, int>")
    for owner, key, words in (
        (table, 7, "country, id"),
        (table, ("at",), "give a value for each"),
        (table, {"id": "seven"}, "`id` is int"),
        (table, {"id": 2**40}, "`id` is int"),
        (table, {"id": 1.5}, "`id` is int"),
        (table, {"ident": 1}, "ident"),
        (table, {}, "needs a column"),
        (table, {"id": 1, "ID": 1}, "twice"),
        (keyless, 7, "has no key"),
        (keyless, {"m": {}}, "maps"),
    ):
        with pytest.raises((UsageError, ColumnNotFoundError), match=words):
            owner.lookup(key)
    assert keyless.lookup({"a": 1}).num_rows == 0
