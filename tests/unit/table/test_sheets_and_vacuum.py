"""Sheets of retractions stay as long as somebody needs them, and go when nobody does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import instar
from instar.errors import TableNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from instar import Store, Table


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Return a store in which every delete writes a sheet."""
    monkeypatch.setattr("instar.table.write.append.INLINE_BITMAPS", 0)
    with instar.open(tmp_path) as opened:
        yield opened


def make(store: Store) -> Table:
    """Return a table of a hundred numbers, of which two deletes have taken twenty."""
    table = store.create_table("t", "n bigint")
    table.append(pa.table({"n": list(range(100))}))
    table.delete("n % 10 = 0")
    table.delete("n % 10 = 1")
    return table


def sheets(place: Path) -> set[str]:
    """Return the names of all sheets of a store."""
    return {path.name for path in place.rglob("retractions/*")}


def forget(table: Table) -> None:
    """Let go of the history of a table, and of what was deleted."""
    table.configure(retention="0ms")
    table.retain()
    table.compact(full=True)


def test_a_sheet_stays_for_a_reader_of_an_older_state(store: Store, tmp_path: Path) -> None:
    """Whether a commit or a rollup names it; once the reader has gone, a newer sheet says it all."""
    table = make(store)
    first = sheets(tmp_path)
    assert len(first) == 2
    with instar.open(tmp_path) as other, other.table("t").snapshot() as early:
        store.vacuum(grace_ms=0)
        [merged] = sheets(tmp_path) - first
        with other.table("t").snapshot() as late:
            table.delete("n % 10 = 2")
            forget(table)
            store.vacuum(grace_ms=0)
            assert sheets(tmp_path) >= {*first, merged}
            assert early.to_arrow().num_rows == late.to_arrow().num_rows == 80
    store.vacuum(grace_ms=0)
    assert not sheets(tmp_path) & {*first, merged}
    assert table.count() == 70
    table.delete("n % 10 = 3")
    store.vacuum(grace_ms=0)
    assert sum(ref.retractions for ref in table.state.sheets) == 1, "it tells of parts that are gone"
    assert table.count() == 60


def test_a_sheet_goes_with_its_table(store: Store, tmp_path: Path) -> None:
    """A table that was dropped can come back with it, until a vacuum has taken both."""
    table = make(store)
    before = table.upper - 1
    store.drop_table("t")
    store.vacuum(grace_ms=10**9)
    back = store.undrop_table("t")
    assert back.count() == 80
    assert back.restore(version=1).rows == 20
    assert (back.count(), back.snapshot(before).to_arrow().num_rows) == (100, 80)
    store.vacuum(grace_ms=0)
    assert (back.count(), back.snapshot(before).to_arrow().num_rows) == (100, 80)
    store.drop_table("t")
    store.vacuum(grace_ms=0)
    assert sheets(tmp_path) == set()
    with pytest.raises(TableNotFoundError):
        store.undrop_table("t")


def test_a_clone_has_sheets_of_its_own(store: Store, tmp_path: Path) -> None:
    """Those of the table that it was made from may go, and so may its own when its table has forgotten."""
    table = make(store)
    before = table.upper - 1
    store.vacuum(grace_ms=0)
    clone = table.clone("c")
    clone.delete("n % 10 = 2")
    store.drop_table("t")
    store.vacuum(grace_ms=0)
    with instar.open(tmp_path) as other:
        assert other.table("c").count() == 70
        assert other.table("c").snapshot(before).to_arrow().num_rows == 80
    forget(clone)
    clone.append(pa.table({"n": [1000]}))
    clone.delete("n = 1000")
    clone.compact(full=True)
    forget(clone)
    store.vacuum(grace_ms=0)
    assert clone.count() == 70
    store.drop_table("c")
    store.vacuum(grace_ms=0)
    assert sheets(tmp_path) == set()
